"""Instances come and go: launch, acquired (billing starts), registered, terminated.

Events carry the cloud's own time, so that a late message costs nobody money.
"""

from __future__ import annotations

from eva.control.commands import LaunchInstance, TerminateInstance
from eva.control.events import (
    InstanceAcquired,
    InstanceLost,
    InstanceReady,
    InstanceTerminated,
    InstanceUnreachable,
    LaunchRefused,
    SpotNotice,
)
from eva.model.errors import InvariantError
from eva.simulator.delays import Delays
from eva.simulator.faults import Faults
from eva.simulator.messenger import Messenger
from eva.simulator.progress import Progress
from eva.simulator.recorder import touch
from eva.simulator.timeline import Timeline
from eva.simulator.world import World, WorldInstance


class Cloud:
    def __init__(
        self,
        timeline: Timeline,
        world: World,
        progress: Progress,
        messenger: Messenger,
        delays: Delays,
        faults: Faults,
    ) -> None:
        self._timeline = timeline
        self._world = world
        self._progress = progress
        self._messenger = messenger
        self._delays = delays
        self._faults = faults

    def launch(self, command: LaunchInstance) -> None:
        if command.instance in self._world.instances:
            raise InvariantError(f"instance {command.instance} is launched twice")
        instance = WorldInstance(command.instance, command.type, self._timeline.now_ms)
        self._world.instances[instance.id] = instance
        acquire_ms = self._delays.instance(instance.type.delays.acquire_ms)
        if self._faults.strikes(self._faults.settings.launch_refused):
            self._timeline.after(acquire_ms, lambda: self._refuse(instance))
        else:
            self._timeline.after(acquire_ms, lambda: self._acquire(instance))

    def terminate(self, command: TerminateInstance) -> None:
        instance = self._world.instances.get(command.instance)
        if instance is None or instance.terminating:
            return
        if instance.copies and not instance.silent:
            raise InvariantError(
                f"instance {instance.id} is terminated with {list(instance.copies)} still on it"
            )
        instance.terminating = True
        delay_ms = self._delays.instance(instance.type.delays.terminate_ms)
        self._timeline.after(delay_ms, lambda: self._terminated(instance))

    def _refuse(self, instance: WorldInstance) -> None:
        if not instance.terminating:
            self._end(instance)
            self._messenger.send(LaunchRefused(instance.id, "no capacity"))

    def _acquire(self, instance: WorldInstance) -> None:
        if instance.terminating:
            return
        now_ms = instance.acquired_ms = instance.accounted_ms = self._timeline.now_ms
        self._messenger.send(InstanceAcquired(instance.id, now_ms))
        kind = instance.type.delays
        setup_ms = self._delays.instance(kind.start_worker_ms)
        setup_ms += self._delays.instance(kind.register_worker_ms)
        self._timeline.after(setup_ms, lambda: self._register(instance))

    def _register(self, instance: WorldInstance) -> None:
        if instance.terminating or instance.gone:
            return
        touch(instance, self._timeline.now_ms)
        instance.ready_ms = self._timeline.now_ms
        self._messenger.send(InstanceReady(instance.id))
        self._plan_misfortune(instance)

    def _plan_misfortune(self, instance: WorldInstance) -> None:
        faults, settings = self._faults, self._faults.settings
        if faults.strikes(settings.instance_lost):
            self._timeline.after(faults.soon_ms(), lambda: self._lose(instance))
        if faults.strikes(settings.spot_notice):
            self._timeline.after(faults.soon_ms(), lambda: self._give_notice(instance))
        if faults.strikes(settings.instance_unreachable):
            self._timeline.after(faults.soon_ms(), lambda: self._silence(instance))

        if settings.interruptions_per_hour and instance.type.spot:
            self._timeline.after(faults.until_interrupted_ms(), lambda: self._interrupt(instance))

    def _interrupt(self, instance: WorldInstance) -> None:
        if not instance.terminating:
            instance.interrupted = True
            self._give_notice(instance)

    def _lose(self, instance: WorldInstance) -> None:
        if not instance.gone:
            self._end(instance)
            self._messenger.send(InstanceLost(instance.id, self._timeline.now_ms))

    def _give_notice(self, instance: WorldInstance) -> None:
        if not instance.gone:
            deadline_ms = self._timeline.now_ms + self._faults.settings.spot_deadline_ms
            self._messenger.send(SpotNotice(instance.id, deadline_ms))
            self._timeline.at(deadline_ms, lambda: self._lose(instance))

    def _silence(self, instance: WorldInstance) -> None:
        if not instance.gone:
            instance.silent = True
            self._messenger.send(InstanceUnreachable(instance.id))

    def _terminated(self, instance: WorldInstance) -> None:
        if not instance.gone:
            self._end(instance)
            self._messenger.send(InstanceTerminated(instance.id, self._timeline.now_ms))

    def _end(self, instance: WorldInstance) -> None:
        """The instance stops to exist, and every copy on it with it."""
        touch(instance, self._timeline.now_ms)
        for copy in tuple(instance.copies.values()):
            self._progress.halt(copy.job)
            copy.job.rolled_back = True
            self._world.remove(copy)
        instance.ended_ms = self._timeline.now_ms
        del self._world.instances[instance.id]
        self._world.ended.append(instance)
