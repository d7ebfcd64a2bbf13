"""Between the typed messages of the ports and those on the wire, each way.

Flat messages have the same field names on both sides, so one table translates them all; only what
is nested is written out. A message of a newer peer that is not known here becomes None.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Mapping
from typing import Any

from eva.adapters.grpc.generated import worker_pb2 as pb
from eva.model.ids import InstanceId
from eva.model.resources import Resources
from eva.ports import workers
from eva.ports.runtime import Argv, ExitKind, ImageReference, Script
from eva.ports.storage import WorkdirDigest
from eva.ports.workers import (
    CheckpointPolicy,
    Copy,
    CopyState,
    DockerfileBuild,
    GangPlace,
    Order,
    Report,
    StartOrder,
    TaskRun,
    TaskSample,
    WorkerHello,
)

REPORTS: Mapping[str, type[Any]] = {
    "started": workers.Started,
    "start_failed": workers.StartFailed,
    "checkpointed": workers.Checkpointed,
    "checkpoint_failed": workers.CheckpointFailed,
    "stopped": workers.Stopped,
    "exited": workers.Exited,
    "spot_noticed": workers.SpotNoticed,
}
ORDERS: Mapping[str, type[Any]] = {
    "prepare": workers.PrepareOrder,
    "start": workers.StartOrder,
    "checkpoint": workers.CheckpointOrder,
    "stop": workers.StopOrder,
}
_REPORT_FIELD = {kind: name for name, kind in REPORTS.items()}
_ORDER_FIELD = {kind: name for name, kind in ORDERS.items()}
_PREFIX: Mapping[type[enum.Enum], str] = {ExitKind: "EXIT_KIND_", CopyState: "COPY_STATE_"}


# ---------------------------------------------------------------------------------------- tables
def _fill(message: Any, thing: Any) -> None:
    """Copy the fields of a flat dataclass into a message; None is left out."""
    for spec in dataclasses.fields(thing):
        value = getattr(thing, spec.name)
        if isinstance(value, enum.Enum):
            value = _PREFIX[type(value)] + value.name
        if isinstance(value, str):
            value = _text(value)
        if isinstance(value, TaskRun):
            message.run.CopyFrom(run_to_wire(value))
        elif value is not None:
            setattr(message, spec.name, value)


def _text(value: str) -> str:
    """What protobuf takes: names of files may hold bytes that are no text, JSON half letters."""
    return value.encode("utf-8", "replace").decode()


def _read(kind: type[Any], message: Any) -> Any:
    """A flat dataclass from a message."""
    values: dict[str, Any] = {}
    for spec in dataclasses.fields(kind):
        described = message.DESCRIPTOR.fields_by_name[spec.name]
        value = getattr(message, spec.name)
        if spec.name == "run":
            value = run_from_wire(value)
        elif described.enum_type is not None:
            value = _enum(described.enum_type.name, described.enum_type.values_by_number, value)
        elif described.has_presence and not message.HasField(spec.name):
            value = None
        values[spec.name] = value
    return kind(**values)


_ENUMS: Mapping[str, tuple[type[enum.Enum], enum.Enum]] = {
    "ExitKind": (ExitKind, ExitKind.EXITED),
    "CopyState": (CopyState, CopyState.STARTING),
}


def _enum(name: str, numbers: Mapping[int, Any], number: int) -> enum.Enum:
    """A value of ours; one that only a newer peer knows is taken for the plainest."""
    kind, plainest = _ENUMS[name]
    word = numbers[number].name.removeprefix(_PREFIX[kind]) if number in numbers else ""
    return kind[word] if word in kind.__members__ else plainest


# --------------------------------------------------------------------------- reports and orders
def report_to_wire(number: int, report: Report) -> pb.NumberedReport:
    message = pb.NumberedReport(number=number)
    field = getattr(message, _REPORT_FIELD[type(report)])
    field.SetInParent()
    _fill(field, report)
    return message


def report_from_wire(message: pb.NumberedReport) -> Report | None:
    field = message.WhichOneof("report")
    if field is None:
        return None
    report: Report = _read(REPORTS[field], getattr(message, field))
    return report


def order_to_wire(order: Order) -> pb.FromMaster:
    message = pb.FromMaster()
    _fill(getattr(message, _ORDER_FIELD[type(order)]), order)
    return message


def order_from_wire(message: pb.FromMaster) -> Order | None:
    field = message.WhichOneof("message")
    if field not in ORDERS:
        return None
    order: Order = _read(ORDERS[field], getattr(message, field))
    return order


# ----------------------------------------------------------------------------------------- hello
def hello_to_wire(hello: WorkerHello, protocol: int) -> pb.Hello:
    message = pb.Hello(
        protocol=protocol,
        instance=hello.instance,
        capacity=resources_to_wire(hello.capacity),
        address=hello.address,
        runtime=hello.runtime,
        version=hello.version,
        unacknowledged=hello.unacknowledged,
    )
    for copy in hello.copies:
        _fill(message.copies.add(), copy)
    return message


def hello_from_wire(message: pb.Hello) -> WorkerHello:
    return WorkerHello(
        InstanceId(message.instance),
        resources_from_wire(message.capacity),
        message.address,
        tuple(_read(Copy, copy) for copy in message.copies),
        message.runtime,
        message.version,
        message.unacknowledged,
    )


def sample_to_wire(sample: TaskSample) -> pb.Sample:
    message = pb.Sample()
    _fill(message, sample)
    return message


def sample_from_wire(message: pb.Sample) -> TaskSample:
    sample: TaskSample = _read(TaskSample, message)
    return sample


def resources_to_wire(amount: Resources) -> pb.Resources:
    return pb.Resources(
        gpus=amount.gpus, cpu_millis=amount.cpu_millis, memory_mib=amount.memory_mib
    )


def resources_from_wire(message: pb.Resources) -> Resources:
    return Resources(message.gpus, message.cpu_millis, message.memory_mib)


# ------------------------------------------------------------------------------------------- run
def run_to_wire(run: TaskRun) -> pb.TaskRun:
    message = pb.TaskRun(
        demand=resources_to_wire(run.demand),
        env=[pb.Variable(name=name, value=_text(value)) for name, value in run.env.items()],
        workdir=run.workdir or "",
        shm_mib=run.shm_mib,
        checkpoint=pb.CheckpointPolicy(
            grace_ms=run.checkpoint.grace_ms,
            signal=run.checkpoint.signal or 0,
            restart=run.checkpoint.restart,
        ),
        progress_regex=run.progress_regex or "",
        window_ms=run.window_ms,
        gang=pb.GangPlace(
            rank=run.gang.rank,
            world_size=run.gang.world_size,
            node_ips=run.gang.node_ips,
            master_port=run.gang.master_port,
            network=run.gang.network or "",
        ),
        stop_signal=run.stop_signal,
        stop_grace_ms=run.stop_grace_ms,
    )
    match run.program:
        case Argv(words):
            message.argv.CopyFrom(pb.Argv(words=map(_text, words)))
        case Script(text, interpreter):
            message.script.CopyFrom(pb.Script(text=_text(text), interpreter=interpreter))
    match run.image:
        case ImageReference(reference):
            message.image_reference = reference
        case DockerfileBuild(dockerfile, build_args):
            arguments = [pb.Variable(name=name, value=value) for name, value in build_args]
            message.dockerfile_build.CopyFrom(
                pb.DockerfileBuild(dockerfile=dockerfile, build_args=arguments)
            )
    return message


def run_from_wire(message: pb.TaskRun) -> TaskRun:
    return TaskRun(
        program=_program(message),
        demand=resources_from_wire(message.demand),
        image=_image(message),
        env={variable.name: variable.value for variable in message.env},
        workdir=WorkdirDigest(message.workdir) if message.workdir else None,
        shm_mib=message.shm_mib if message.HasField("shm_mib") else None,
        checkpoint=CheckpointPolicy(
            message.checkpoint.grace_ms,
            message.checkpoint.signal or None,
            message.checkpoint.restart,
        ),
        progress_regex=message.progress_regex or None,
        window_ms=message.window_ms,
        gang=GangPlace(
            message.gang.rank,
            message.gang.world_size,
            tuple(message.gang.node_ips),
            message.gang.master_port,
            message.gang.network or None,
        ),
        stop_signal=message.stop_signal,
        stop_grace_ms=message.stop_grace_ms,
    )


def _program(message: pb.TaskRun) -> Argv | Script | None:
    match message.WhichOneof("program"):
        case "argv":
            return Argv(tuple(message.argv.words))
        case "script":
            return Script(message.script.text, message.script.interpreter)
    return None


def _image(message: pb.TaskRun) -> ImageReference | DockerfileBuild | None:
    match message.WhichOneof("image"):
        case "image_reference":
            return ImageReference(message.image_reference)
        case "dockerfile_build":
            build = message.dockerfile_build
            arguments = tuple((each.name, each.value) for each in build.build_args)
            return DockerfileBuild(build.dockerfile, arguments)
    return None


# ---------------------------------------------------------------------------------- on the disk
def start_to_bytes(order: StartOrder) -> bytes:
    """A start order to be kept by the worker, without the user's environment: it may be secret."""
    bare = dataclasses.replace(order, run=dataclasses.replace(order.run, env={}))
    return order_to_wire(bare).SerializeToString()


def start_from_bytes(content: bytes) -> StartOrder:
    order = order_from_wire(pb.FromMaster.FromString(content))
    if not isinstance(order, StartOrder):
        raise TypeError(f"{order!r} is no start order")
    return order
