"""Which instances a journal knows of, for somebody who is not its master and changes nothing.

A running master need not be asked: every intent is in the journal before its instance is asked for,
and the journal can be read beside whoever writes it.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from eva.adapters.stores import JOURNAL_FILE, open_journal
from eva.control.commands import Command
from eva.control.events import Event
from eva.control.settings import ControllerSettings
from eva.master.memory import recall
from eva.model.catalog import Catalog
from eva.model.errors import InputError
from eva.model.ids import InstanceId

CLUSTER_FACT = "cluster"  # the full name of the cluster, drawn once for each journal


@dataclass(frozen=True, slots=True)
class Intents:
    """`journal` is a name that no other journal has; `open` are the instances that are not over."""

    journal: str
    open: frozenset[InstanceId]


def read_intents(store: str | None, home: Path, price_list: Catalog) -> Intents | None:
    """As of now, under the price list that the journal was written under; None: there is none."""
    if not _is_there(store, home):
        return None
    with contextlib.closing(open_journal(store, home)) as journal:
        fact = journal.fact(CLUSTER_FACT)
        if fact is None:
            return None
        memory = recall(journal, price_list, ControllerSettings(), _unheard)
        return Intents(fact.value.decode(), frozenset(memory.state.instances))


def _is_there(store: str | None, home: Path) -> bool:
    """Opening a file that is not there would make it."""
    if store is None:
        return (home / JOURNAL_FILE).exists()
    if not urlsplit(store).scheme and not Path(store).exists():
        raise InputError.single("--store", f"there is no journal at {store}: check the path")
    return True


def _unheard(_now_ms: int, _event: Event, _commands: list[Command]) -> None:
    """Nobody is told of what was long ago."""
