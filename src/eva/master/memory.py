"""What the master writes into the journal, and how it remembers everything from it.

Two kinds of records: the controller's events, and the definitions of jobs. Folding them yields the
state; a snapshot spares folding from the first record and is nothing more than that. It is written
in Python's own format and read only by the very code that wrote it (`_schema` tells): any other
Eva folds the journal, which is why the journal is kept whole unless an operator has it compacted.
"""

from __future__ import annotations

import dataclasses
import hashlib
import io
import json
import pickle
import typing
from collections.abc import Callable
from dataclasses import dataclass, field

from eva import __version__
from eva.control import ledger, state
from eva.control.commands import Command
from eva.control.controller import Controller
from eva.control.events import Event
from eva.control.journal import Codec
from eva.control.settings import ControllerSettings
from eva.control.state import State
from eva.master import definitions
from eva.master.definitions import Definition
from eva.master.flattened import LAYOUT, Row, flatten, unflatten
from eva.model import catalog, colocation, jobs, plan, resources, snapshot
from eva.model.catalog import Catalog
from eva.model.errors import OperatorError
from eva.model.ids import JobId
from eva.ports.journal import Entry, Journal, Snapshot

EVENT, DEFINITION = "event", "job"
_ALLOWED_PACKAGES = ("eva.model.", "eva.control.")
_ALLOWED = {("collections", "deque"), ("copyreg", "_reconstructor"), ("builtins", "object")}
_SCHEMA_MODULES = (state, ledger, catalog, colocation, jobs, plan, resources, snapshot)

Witness = Callable[[int, Event, list[Command]], None]


@dataclass(slots=True)
class Memory:
    """The controller with what belongs to it, as of record `seq`."""

    controller: Controller
    codec: Codec
    jobs: dict[JobId, Definition] = field(default_factory=dict)
    seq: int = 0

    @property
    def state(self) -> State:
        return self.controller.state

    def entry(self, now_ms: int, event: Event) -> Entry:
        return Entry(now_ms, EVENT, self.codec.line(now_ms, event))

    def definition_entry(self, now_ms: int, definition: Definition) -> Entry:
        return Entry(now_ms, DEFINITION, definitions.encode(definition))

    def forget_ended(self) -> None:
        """Definitions are needed as long as a copy may be started."""
        for job in [name for name in self.jobs if name in self.state.records]:
            del self.jobs[job]

    def snapshot(self) -> Snapshot:
        jobs = [definitions.encode(definition) for definition in self.jobs.values()]
        content = {"state": flatten(self.state), "jobs": jobs}
        header = json.dumps({"eva": __version__, "schema": schema()}).encode()
        blob = header + b"\n" + pickle.dumps(content, protocol=5)
        return Snapshot(self.seq, self.state.now_ms, blob)


def recall(
    journal: Journal, price_list: Catalog, settings: ControllerSettings, witness: Witness
) -> Memory:
    """Everything that the journal knows. `witness` is told of every event folded."""
    memory = Memory(Controller(price_list, settings), Codec(price_list))
    saved = journal.latest_snapshot()
    if saved is not None:
        _restore(memory, saved, price_list, settings)
    for record in journal.read(memory.seq + 1):
        if record.kind == EVENT:
            now_ms, event = memory.codec.decode(json.loads(record.payload))
            witness(now_ms, event, memory.controller.handle(event, now_ms))
        elif record.kind == DEFINITION:
            definition = definitions.decode(record.payload)
            memory.jobs[definition.job] = definition
        else:
            raise OperatorError(
                f"record {record.seq} of the journal is of unknown kind {record.kind!r}: it was "
                "written by a newer Eva; upgrade this one"
            )
        memory.seq = record.seq
    memory.forget_ended()
    return memory


def _restore(
    memory: Memory, saved: Snapshot, price_list: Catalog, settings: ControllerSettings
) -> None:
    """Take the snapshot in, if this very code wrote it; else the journal is folded instead."""
    header, _, blob = saved.state.partition(b"\n")
    if json.loads(header).get("schema") != schema():
        return
    content = _Unpickler(io.BytesIO(blob)).load()
    memory.controller = restored_controller(price_list, settings, content["state"])
    for raw in content["jobs"]:
        definition = definitions.decode(raw)
        memory.jobs[definition.job] = definition
    memory.seq = saved.seq


def restored_controller(
    price_list: Catalog, settings: ControllerSettings, remembered: dict[str, list[Row]]
) -> Controller:
    """A controller around a state that was flattened."""
    controller = Controller(price_list, settings)
    unflatten(remembered, controller.state)
    controller.state.dirty_tasks = controller.state.dirty_instances = True
    return controller


def schema() -> str:
    """Changes whenever anything that is remembered changes its shape."""
    shapes: list[object] = [LAYOUT]
    for module in _SCHEMA_MODULES:
        for name, kind in sorted(vars(module).items()):
            if isinstance(kind, type) and dataclasses.is_dataclass(kind):
                fields = [(item.name, str(item.type)) for item in dataclasses.fields(kind)]
                shapes.append([module.__name__, name, fields])
    return hashlib.sha256(json.dumps(shapes).encode()).hexdigest()


class _Unpickler(pickle.Unpickler):
    """Reads nothing but Eva's own nouns, whatever the blob says."""

    def find_class(self, module_name: str, name: str) -> typing.Any:
        if module_name.startswith(_ALLOWED_PACKAGES) or (module_name, name) in _ALLOWED:
            return super().find_class(module_name, name)
        raise OperatorError(
            f"the snapshot names {module_name}.{name}, which is nothing that Eva remembers: "
            "somebody else wrote to the journal; restore it from a backup"
        )
