"""`eva catalog`: what can be rented, and for how much."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from eva.cli.console import JsonOption, print_json, stdout

if TYPE_CHECKING:
    from eva.model.catalog import Catalog, InstanceType

app = typer.Typer(help="Show the price lists: built in, or yours.", no_args_is_help=True)


def complete_catalog(incomplete: str) -> list[str]:
    from eva.inputs.catalogs import BUILT_IN

    return [name for name in BUILT_IN if name.startswith(incomplete)]


CatalogName = Annotated[
    str,
    typer.Argument(
        metavar="NAME|FILE",
        help="A built-in catalog, or a CSV or YAML file.",
        autocompletion=complete_catalog,
    ),
]
CpuColumn = Annotated[
    str | None,
    typer.Option(
        "--cpu-column",
        metavar="COLUMN",
        help="What counts as CPU capacity: cpus, vcpus or physical_cores.",
    ),
]


@app.command("list")
def list_catalogs(json: JsonOption = False) -> None:
    """List the built-in catalogs."""
    from rich.table import Table

    from eva.inputs.catalogs import BUILT_IN, builtin

    catalogs = [(entry, builtin(entry.name)) for entry in BUILT_IN.values()]
    if json:
        print_json(
            [
                {
                    "name": entry.name,
                    "types": len(catalog),
                    "families": list(catalog.families),
                    "description": entry.description,
                }
                for entry, catalog in catalogs
            ]
        )
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("name", "types", "families", "what it is"):
        table.add_column(
            heading, overflow="fold", justify="right" if heading == "types" else "left"
        )
    for entry, catalog in catalogs:
        families = ", ".join(catalog.families)
        table.add_row(entry.name, str(len(catalog)), families, entry.description)
    stdout().print(table)


@app.command("show")
def show(
    name: CatalogName,
    family: Annotated[
        str | None, typer.Option("--family", help="Only the types of this family.")
    ] = None,
    cpu_column: CpuColumn = None,
    json: JsonOption = False,
) -> None:
    """Show the instance types of a catalog, dearest first."""
    from eva.inputs.catalogs import load

    catalog = load(name, cpu_column)
    if family is not None:
        catalog = _only_family(catalog, family)
    if json:
        print_json({"name": catalog.name, "types": [_as_json(kind) for kind in catalog]})
    else:
        _print_types(catalog)


def _only_family(catalog: Catalog, family: str) -> Catalog:
    from eva.inputs.problems import did_you_mean
    from eva.model.errors import InputError

    if family not in catalog.families:
        hint = did_you_mean(family, catalog.families)
        known = ", ".join(catalog.families)
        message = f"{family!r} is no family of catalog {catalog.name}{hint} (families: {known})"
        raise InputError.single("--family", message)
    return catalog.with_types(kind for kind in catalog if kind.family == family)


def _as_json(kind: InstanceType) -> dict[str, Any]:
    from eva.model.units import MIB_PER_GB, MILLIS_PER_CPU, MS_PER_SECOND, micros_to_usd

    spot = kind.spot_hourly_micros
    return {
        "type": kind.name,
        "family": kind.family,
        "gpus": kind.capacity.gpus,
        "cpus": kind.capacity.cpu_millis / MILLIS_PER_CPU,
        "memory_gb": kind.capacity.memory_mib / MIB_PER_GB,
        "usd_per_hour": micros_to_usd(kind.hourly_micros),
        "spot_usd_per_hour": None if spot is None else micros_to_usd(spot),
        "interruption_risk_usd_per_hour": None if spot is None else micros_to_usd(_risk(kind)),
        "price_as_of": kind.price_as_of or None,
        "acquire_s": kind.delays.acquire_ms / MS_PER_SECOND,
        "setup_s": kind.delays.setup_ms / MS_PER_SECOND,
        "terminate_s": kind.delays.terminate_ms / MS_PER_SECOND,
    }


def _risk(kind: InstanceType) -> int:
    """Before anything is learned."""
    from eva.scheduling.spot import SpotRisk

    risk = SpotRisk()
    return risk.micros(kind, risk.believed)


def _print_types(catalog: Catalog) -> None:
    from rich.table import Table

    from eva.model.units import MIB_PER_GB, MILLIS_PER_CPU, format_duration, format_usd

    has_spot = any(kind.spot_hourly_micros is not None for kind in catalog)
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("type", no_wrap=True)
    for heading in (
        "GPUs",
        "CPUs",
        "GB",
        "$/hour",
        *(["spot $/hour", "risk $/hour"] if has_spot else []),
        "ready",
    ):
        table.add_column(heading, justify="right")
    for kind in catalog:
        table.add_row(
            kind.name,
            str(kind.capacity.gpus or ""),
            f"{kind.capacity.cpu_millis / MILLIS_PER_CPU:g}",
            f"{kind.capacity.memory_mib / MIB_PER_GB:g}",
            format_usd(kind.hourly_micros, 4),
            *(_spot_cells(kind) if has_spot else []),
            format_duration(kind.delays.acquire_ms + kind.delays.setup_ms),
        )
    console = stdout()
    console.print(table)
    dates = sorted({kind.price_as_of for kind in catalog if kind.price_as_of})
    if dates:
        console.print(f"Prices as of {dates[0]}; spot prices are typical ones.", style="dim")
    if has_spot:
        console.print(_why_risk(), style="dim")


def _spot_cells(kind: InstanceType) -> list[str]:
    from eva.model.units import format_usd

    spot = kind.spot_hourly_micros
    return ["", ""] if spot is None else [format_usd(spot, 4), format_usd(_risk(kind), 4)]


def _why_risk() -> str:
    from eva.model.units import format_duration
    from eva.scheduling.spot import SpotRisk

    risk = SpotRisk()
    every = format_duration(risk.believed.in_ms // risk.believed.interruptions)
    return (
        f"Risk: what interruptions on spot are expected to cost where nothing is learned yet: one "
        f"in {every}, each costing the on-demand price for {format_duration(risk.lost_ms)} and for "
        "the time until another instance is ready. It is decided by, and not billed."
    )
