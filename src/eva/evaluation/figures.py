"""Plots of an outcome: lines over a varied parameter, bars where none is varied, uptimes as CDF."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from eva.evaluation import experiment as data
from eva.evaluation.outcome import RELATIVE_COST, Outcome
from eva.evaluation.pictures import OTHER_LOOK, POLICY_LOOKS, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

UPTIME = "uptime_hours"
_WIDTH, _HEIGHT = 4.4, 3.1  # inches, per plot
_PUBLISHED = "published"


def draw(outcome: Outcome) -> Figure | None:
    """All figures of an experiment side by side; None where it has none."""
    wanted = outcome.experiment.figures
    if not wanted:
        return None
    figure: Figure
    figure, axes = new_figure(
        _WIDTH * len(wanted) + 0.2, _HEIGHT + 0.6, 1, len(wanted), squeeze=False
    )
    for one, plot in zip(axes[0], wanted, strict=True):
        if plot.measure == UPTIME:
            _draw_uptimes(one, outcome)
        elif outcome.experiment.vary is None:
            _draw_bars(one, outcome, plot)
        else:
            _draw_lines(one, outcome, plot, outcome.experiment.vary)
    _add_legend(figure, list(axes[0]), outcome)
    return figure


def _add_legend(figure: Figure, plots: list[Axes], outcome: Outcome) -> None:
    """One for all plots, in the order of the policies; what is published comes last."""
    handles = {
        label: handle
        for one in plots
        for handle, label in zip(*one.get_legend_handles_labels(), strict=True)
    }
    ours = [outcome.experiment.label(policy) for policy in outcome.experiment.policies]
    labels = [label for label in ours if label in handles]
    labels += [label for label in handles if label not in labels]
    if labels:
        figure.legend(
            [handles[label] for label in labels],
            labels,
            loc="outside upper left",
            ncols=min(len(labels), 4 * len(plots)),
            fontsize=8,
            frameon=False,
            columnspacing=1.2,
        )


def _policies(outcome: Outcome, plot: data.Figure) -> tuple[str, ...]:
    return plot.policies or outcome.experiment.policies


def _draw_lines(axes: Axes, outcome: Outcome, plot: data.Figure, vary: data.Vary) -> None:
    experiment = outcome.experiment
    for policy in _policies(outcome, plot):
        points = [
            (value, found)
            for value in vary.values
            if (found := outcome.figure(value, policy, plot.measure)) is not None
        ]
        if not points:
            continue
        colour, marker = POLICY_LOOKS.get(policy, OTHER_LOOK)
        axes.errorbar(
            [value for value, _ in points],
            [found.mean for _, found in points],
            yerr=[found.spread or 0.0 for _, found in points],
            color=colour,
            marker=marker,
            markersize=4,
            linewidth=1.4,
            elinewidth=0.8,
            label=experiment.label(policy),
        )
        _mark_published(axes, experiment, policy, plot.measure, colour)
    if plot.log:
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
    axes.set_xticks(list(vary.values), [f"{value:g}" for value in vary.values])
    axes.minorticks_off()
    if vary.higher_is == "left":
        axes.invert_xaxis()
    axes.set_xlabel(vary.label)
    axes.set_title(plot.label, loc="left", fontsize=9)
    _as_percent(axes.yaxis, plot.measure)


def _mark_published(
    axes: Axes, experiment: data.Experiment, policy: str, measure: str, colour: str
) -> None:
    told = [
        (float(row["value"]), float(row[measure]))
        for row in experiment.published
        if row["policy"] == policy and "value" in row and measure in row
    ]
    if told:
        axes.plot(
            [value for value, _ in told],
            [found for _, found in told],
            color=colour,
            linestyle=":",
            marker="o",
            markerfacecolor="white",
            markersize=5,
            label=f"{experiment.label(policy)}, {_PUBLISHED}",
        )


def _draw_bars(axes: Axes, outcome: Outcome, plot: data.Figure) -> None:
    """Ours as bars, the published figure as a line across each."""
    experiment = outcome.experiment
    shown = list(_policies(outcome, plot))
    for place, policy in enumerate(reversed(shown)):
        found = outcome.figure(None, policy, plot.measure)
        if found is None:
            continue
        colour = POLICY_LOOKS.get(policy, OTHER_LOOK)[0]
        axes.barh(place, found.mean, xerr=found.spread, color=colour, height=0.6, ecolor="#555555")
        for row in experiment.published:
            told = row.get(plot.measure)
            if row["policy"] == policy and isinstance(told, (int, float)):
                axes.plot([told, told], [place - 0.4, place + 0.4], color="black", label=_PUBLISHED)
    axes.set_yticks(range(len(shown)), [experiment.label(name) for name in reversed(shown)])
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")
    axes.set_title(plot.label, loc="left", fontsize=9)
    _as_percent(axes.xaxis, plot.measure)


def _draw_uptimes(axes: Axes, outcome: Outcome) -> None:
    experiment = outcome.experiment
    for policy in experiment.policies:
        shares = sorted(
            float(name.removeprefix(f"{UPTIME}."))
            for seed in outcome.points.get((None, policy), {}).values()
            for name in seed
            if name.startswith(f"{UPTIME}.")
        )
        places = list(dict.fromkeys(shares))
        hours = [outcome.figure(None, policy, f"{UPTIME}.{share:g}") for share in places]
        colour = POLICY_LOOKS.get(policy, OTHER_LOOK)[0]
        axes.plot(
            [found.mean for found in hours if found is not None],
            places,
            color=colour,
            linewidth=1.4,
            label=experiment.label(policy),
        )
    axes.set_ylim(0, 1)
    axes.set_xlim(left=0)
    axes.set_xlabel("hours")
    axes.set_title("share of instances up for at most so long", loc="left", fontsize=9)


def _as_percent(axis: Any, measure: str) -> None:
    from matplotlib.ticker import PercentFormatter  # noqa: PLC0415  # an extra

    if measure == RELATIVE_COST or measure.endswith("_share"):
        axis.set_major_formatter(PercentFormatter(1.0))  # decimals as the range needs them
