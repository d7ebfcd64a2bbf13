"""Agreement between the processes of one job, where torch.distributed has joined them.

Saving is often a collective operation, and each task of a gang hears the request on its own socket
at its own moment; so a checkpoint begins on all processes at the same step or on none. Without
torch.distributed both functions are free.
"""

from __future__ import annotations

import sys
from typing import Any


def _joined() -> Any:
    distributed = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return None
    return distributed if distributed.get_world_size() > 1 else None


def any_process(*, flag: bool) -> bool:
    """Whether any process says yes; all processes must ask at the same step."""
    distributed = _joined()
    if distributed is None:
        return flag
    torch = sys.modules["torch"]
    on_gpu = distributed.get_backend() == "nccl"
    vote = torch.tensor([int(flag)], device="cuda" if on_gpu else "cpu")
    distributed.all_reduce(vote, op=distributed.ReduceOp.MAX)
    return bool(vote.item())


def wait_for_all() -> None:
    """Until every process has come here: a manifest is written when all have written."""
    distributed = _joined()
    if distributed is not None:
        distributed.barrier()
