"""The bill: every instance from the moment that the cloud gave it until it is gone.

An instance that was never acquired costs nothing. Closed accounts are kept as rows for the user
and as one sum, so that asking for the bill costs no more as months go by.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

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

    def uptime_ms(self, now_ms: int) -> int:
        if self.acquired_ms is None:
            return 0
        end_ms = now_ms if self.ended_ms is None else self.ended_ms
        return max(0, end_ms - self.acquired_ms)

    def cost_micros(self, now_ms: int) -> int:
        return cost_micros(self.hourly_micros, self.uptime_ms(now_ms))


@dataclass(slots=True)
class Ledger:
    """Open accounts by instance, closed ones in the order in which they were closed."""

    open: dict[InstanceId, Account] = field(default_factory=dict)
    closed: list[Account] = field(default_factory=list)
    closed_micros: int = 0

    def launch(self, instance: InstanceId, kind: str, hourly_micros: int, now_ms: int) -> None:
        self.open[instance] = Account(instance, kind, hourly_micros, now_ms)

    def acquire(self, instance: InstanceId, now_ms: int) -> None:
        account = self.open[instance]
        if account.acquired_ms is None:
            self.open[instance] = Account(
                instance, account.type, account.hourly_micros, account.launched_ms, now_ms
            )

    def close(self, instance: InstanceId, now_ms: int, ended_by: str) -> Account:
        account = self.open.pop(instance)
        acquired_ms = account.acquired_ms
        closed = Account(
            instance,
            account.type,
            account.hourly_micros,
            account.launched_ms,
            acquired_ms,
            now_ms if acquired_ms is None else max(now_ms, acquired_ms),
            ended_by,
        )
        self.closed.append(closed)
        self.closed_micros += closed.cost_micros(now_ms)
        return closed

    def bill_micros(self, now_ms: int) -> int:
        """What is owed at `now_ms`, to the micro-dollar."""
        running = sum(account.cost_micros(now_ms) for account in self.open.values())
        return self.closed_micros + running

    def __iter__(self) -> Iterator[Account]:
        yield from self.closed
        yield from self.open.values()
