"""What the world says reaches the controller: at once, or late, or twice, as the faults have it."""

from __future__ import annotations

from collections.abc import Callable

from eva.control.events import Event
from eva.simulator.faults import Faults
from eva.simulator.timeline import Timeline


class Messenger:
    def __init__(
        self, timeline: Timeline, faults: Faults, deliver: Callable[[Event], None]
    ) -> None:
        self._timeline = timeline
        self._faults = faults
        self._deliver = deliver

    def send(self, event: Event) -> None:
        faults, settings = self._faults, self._faults.settings
        if faults.strikes(settings.message_twice):
            self._timeline.after(faults.lateness_ms(), lambda: self._deliver(event))
        if faults.strikes(settings.message_late):
            self._timeline.after(faults.lateness_ms(), lambda: self._deliver(event))
        else:
            self._deliver(event)
