"""Running the cells that have no result yet: here on all cores, or on an existing Dask cluster.

A cell that fails does not take the others with it: it is named at the end, with its reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from eva.evaluation.cell import Cell, code_version
from eva.evaluation.cell_run import Measures, run_cell, run_cell_elsewhere
from eva.evaluation.results import Results
from eva.evaluation.workers import workers
from eva.model.errors import EvaError, InputError, TryAgainError

Done = Callable[[Cell], None]
_Outcome = tuple[Cell, Measures | EvaError]


@dataclass(frozen=True, slots=True)
class Means:
    """Where to run: so many processes, or a Dask scheduler at an address."""

    processes: int
    dask: str | None = None


def run_missing(cells: Sequence[Cell], results: Results, means: Means, done: Done) -> None:
    """Run what is missing and keep each result at once; `done` is told of every cell."""
    missing: list[Cell] = []
    for cell in dict.fromkeys(cells):
        if results.get(cell) is None:
            missing.append(cell)
        else:
            done(cell)
    failed: list[tuple[Cell, EvaError]] = []
    outcomes = _on_dask(missing, means.dask) if means.dask else _here(missing, means.processes)
    for cell, outcome in outcomes:
        if isinstance(outcome, EvaError):
            failed.append((cell, outcome))
        else:
            results.put(cell, outcome)
        done(cell)
    if failed:
        told = "\n".join(f"{cell.policy}, seed {cell.seed}: {error}" for cell, error in failed)
        raise EvaError(
            f"{len(failed)} of {len(cells)} cells failed; the others are kept, and running again "
            f"tries these:\n{told}"
        )


def _here(cells: Sequence[Cell], processes: int) -> Iterator[_Outcome]:
    if not cells:
        return
    if min(processes, len(cells)) == 1:
        yield from (_attempt(cell) for cell in cells)
        return
    with workers(min(processes, len(cells))) as pool:
        futures = {pool.submit(_attempt, cell) for cell in cells}
        for future in pool.as_completed(futures, lambda _ended: None):
            yield future.result()


def _attempt(cell: Cell) -> _Outcome:
    try:
        return cell, run_cell(cell)
    except EvaError as error:
        return cell, error


def _on_dask(cells: Sequence[Cell], address: str) -> Iterator[_Outcome]:
    try:
        from dask.distributed import Client, as_completed  # noqa: PLC0415  # an extra
    except ImportError:
        raise InputError.single(
            "--dask", "needs Dask; install it with: pip install 'eva-scheduler[dask]'"
        ) from None
    try:
        client = Client(address, timeout=10)
    except (OSError, ValueError) as error:
        raise TryAgainError(f"no Dask scheduler answers at {address}: {error}") from None
    with client:
        code = code_version()
        futures = {
            client.submit(run_cell_elsewhere, cell, code, key=f"eva-{cell.key}"): cell
            for cell in cells
        }
        for future in as_completed(list(futures)):
            problem = future.exception()
            if problem is None:
                yield futures[future], future.result()
            elif isinstance(problem, EvaError):
                yield futures[future], problem
            else:
                yield futures[future], EvaError(f"on a Dask worker: {problem!r}")
