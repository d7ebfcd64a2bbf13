"""Frozen dataclasses with slots, pickled without looking their fields up for each of them.

Snapshots of the cluster go to the planning process in every round and to disk now and then, with
tens of thousands of small values in them; while that lasts a master answers nobody. The way of the
standard library asks `fields()` for every single value, which takes longer than all the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any, TypeVar

T = TypeVar("T")


def quick_pickle(kind: type[T]) -> type[T]:
    """Decorates a dataclass, above `@dataclass`."""
    names = tuple(field.name for field in fields(kind))  # type: ignore[arg-type]  # it is one

    def get(self: T) -> tuple[Any, ...]:
        return tuple([getattr(self, name) for name in names])

    def put(self: T, state: Sequence[Any]) -> None:
        for name, value in zip(names, state, strict=True):
            object.__setattr__(self, name, value)

    kind.__getstate__ = get  # type: ignore[assignment]  # of this kind alone
    kind.__setstate__ = put  # type: ignore[attr-defined]
    return kind
