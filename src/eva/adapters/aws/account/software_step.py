"""The wheel of this Eva in the bucket, for instances to install."""

from __future__ import annotations

from functools import partial

from eva.adapters.aws import software
from eva.adapters.aws.account.api import Api
from eva.adapters.aws.account.plan import Action, Step, Work

KIND = "software"


def software_url(bucket: str, name: str) -> str:
    return f"s3://{bucket}/{software.SOFTWARE_PREFIX}/{name}"


def software_step(api: Api, bucket: str, *, bucket_is_there: bool) -> tuple[Step, str]:
    """The step, and where the wheel is once it is done."""
    name = software.packed().name
    url = software_url(bucket, name)
    told = ("the wheel of this Eva, which instances install when they boot",)
    if bucket_is_there:
        with api.doing(f"looking at {url}"):
            absent = {"404", "NoSuchKey"}
            key = f"{software.SOFTWARE_PREFIX}/{name}"
            if api.find("s3", "head_object", absent, Bucket=bucket, Key=key) is not None:
                return Step(Action.KEEP, KIND, name, told), url
    work = Work(f"uploading {name}", partial(software.publish, bucket, api.region, api.endpoint))
    return Step(Action.CREATE, KIND, name, told, (work,)), url
