"""The bill: every instance from the moment that the cloud gave it until it is gone.

An instance that was never acquired costs nothing. Closed accounts are kept as rows for the user
and as one sum, so that asking for the bill costs no more as months go by.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from eva.model.ids import InstanceId
from eva.model.units import cost_micros


@dataclass(frozen=True, slots=True)
class Account:
    """What one instance costs: `hourly_micros` from acquired to ended, by the millisecond."""

    instance: InstanceId
    type: str
    hourly_micros: int
    launched_ms: int
    acquired_ms: int | None = None
    ended_ms: int | None = None
    ended_by: str = ""
    confirmed: bool = False  # the cloud itself said when it was acquired

    def acquired(self, at_ms: int, *, confirmed: bool) -> Account:
        """This account, paid for from `at_ms` on, or from earlier if that was heard before."""
        at_ms = max(at_ms, self.launched_ms)
        for known_ms in (self.ended_ms, self.acquired_ms):
            if known_ms is not None:
                at_ms = min(at_ms, known_ms)
        return replace(self, acquired_ms=at_ms, confirmed=confirmed or self.confirmed)

    def uptime_ms(self, now_ms: int) -> int:
        if self.acquired_ms is None:
            return 0
        end_ms = now_ms if self.ended_ms is None else self.ended_ms
        return max(0, end_ms - self.acquired_ms)

    def cost_micros(self, now_ms: int) -> int:
        return cost_micros(self.hourly_micros, self.uptime_ms(now_ms))


@dataclass(slots=True)
class Ledger:
    """Open accounts by instance, closed ones in the order in which they were closed.

    The cloud's word that an instance was acquired may come after its worker's word, and even after
    word that it is gone, so accounts that were closed without it are kept at hand (`unconfirmed`:
    their place among the closed).
    """

    open: dict[InstanceId, Account] = field(default_factory=dict)
    closed: list[Account] = field(default_factory=list)
    closed_micros: int = 0
    unconfirmed: dict[InstanceId, int] = field(default_factory=dict)

    def launch(self, instance: InstanceId, kind: str, hourly_micros: int, now_ms: int) -> None:
        self.open[instance] = Account(instance, kind, hourly_micros, now_ms)

    def acquire(self, instance: InstanceId, at_ms: int, *, confirmed: bool) -> None:
        """Billing starts at `at_ms`, or earlier if that was heard before."""
        account = self.open.get(instance)
        if account is not None:
            self.open[instance] = account.acquired(at_ms, confirmed=confirmed)
        elif instance in self.unconfirmed and confirmed:
            index = self.unconfirmed.pop(instance)
            before, after = self.closed[index], self.closed[index].acquired(at_ms, confirmed=True)
            self.closed[index] = after
            self.closed_micros += after.cost_micros(at_ms) - before.cost_micros(at_ms)

    def close(self, instance: InstanceId, now_ms: int, ended_by: str, *, refused: bool) -> None:
        """The instance is gone; one that was refused never was, and is never paid for."""
        account = self.open.pop(instance)
        end_ms = max(now_ms, account.launched_ms)
        closed = replace(account, ended_ms=end_ms, ended_by=ended_by)
        if account.acquired_ms is not None:
            closed = closed.acquired(account.acquired_ms, confirmed=False)
        if not (account.confirmed or refused):
            self.unconfirmed[instance] = len(self.closed)
        self.closed.append(closed)
        self.closed_micros += closed.cost_micros(end_ms)

    def bill_micros(self, now_ms: int) -> int:
        """What is owed at `now_ms`, to the micro-dollar."""
        running = sum(account.cost_micros(now_ms) for account in self.open.values())
        return self.closed_micros + running

    def __iter__(self) -> Iterator[Account]:
        yield from self.closed
        yield from self.open.values()
