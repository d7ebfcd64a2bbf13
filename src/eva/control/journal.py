"""Events to JSON and back, exactly, and from a journal back to the state.

The codec is generic over dataclasses: it reads the types of their fields once per class. Instance
types of the catalog are written by name, so a journal is read back under the catalog under which
it was written; every record carries the version of this format.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from typing import Any

from eva.control import events
from eva.control.controller import Controller
from eva.control.events import Event
from eva.control.state import Instance, Job, State, Task
from eva.model.catalog import Catalog, InstanceType
from eva.model.errors import OperatorError

VERSION = 1
Json = Any
_Decode = Callable[[Json], Any]

EVENT_TYPES: Mapping[str, type] = {kind.__name__: kind for kind in typing.get_args(events.Event)}


class Codec:
    """Encodes and decodes events under one catalog."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._fields: dict[type, tuple[str, ...]] = {}
        self._decoders: dict[Any, _Decode] = {}

    def encode(self, now_ms: int, event: Event) -> dict[str, Json]:
        record = {"v": VERSION, "time_ms": now_ms, "event": type(event).__name__}
        return record | self._encode_fields(event)

    def line(self, now_ms: int, event: Event) -> bytes:
        """One record as a line of canonical JSON."""
        record = self.encode(now_ms, event)
        return json.dumps(record, sort_keys=True, separators=(",", ":")).encode() + b"\n"

    def decode(self, record: Mapping[str, Json]) -> tuple[int, Event]:
        """Raises OperatorError for anything that this version did not write."""
        if record.get("v") != VERSION:
            raise OperatorError(
                f"journal record of version {record.get('v')!r}; this Eva reads version {VERSION}"
            )
        kind = EVENT_TYPES.get(str(record.get("event")))
        if kind is None:
            raise OperatorError(f"journal record of unknown event {record.get('event')!r}")
        try:
            event: Event = self._decoder(kind)(record)
            return int(record["time_ms"]), event
        except (KeyError, TypeError, ValueError) as error:
            raise OperatorError(
                f"journal record of {kind.__name__} is damaged ({error}); restore the journal"
            ) from error

    def _encode(self, value: Any) -> Json:
        if value is None or isinstance(value, (str, int, float)):
            return value
        if isinstance(value, InstanceType):
            known = self._catalog.get(value.name)
            return value.name if known == value else self._encode_fields(value)
        if isinstance(value, tuple):
            return [self._encode(item) for item in value]
        if isinstance(value, Enum):
            return value.value
        return self._encode_fields(value)

    def _encode_fields(self, value: Any) -> dict[str, Json]:
        kind = type(value)
        names = self._fields.get(kind)
        if names is None:
            names = self._fields[kind] = tuple(field.name for field in dataclasses.fields(kind))
        return {name: self._encode(getattr(value, name)) for name in names}

    def _decoder(self, hint: Any) -> _Decode:
        found = self._decoders.get(hint)
        if found is None:
            found = self._decoders[hint] = self._make_decoder(hint)
        return found

    def _make_decoder(self, hint: Any) -> _Decode:
        if isinstance(hint, typing.NewType):
            return self._decoder(hint.__supertype__)
        if hint is InstanceType:
            fields = self._dataclass_decoder(InstanceType)
            return lambda raw: self._named_type(raw) if isinstance(raw, str) else fields(raw)
        if dataclasses.is_dataclass(hint) and isinstance(hint, type):
            return self._dataclass_decoder(hint)
        if typing.get_origin(hint) in (typing.Union, types.UnionType):
            (inner,) = (arg for arg in typing.get_args(hint) if arg is not types.NoneType)
            decode = self._decoder(inner)
            return lambda raw: None if raw is None else decode(raw)
        if typing.get_origin(hint) is tuple:
            return self._tuple_decoder(typing.get_args(hint))
        if isinstance(hint, type) and issubclass(hint, tuple):  # a NamedTuple
            return lambda raw: hint(*raw)
        if hint in (int, float, str, bool):
            return _exactly(hint)
        raise TypeError(f"the journal has no way to read a {hint}")

    def _tuple_decoder(self, items: tuple[Any, ...]) -> _Decode:
        if items[-1] is Ellipsis:
            decode = self._decoder(items[0])
            return lambda raw: tuple(decode(item) for item in raw)
        decoders = [self._decoder(item) for item in items]
        return lambda raw: tuple(d(item) for d, item in zip(decoders, raw, strict=True))

    def _dataclass_decoder(self, kind: type) -> _Decode:
        hints = typing.get_type_hints(kind)
        # Resolved when used: a type may contain itself.
        # What has a default may be missing: it was added after the record was written.
        names = [
            (field.name, hints[field.name], field.default is not dataclasses.MISSING)
            for field in dataclasses.fields(kind)
        ]
        return lambda raw: kind(
            **{
                name: self._decoder(hint)(raw[name])
                for name, hint, optional in names
                if name in raw or not optional
            }
        )

    def _named_type(self, name: str) -> InstanceType:
        found = self._catalog.get(name)
        if found is None:
            raise OperatorError(
                f"the journal names instance type {name!r}, which catalog "
                f"{self._catalog.name!r} does not have; start with the catalog it was written under"
            )
        return found


