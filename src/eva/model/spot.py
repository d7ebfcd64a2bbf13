"""Spot: the same machine at another price, which the cloud may take back.

To whoever plans, an instance type on spot is a type of its own, `g5.xlarge:spot` in the family
`g5:spot`. All of scheduling asks by family what a task needs and what it is worth there, so a
family of its own is all it takes: a task that does not allow spot has no demand on it, and nothing
that plans, places or checks has to know what spot is. A colon is in no name that a cloud gives.
"""

from __future__ import annotations

SUFFIX = ":spot"


def is_spot(name: str) -> bool:
    """Whether this type, or family, is one on spot."""
    return name.endswith(SUFFIX)


def on_spot(name: str) -> str:
    """What a type, or family, is called on spot."""
    return name + SUFFIX


def on_demand(name: str) -> str:
    """What a type, or family, is called on demand, and by the cloud."""
    return name.removesuffix(SUFFIX)
