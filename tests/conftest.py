"""Rules of the whole test session: in CI nothing is skipped, and hypothesis is deterministic.

Tests marked `published` read traces and figures that others published and that are not ours to
ship. They are no tool that could be installed, so without the folder they are left out, not
skipped, and the first lines of the report say so.
"""

from __future__ import annotations

from collections.abc import Generator

import pytest
from hypothesis import settings

from tests.support.requirements import everything_required, shared_folder

# The same examples on every run, so that a red build is a change; no deadline, because two cores
# are shared with the other half of the suite. `--hypothesis-profile explore` searches anew.
settings.register_profile("steady", deadline=None, derandomize=True, max_examples=60)
settings.register_profile("explore", deadline=None, max_examples=2_000)
settings.load_profile("steady")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Turn a skip into a failure where every test is required, whoever skipped."""
    report = yield
    if everything_required() and report.skipped and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid}: every test is required, skipped: {report.longrepr}"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """The same for whole modules that skip themselves while they are collected."""
    report = yield
    if everything_required() and report.skipped:
        report.outcome = "failed"
        report.longrepr = f"{collector.nodeid} skipped itself, and every test is required"
    return report


def pytest_report_header() -> str:
    folder = shared_folder()
    state = "left out, no EVA_SHARED and no ../shared" if folder is None else str(folder)
    return f"published data: {state}"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if shared_folder() is None:
        left_out = [item for item in items if item.get_closest_marker("published")]
        if left_out:
            config.hook.pytest_deselected(items=left_out)
            items[:] = [item for item in items if item not in left_out]
