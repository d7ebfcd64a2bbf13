"""Tells Eva how fast a job runs, and lets it be checkpointed and moved.

    from eva_iterator import EvaIterator

    batches = EvaIterator(loader)
    for batch in batches:
        train(batch)
        if batches.should_checkpoint():
            torch.save(state(), batches.checkpoint_dir() / "state.pt")
            batches.checkpoint_done()

Outside Eva this starts no thread, opens no socket and changes nothing.
"""

from eva_iterator.errors import CheckpointError, EvaIteratorError, ProtocolError
from eva_iterator.iterator import EvaIterator
from eva_iterator.manifest import (
    Manifest,
    latest_complete,
    read_manifest,
    verify_manifest,
    write_manifest,
)
from eva_iterator.protocol import CHECKPOINTED_EXIT_CODE
from eva_iterator.task import Task, current_task

__all__ = [
    "CHECKPOINTED_EXIT_CODE",
    "CheckpointError",
    "EvaIterator",
    "EvaIteratorError",
    "Manifest",
    "ProtocolError",
    "Task",
    "current_task",
    "latest_complete",
    "read_manifest",
    "verify_manifest",
    "write_manifest",
]
