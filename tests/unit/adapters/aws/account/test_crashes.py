"""Stopped after any piece of work, and run again: as if it had never been stopped."""

from __future__ import annotations

import itertools

from eva.adapters.aws.account.plan import Plan, Work
from tests.unit.adapters.aws.account.bench import AccountBench


def all_work(plan: Plan) -> list[Work]:
    return [each for step in plan.steps for each in step.work]


def stop_after(plan: Plan, count: int) -> None:
    """As if the machine lost power after so much of the work."""
    for work in itertools.islice(all_work(plan), count):
        work.do()


def test_a_crash_after_any_step_is_mended_by_the_next_run(account: AccountBench) -> None:
    to_make = len(all_work(account.planned().plan))
    account.init()
    wanted = account.everything()
    to_remove = len(all_work(account.destruction().plan))
    assert min(to_make, to_remove) > 12
    for count in range(1, max(to_make, to_remove)):
        stop_after(account.destruction().plan, count)
        account.destroy()
        assert account.is_empty(), f"after {count} of {to_remove}"
        stop_after(account.planned().plan, count)
        again = account.init()
        assert again.adopted == (), "it was begun here"
        assert account.everything() == wanted, f"after {count} of {to_make}"
    assert account.planned().plan.pending == ()
