"""The Provisioner: launches instances, drains them, and has them terminated.

An instance that the plan drops is drained: it is terminated once its last copy has left, and
taken back if a copy turns out not to leave. An instance is only gone when the cloud says so.
"""

from __future__ import annotations

from eva.control.commands import Command, LaunchInstance, TerminateInstance
from eva.control.interruptions import Interruptions
from eva.control.lifecycle import InstanceState, InstanceStep
from eva.control.state import Instance, State
from eva.model.catalog import InstanceType
from eva.model.ids import InstanceId


class Provisioner:
    def __init__(self, state: State, interruptions: Interruptions) -> None:
        self._state = state
        self._interruptions = interruptions

    def launch(self, kind: InstanceType, now_ms: int, out: list[Command]) -> Instance:
        state = self._state
        state.launches += 1
        instance = Instance(InstanceId(f"i-{state.launches}"), kind, now_ms)
        state.instances[instance.id] = instance
        state.ledger.launch(instance.id, kind.name, kind.billed_micros, now_ms)
        state.dirty_instances = True
        out.append(LaunchInstance(instance.id, kind))
        return instance

    def acquired(self, name: InstanceId, at_ms: int) -> None:
        """Billing starts, also where the launch was called off meanwhile."""
        self._state.ledger.acquire(name, at_ms, confirmed=True)
        instance = self._state.instances.get(name)
        if instance is not None and instance.state is InstanceState.REQUESTED:
            instance.step(InstanceStep.ACQUIRE)

    def registered(self, instance: Instance, now_ms: int) -> bool:
        """Whether this is news. The cloud's word may be slower than the worker's."""
        if instance.state not in (InstanceState.REQUESTED, InstanceState.ACQUIRED):
            return False
        self._state.ledger.acquire(instance.id, now_ms, confirmed=False)
        instance.step(InstanceStep.REGISTER)
        instance.ready_ms = now_ms
        self._interruptions.ready(instance, now_ms)
        return True

    def drop(self, instance: Instance, out: list[Command]) -> None:
        """The instance is not in the plan, or not for long, and nothing is bound for it."""
        if not instance.copies:
            self._terminate(instance, out)
        elif instance.ready:
            instance.step(InstanceStep.DRAIN)
            self._state.dirty_instances = True

    def copy_left(self, instance: Instance, out: list[Command]) -> None:
        """Terminate a drained instance with its last copy."""
        if instance.state is InstanceState.DRAINING and not instance.copies:
            self._terminate(instance, out)

    def retain(self, instance: Instance) -> bool:
        """Take a drained instance back for a task that does not leave after all."""
        if instance.state is InstanceState.DRAINING and not instance.doomed:
            instance.step(InstanceStep.RETAIN)
            self._state.dirty_instances = True
        return instance.usable

    def abandon(self, instance: Instance, out: list[Command]) -> None:
        """Have a silent instance terminated, whatever may still run on it."""
        instance.doom()
        if instance.state is not InstanceState.TERMINATING:
            self._terminate(instance, out)

    def gone(self, instance: Instance, at_ms: int, ended_by: str, *, refused: bool) -> None:
        instance.step(InstanceStep.VANISH)
        self._interruptions.gone(instance, self._state.now_ms)
        del self._state.instances[instance.id]
        self._state.ledger.close(instance.id, at_ms, ended_by, refused=refused)
        self._state.dirty_instances = True

    def _terminate(self, instance: Instance, out: list[Command]) -> None:
        instance.step(InstanceStep.TERMINATE)
        self._state.dirty_instances = True
        out.append(TerminateInstance(instance.id))