def _exactly(kind: type) -> _Decode:
    """Refuse what JSON could smuggle in: a bool for a number, text for either."""

    def decode(raw: Json) -> Any:
        if kind is float and type(raw) is int:
            return float(raw)
        if type(raw) is not kind:
            raise TypeError(f"{raw!r} is not of type {kind.__name__}")
        return raw

    return decode


def fold(journal: Iterable[tuple[int, Event]], controller: Controller) -> Controller:
    """Bring a fresh controller to where the journal ends. Commands were carried out long ago."""
    for now_ms, event in journal:
        controller.handle(event, now_ms)
    return controller


def digest(state: State) -> str:
    """Equal for equal states, and for nothing else: caches and unhappened futures left out."""
    text = json.dumps(summary(state), sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def summary(state: State) -> dict[str, Json]:
    """The whole state as plain values. Order counts, so everything that has one is a list."""
    return {
        "jobs": [_job(job) for job in state.jobs.values()],
        "instances": [_instance(instance) for instance in state.instances.values()],
        "records": [dataclasses.astuple(record) for record in state.records.values()],
        "accounts": [dataclasses.astuple(account) for account in state.ledger],
        "closed_micros": state.ledger.closed_micros,
        "catalog": None if state.catalog is None else list(map(dataclasses.astuple, state.catalog)),
        "set_aside": list(state.set_aside.items()),
        "spot": [[family, *dataclasses.astuple(seen)] for family, seen in state.spot.items()],
        "on_spot": list(state.on_spot),
        "table": [dataclasses.astuple(entry) for entry in state.table],
        "table_default": state.table.default,
        "standalone": [[*key, value] for key, value in state.standalone.items()],
        "unobserved": list(state.unobserved),
        "limited": list(state.limited),
        "decision": None if state.decision is None else dataclasses.astuple(state.decision),
        "counters": {
            name: getattr(state, name)
            for name in (
                "launches",
                "round",
                "planning",
                "replan",
                "prices_unfit",
                "began_ms",
                "now_ms",
                "events",
                "events_asked",
                "events_planned",
                "full_reconfigurations",
                "migrations",
                "decision_round",
            )
        },
    }


def _job(job: Job) -> dict[str, Json]:
    plain = _plain(job, without=("tasks", "spec"))
    return plain | {"spec": repr(job.spec), "tasks": [_task(task) for task in job.tasks]}


def _task(task: Task) -> dict[str, Json]:
    places = {
        name: None if place is None else place.id
        for name in ("instance", "home", "origin")
        for place in (getattr(task, name),)
    }
    return _plain(task, without=("job", "spec", "view", *places)) | places


def _instance(instance: Instance) -> dict[str, Json]:
    plain = _plain(instance, without=("type", "view", "copies", "bound"))
    return plain | {
        "type": instance.type.name,
        "copies": list(instance.copies),
        "bound": list(instance.bound),
    }


def _plain(thing: Job | Task | Instance, without: tuple[str, ...]) -> dict[str, Json]:
    names = [field.name for field in dataclasses.fields(thing) if field.name not in without]
    return {name: _value(getattr(thing, name)) for name in names}


def _value(value: Any) -> Json:
    if isinstance(value, Enum):
        return value.name
    if value is None or isinstance(value, (str, int, float, tuple)):
        return value
    return [_value(item) if not isinstance(item, tuple) else str(item) for item in value]
