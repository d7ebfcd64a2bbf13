"""Which image instances boot: looked up where AWS publishes it, or named by somebody."""

from __future__ import annotations

from dataclasses import dataclass

from eva.adapters.aws.account.api import Api
from eva.model.errors import InputError, OperatorError

# AWS's Deep Learning Base AMI: Ubuntu with the GPU driver, Docker and the SSM agent in it.
IMAGE_PARAMETER = (
    "/aws/service/deeplearning/ami/x86_64/base-oss-nvidia-driver-gpu-ubuntu-24.04/latest/ami-id"
)


@dataclass(frozen=True, slots=True)
class Image:
    """`parameter` is where it was looked up; empty if somebody named it."""

    id: str
    name: str
    root_device: str
    parameter: str = ""


def find_image(api: Api, wanted: str) -> Image:
    """`wanted` is an image's id, or the name of a public parameter that holds one."""
    if wanted.startswith("ami-"):
        return _described(api, wanted, "")
    if not wanted.startswith("/"):
        raise InputError.single(
            "--image", f"{wanted!r} is no image: write ami-..., or the SSM parameter that holds one"
        )
    with api.doing("looking up the image"):
        found = api.find("ssm", "get_parameter", {"ParameterNotFound"}, Name=wanted)
    if found is None:
        raise OperatorError(
            f"{api.region} publishes no image as {wanted}: name one of the region with --image"
        )
    return _described(api, found["Parameter"]["Value"], wanted)


def is_there(api: Api, image: str) -> bool:
    """Images are taken back by who made them, some time after a newer one is there."""
    with api.doing(f"looking at image {image}"):
        absent = {"InvalidAMIID.NotFound", "InvalidAMIID.Unavailable"}
        found = api.find("ec2", "describe_images", absent, ImageIds=[image])
    return bool(found and found["Images"])


def _described(api: Api, image: str, parameter: str) -> Image:
    with api.doing(f"looking at image {image}"):
        found = api.look("ec2", "describe_images", ImageIds=[image])["Images"]
    if not found:
        raise InputError.single("--image", f"{image} is no image that this account may use")
    return Image(image, found[0].get("Name", ""), found[0]["RootDeviceName"], parameter)
