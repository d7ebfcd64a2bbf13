"""The cluster over time as a picture: what it costs per hour, and which tasks are where.

Instances share lanes, one after the other, so that a cluster of thousands of short-lived instances
is as many lanes high as there were instances at once. Lanes of one type lie together; a grey bar
is an instance that is paid for, the coloured bars in it are tasks by kind of workload.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eva.evaluation.comparison import Run
from eva.evaluation.pictures import new_figure, write_picture
from eva.evaluation.stays import Stay
from eva.model.units import MICROS_PER_USD, MS_PER_HOUR
from eva.simulator.result import InstanceRow
from eva.traces.workloads import kind_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COLOURS = (
    "#d55e00", "#0072b2", "#009e73", "#cc79a7", "#e69f00",
    "#56b4e9", "#8c564b", "#6a3d9a", "#b2df8a", "#444444",
)  # fmt: skip
_PAID = "#d9d9d9"
_LANE_INCHES = 0.16
_LOWEST_INCHES, _HIGHEST_INCHES = 1.6, 12.0
_MOST_LABELS = 40


@dataclass(frozen=True, slots=True)
class _Lanes:
    """Where each instance is drawn, and where the lanes of each type begin and end."""

    of_instance: Mapping[str, int]
    types: Sequence[tuple[str, int, int]]
    count: int


def draw_timeline(run: Run, path: Path) -> None:
    result = run.report.result
    lanes = _lanes(result.instances)
    height = min(_HIGHEST_INCHES, max(_LOWEST_INCHES, _LANE_INCHES * lanes.count))
    figure, (above, below) = new_figure(
        11, 2.6 + height, 2, 1, sharex=True, height_ratios=[1.8, height]
    )
    figure.suptitle(
        f"{result.policy} on {result.trace}: ${run.report.total_usd:,.2f}, "
        f"{result.instances_launched:,} instances, {result.jobs_finished:,} jobs",
        x=0.01,
        ha="left",
        fontsize=11,
    )
    _draw_cost(above, result.instances)
    _draw_lanes(below, result.instances, run.stays, lanes)
    below.set_xlabel("hours since the start of the trace")
    write_picture(figure, path)


def _draw_cost(axes: Axes, instances: Sequence[InstanceRow]) -> None:
    changes: defaultdict[int, int] = defaultdict(int)
    for row in instances:
        changes[row.acquired_ms] += row.hourly_micros
        changes[row.ended_ms] -= row.hourly_micros
    hours, usd, now = [0.0], [0.0], 0
    for at_ms in sorted(changes):
        now += changes[at_ms]
        hours.append(at_ms / MS_PER_HOUR)
        usd.append(now / MICROS_PER_USD)
    axes.fill_between(hours, usd, step="post", color="#f2b38c", linewidth=0)
    axes.step(hours, usd, where="post", color="#d55e00", linewidth=0.8)
    axes.set_ylabel("$ per hour")
    axes.set_ylim(bottom=0)
    axes.set_xlim(left=0)


def _draw_lanes(
    axes: Axes, instances: Sequence[InstanceRow], stays: Sequence[Stay], lanes: _Lanes
) -> None:
    from matplotlib.collections import PolyCollection  # noqa: PLC0415  # an extra
    from matplotlib.patches import Patch  # noqa: PLC0415

    paid = [_box(row.acquired_ms, row.ended_ms, _lane(lanes, row), 0.0, 0.9) for row in instances]
    axes.add_collection(PolyCollection(paid, facecolors=_PAID, linewidths=0))
    kinds = sorted({kind_of(stay.workload) for stay in stays})
    colour = {kind: _COLOURS[place % len(_COLOURS)] for place, kind in enumerate(kinds)}
    boxes: defaultdict[str, list[Any]] = defaultdict(list)
    for stay, slot, slots in _slots(stays):
        low, high = 0.9 * slot / slots, 0.9 * (slot + 1) / slots
        lane = lanes.of_instance[stay.instance]
        boxes[kind_of(stay.workload)].append(_box(stay.began_ms, stay.ended_ms, lane, low, high))
    for kind in kinds:
        axes.add_collection(PolyCollection(boxes[kind], facecolors=colour[kind], linewidths=0))
    handles = [Patch(color=colour[kind], label=kind) for kind in kinds]
    handles.append(Patch(color=_PAID, label="paid, no task"))
    axes.legend(
        handles=handles,
        ncols=len(handles),
        loc="lower left",
        bbox_to_anchor=(0, 1),
        fontsize=8,
        frameon=False,
    )
    axes.set_ylim(max(1, lanes.count), 0)
    axes.grid(visible=False)
    _label_types(axes, lanes)


def _label_types(axes: Axes, lanes: _Lanes) -> None:
    """Names of types that have room for them, a line between every two."""
    room = max(1.0, lanes.count / _MOST_LABELS)
    labelled: list[tuple[float, str]] = []
    for name, first, last in lanes.types:
        axes.axhline(last - 0.05, color="white", linewidth=0.6)
        middle = (first + last) / 2
        if not labelled or middle - labelled[-1][0] >= room:
            labelled.append((middle, name))
    axes.set_yticks([place for place, _ in labelled], [name for _, name in labelled], fontsize=7)
    axes.tick_params(axis="y", length=0)


def _lane(lanes: _Lanes, row: InstanceRow) -> int:
    return lanes.of_instance[row.instance]


def _box(began_ms: int, ended_ms: int, lane: int, low: float, high: float) -> Any:
    left, right = began_ms / MS_PER_HOUR, ended_ms / MS_PER_HOUR
    return [(left, lane + low), (right, lane + low), (right, lane + high), (left, lane + high)]


def _lanes(instances: Sequence[InstanceRow]) -> _Lanes:
    by_type: defaultdict[tuple[int, str], list[InstanceRow]] = defaultdict(list)
    for row in instances:
        by_type[-row.hourly_micros, row.type].append(row)
    places: dict[str, int] = {}
    types: list[tuple[str, int, int]] = []
    first = 0
    for (_, name), rows in sorted(by_type.items()):
        found, used = _shared([(row.acquired_ms, row.ended_ms, row.instance) for row in rows])
        places |= {instance: first + lane for instance, lane in found.items()}
        types.append((name, first, first + used))
        first += used
    return _Lanes(places, types, first)


def _shared(spans: Sequence[tuple[int, int, str]]) -> tuple[dict[str, int], int]:
    """The lowest free lane for each span in order of beginning, and how many lanes that takes."""
    free: list[int] = []
    busy: list[tuple[int, int]] = []
    lanes: dict[str, int] = {}
    count = 0
    for began_ms, ended_ms, name in sorted(spans):
        while busy and busy[0][0] <= began_ms:
            heappush(free, heappop(busy)[1])
        if free:
            lane = heappop(free)
        else:
            lane, count = count, count + 1
        lanes[name] = lane
        heappush(busy, (ended_ms, lane))
    return lanes, count


def _slots(stays: Sequence[Stay]) -> list[tuple[Stay, int, int]]:
    """For each stay, its place among those on the same instance, and how many places it has."""
    on: defaultdict[str, list[Stay]] = defaultdict(list)
    for stay in stays:
        on[stay.instance].append(stay)
    found: list[tuple[Stay, int, int]] = []
    for here in on.values():
        slots, count = _shared([(s.began_ms, s.ended_ms, f"{s.task} {s.began_ms}") for s in here])
        found += [(s, slots[f"{s.task} {s.began_ms}"], count) for s in here]
    return found
