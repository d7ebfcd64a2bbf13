"""Whose a resource is. Without the cluster's tag it is somebody else's, whatever it is called."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from eva.adapters.aws.names import CLUSTER_TAG, read_tags
from eva.model.errors import OperatorError


class ForeignResourceError(OperatorError):
    """Something that is not ours is where ours should be. It was not touched."""


def check_ours(kind: str, name: str, tags: Iterable[Mapping[str, str]], cluster: str) -> None:
    """Raise unless it bears the tag of this very cluster."""
    found = read_tags(tags).get(CLUSTER_TAG)
    if found == cluster:
        return
    why = (
        f"bears no tag {CLUSTER_TAG}"
        if found is None
        else f"belongs to the cluster {found!r} by its tag {CLUSTER_TAG}"
    )
    raise ForeignResourceError(
        f"{kind} {name} {why}, so it is left alone: choose another name with --cluster, remove it, "
        f"or tag it {CLUSTER_TAG}={cluster} if it is this cluster's"
    )
