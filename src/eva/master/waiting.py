"""What a live task is waiting for, in words: told from where it is, where it is bound, and why.

The controller notes a reason only where something went wrong or cannot be. Most waiting is neither,
and whoever looks at a job that does not run yet wants to know all the same.
"""

from __future__ import annotations

from eva.control.lifecycle import InstanceState, TaskState
from eva.control.state import Instance, Task

_NAMED = 3  # siblings that a reason names; a gang may have hundreds


def why(task: Task, current_round: int) -> str:
    """Empty for a task that runs and is to stay where it is."""
    said = [task.reason] if task.reason else []
    waits = _waits(task, current_round)
    return "; ".join(said + ([waits] if waits else []))


def _waits(task: Task, current_round: int) -> str:
    match task.state:
        case TaskState.WAITING:
            return _waits_for_a_place(task, current_round)
        case TaskState.ASSIGNED if task.home is not None:
            return f"waits for {_stage(task.home)}"
        case TaskState.STARTING:
            return _starts(task)
        case TaskState.RUNNING if task.home is not None and task.home is not task.instance:
            return f"runs on until {task.home.id} is ready for it"
        case TaskState.CHECKPOINTING:
            return "saves its progress"
        case _:
            return ""


def _waits_for_a_place(task: Task, current_round: int) -> str:
    planned_in = max(task.job.not_before_round, current_round + 1)
    return "" if task.reason else f"is planned for in round {planned_in}"


def _stage(home: Instance) -> str:
    match home.state:
        case InstanceState.REQUESTED:
            return f"{home.id}, a {home.type.name} that the cloud was asked for"
        case InstanceState.ACQUIRED:
            return f"{home.id}, a {home.type.name}, to boot"
        case _:
            return f"room on {home.id}"


def _starts(task: Task) -> str:
    missing = [
        sibling.id
        for sibling in task.job.tasks
        if sibling.instance is None and sibling.state is not TaskState.DONE
    ]
    if missing:
        named = ", ".join(missing[:_NAMED])
        more = f" and {len(missing) - _NAMED} more" if len(missing) > _NAMED else ""
        return f"starts together with {named}{more}"
    return "image, files and storage are made ready"
