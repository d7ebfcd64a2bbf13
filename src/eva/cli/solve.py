"""`eva solve`: the cheapest configuration for a file of tasks, with a reason for every instance."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from eva.cli.catalog import CpuColumn, complete_catalog
from eva.cli.console import JsonOption, print_json, print_note
from eva.cli.policies import complete_policy, policy_named

if TYPE_CHECKING:
    from eva.inputs.task_files import TaskFile
    from eva.model.catalog import Catalog


def solve(
    tasks: Annotated[
        str,
        typer.Option(
            "--tasks",
            "-t",
            metavar="FILE",
            help="The tasks, as CSV or YAML; - reads standard input.",
        ),
    ],
    catalog: Annotated[
        str,
        typer.Option(
            "--catalog",
            "-c",
            metavar="NAME|FILE",
            help="What can be rented: a built-in catalog (eva catalog list) or a CSV or YAML file.",
            autocompletion=complete_catalog,
        ),
    ] = "paper",
    policy: Annotated[
        str,
        typer.Option(
            "--policy",
            "-p",
            metavar="NAME",
            help="Who plans: eva, optimal, no-packing, stratus, synergy, owl, ...",
            autocompletion=complete_policy,
        ),
    ] = "eva",
    interference: Annotated[
        str | None,
        typer.Option(
            "--interference",
            metavar="FILE",
            help="Matrix (CSV) of measured throughput: row slowed by column. Required by owl.",
        ),
    ] = None,
    default_throughput: Annotated[
        float | None,
        typer.Option(
            "--default-throughput",
            metavar="T",
            help="Speed expected beside each neighbour that is not measured, in (0, 1]. "
            "Default: 1 without --interference (prices alone decide), 0.95 with it, "
            "as in a running cluster.",
        ),
    ] = None,
    cpu_column: CpuColumn = None,
    json: JsonOption = False,
) -> None:
    """Find the cheapest instances that host a set of tasks, and say why each is worth its price.

    Columns of FILE: id, workload, gpus, cpus, memory_gb. Optional: cpus.FAMILY (likewise gpus.
    and memory_gb.) where a family needs another amount, job for tasks that belong together,
    throughput and throughput.FAMILY in iterations per second, duration_h (required by stratus),
    use_spot (true where the task may run on spot instances, if the catalog has prices for them).

    Example: eva solve --tasks examples/paper-example/tasks.csv --catalog paper
    """
    from eva.cli.solving import Expectations
    from eva.cli.solving import solve as run
    from eva.inputs import catalogs, task_files

    chosen = policy_named(policy)
    price_list = catalogs.load(catalog, cpu_column)
    file = task_files.load(tasks)
    _note_unknown_families(file, price_list)
    solution = run(file, price_list, chosen, Expectations.read(interference, default_throughput))
    if json:
        from eva.cli.solve_json import as_json

        print_json(as_json(solution))
    else:
        from eva.cli.solve_text import print_solution

        print_solution(solution)


def _note_unknown_families(file: TaskFile, catalog: Catalog) -> None:
    from eva.inputs.problems import did_you_mean

    for family in file.families:
        if family not in catalog.families:
            hint = did_you_mean(family, catalog.families)
            print_note(
                f"{file.source}: catalog {catalog.name} has no family {family!r}, so its columns "
                f"count for nothing{hint}"
            )
