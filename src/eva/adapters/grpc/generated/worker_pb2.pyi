from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class RefusalReason(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    REFUSAL_REASON_UNSPECIFIED: _ClassVar[RefusalReason]
    REFUSAL_REASON_TOKEN_UNKNOWN: _ClassVar[RefusalReason]
    REFUSAL_REASON_TOKEN_USED: _ClassVar[RefusalReason]
    REFUSAL_REASON_TOKEN_EXPIRED: _ClassVar[RefusalReason]
    REFUSAL_REASON_BAD_REQUEST: _ClassVar[RefusalReason]
    REFUSAL_REASON_REVOKED: _ClassVar[RefusalReason]
    REFUSAL_REASON_UNKNOWN_INSTANCE: _ClassVar[RefusalReason]
    REFUSAL_REASON_WRONG_INSTANCE: _ClassVar[RefusalReason]
    REFUSAL_REASON_PROTOCOL: _ClassVar[RefusalReason]

class CopyState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    COPY_STATE_UNSPECIFIED: _ClassVar[CopyState]
    COPY_STATE_STARTING: _ClassVar[CopyState]
    COPY_STATE_RUNNING: _ClassVar[CopyState]
    COPY_STATE_CHECKPOINTING: _ClassVar[CopyState]
    COPY_STATE_STOPPING: _ClassVar[CopyState]
    COPY_STATE_ENDED: _ClassVar[CopyState]

class ExitKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    EXIT_KIND_UNSPECIFIED: _ClassVar[ExitKind]
    EXIT_KIND_EXITED: _ClassVar[ExitKind]
    EXIT_KIND_SIGNALLED: _ClassVar[ExitKind]
    EXIT_KIND_OOM_KILLED: _ClassVar[ExitKind]
    EXIT_KIND_NEVER_STARTED: _ClassVar[ExitKind]
    EXIT_KIND_LOST: _ClassVar[ExitKind]

class LogStatus(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    LOG_STATUS_UNSPECIFIED: _ClassVar[LogStatus]
    LOG_STATUS_DONE: _ClassVar[LogStatus]
    LOG_STATUS_UNKNOWN_COPY: _ClassVar[LogStatus]
    LOG_STATUS_FAILED: _ClassVar[LogStatus]
REFUSAL_REASON_UNSPECIFIED: RefusalReason
REFUSAL_REASON_TOKEN_UNKNOWN: RefusalReason
REFUSAL_REASON_TOKEN_USED: RefusalReason
REFUSAL_REASON_TOKEN_EXPIRED: RefusalReason
REFUSAL_REASON_BAD_REQUEST: RefusalReason
REFUSAL_REASON_REVOKED: RefusalReason
REFUSAL_REASON_UNKNOWN_INSTANCE: RefusalReason
REFUSAL_REASON_WRONG_INSTANCE: RefusalReason
REFUSAL_REASON_PROTOCOL: RefusalReason
COPY_STATE_UNSPECIFIED: CopyState
COPY_STATE_STARTING: CopyState
COPY_STATE_RUNNING: CopyState
COPY_STATE_CHECKPOINTING: CopyState
COPY_STATE_STOPPING: CopyState
COPY_STATE_ENDED: CopyState
EXIT_KIND_UNSPECIFIED: ExitKind
EXIT_KIND_EXITED: ExitKind
EXIT_KIND_SIGNALLED: ExitKind
EXIT_KIND_OOM_KILLED: ExitKind
EXIT_KIND_NEVER_STARTED: ExitKind
EXIT_KIND_LOST: ExitKind
LOG_STATUS_UNSPECIFIED: LogStatus
LOG_STATUS_DONE: LogStatus
LOG_STATUS_UNKNOWN_COPY: LogStatus
LOG_STATUS_FAILED: LogStatus

class JoinRequest(_message.Message):
    __slots__ = ("instance", "token", "csr_pem")
    INSTANCE_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    CSR_PEM_FIELD_NUMBER: _ClassVar[int]
    instance: str
    token: str
    csr_pem: bytes
    def __init__(self, instance: _Optional[str] = ..., token: _Optional[str] = ..., csr_pem: _Optional[bytes] = ...) -> None: ...

class JoinReply(_message.Message):
    __slots__ = ("certificate_pem", "refusal")
    CERTIFICATE_PEM_FIELD_NUMBER: _ClassVar[int]
    REFUSAL_FIELD_NUMBER: _ClassVar[int]
    certificate_pem: bytes
    refusal: Refusal
    def __init__(self, certificate_pem: _Optional[bytes] = ..., refusal: _Optional[_Union[Refusal, _Mapping]] = ...) -> None: ...

class Refusal(_message.Message):
    __slots__ = ("reason", "message")
    REASON_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    reason: RefusalReason
    message: str
    def __init__(self, reason: _Optional[_Union[RefusalReason, str]] = ..., message: _Optional[str] = ...) -> None: ...

class FromWorker(_message.Message):
    __slots__ = ("hello", "report", "heartbeat", "log_data", "log_end")
    HELLO_FIELD_NUMBER: _ClassVar[int]
    REPORT_FIELD_NUMBER: _ClassVar[int]
    HEARTBEAT_FIELD_NUMBER: _ClassVar[int]
    LOG_DATA_FIELD_NUMBER: _ClassVar[int]
    LOG_END_FIELD_NUMBER: _ClassVar[int]
    hello: Hello
    report: NumberedReport
    heartbeat: Heartbeat
    log_data: LogData
    log_end: LogEnd
    def __init__(self, hello: _Optional[_Union[Hello, _Mapping]] = ..., report: _Optional[_Union[NumberedReport, _Mapping]] = ..., heartbeat: _Optional[_Union[Heartbeat, _Mapping]] = ..., log_data: _Optional[_Union[LogData, _Mapping]] = ..., log_end: _Optional[_Union[LogEnd, _Mapping]] = ...) -> None: ...

class FromMaster(_message.Message):
    __slots__ = ("welcome", "refusal", "acknowledge", "prepare", "start", "checkpoint", "stop", "log_request", "log_cancel", "heartbeat_reply")
    WELCOME_FIELD_NUMBER: _ClassVar[int]
    REFUSAL_FIELD_NUMBER: _ClassVar[int]
    ACKNOWLEDGE_FIELD_NUMBER: _ClassVar[int]
    PREPARE_FIELD_NUMBER: _ClassVar[int]
    START_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINT_FIELD_NUMBER: _ClassVar[int]
    STOP_FIELD_NUMBER: _ClassVar[int]
    LOG_REQUEST_FIELD_NUMBER: _ClassVar[int]
    LOG_CANCEL_FIELD_NUMBER: _ClassVar[int]
    HEARTBEAT_REPLY_FIELD_NUMBER: _ClassVar[int]
    welcome: Welcome
    refusal: Refusal
    acknowledge: Acknowledge
    prepare: Prepare
    start: Start
    checkpoint: Checkpoint
    stop: Stop
    log_request: LogRequest
    log_cancel: LogCancel
    heartbeat_reply: HeartbeatReply
    def __init__(self, welcome: _Optional[_Union[Welcome, _Mapping]] = ..., refusal: _Optional[_Union[Refusal, _Mapping]] = ..., acknowledge: _Optional[_Union[Acknowledge, _Mapping]] = ..., prepare: _Optional[_Union[Prepare, _Mapping]] = ..., start: _Optional[_Union[Start, _Mapping]] = ..., checkpoint: _Optional[_Union[Checkpoint, _Mapping]] = ..., stop: _Optional[_Union[Stop, _Mapping]] = ..., log_request: _Optional[_Union[LogRequest, _Mapping]] = ..., log_cancel: _Optional[_Union[LogCancel, _Mapping]] = ..., heartbeat_reply: _Optional[_Union[HeartbeatReply, _Mapping]] = ...) -> None: ...

class Resources(_message.Message):
    __slots__ = ("gpus", "cpu_millis", "memory_mib")
    GPUS_FIELD_NUMBER: _ClassVar[int]
    CPU_MILLIS_FIELD_NUMBER: _ClassVar[int]
    MEMORY_MIB_FIELD_NUMBER: _ClassVar[int]
    gpus: int
    cpu_millis: int
    memory_mib: int
    def __init__(self, gpus: _Optional[int] = ..., cpu_millis: _Optional[int] = ..., memory_mib: _Optional[int] = ...) -> None: ...

class Copy(_message.Message):
    __slots__ = ("task", "epoch", "state")
    TASK_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    task: str
    epoch: int
    state: CopyState
    def __init__(self, task: _Optional[str] = ..., epoch: _Optional[int] = ..., state: _Optional[_Union[CopyState, str]] = ...) -> None: ...

class Hello(_message.Message):
    __slots__ = ("protocol", "instance", "capacity", "address", "copies", "runtime", "version", "unacknowledged")
    PROTOCOL_FIELD_NUMBER: _ClassVar[int]
    INSTANCE_FIELD_NUMBER: _ClassVar[int]
    CAPACITY_FIELD_NUMBER: _ClassVar[int]
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    COPIES_FIELD_NUMBER: _ClassVar[int]
    RUNTIME_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    UNACKNOWLEDGED_FIELD_NUMBER: _ClassVar[int]
    protocol: int
    instance: str
    capacity: Resources
    address: str
    copies: _containers.RepeatedCompositeFieldContainer[Copy]
    runtime: str
    version: str
    unacknowledged: int
    def __init__(self, protocol: _Optional[int] = ..., instance: _Optional[str] = ..., capacity: _Optional[_Union[Resources, _Mapping]] = ..., address: _Optional[str] = ..., copies: _Optional[_Iterable[_Union[Copy, _Mapping]]] = ..., runtime: _Optional[str] = ..., version: _Optional[str] = ..., unacknowledged: _Optional[int] = ...) -> None: ...

class Welcome(_message.Message):
    __slots__ = ("protocol", "cluster", "heartbeat_ms", "dead_man_ms")
    PROTOCOL_FIELD_NUMBER: _ClassVar[int]
    CLUSTER_FIELD_NUMBER: _ClassVar[int]
    HEARTBEAT_MS_FIELD_NUMBER: _ClassVar[int]
    DEAD_MAN_MS_FIELD_NUMBER: _ClassVar[int]
    protocol: int
    cluster: str
    heartbeat_ms: int
    dead_man_ms: int
    def __init__(self, protocol: _Optional[int] = ..., cluster: _Optional[str] = ..., heartbeat_ms: _Optional[int] = ..., dead_man_ms: _Optional[int] = ...) -> None: ...

class Heartbeat(_message.Message):
    __slots__ = ("samples",)
    SAMPLES_FIELD_NUMBER: _ClassVar[int]
    samples: _containers.RepeatedCompositeFieldContainer[Sample]
    def __init__(self, samples: _Optional[_Iterable[_Union[Sample, _Mapping]]] = ...) -> None: ...

class HeartbeatReply(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Sample(_message.Message):
    __slots__ = ("task", "epoch", "steps", "rate")
    TASK_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    STEPS_FIELD_NUMBER: _ClassVar[int]
    RATE_FIELD_NUMBER: _ClassVar[int]
    task: str
    epoch: int
    steps: int
    rate: float
    def __init__(self, task: _Optional[str] = ..., epoch: _Optional[int] = ..., steps: _Optional[int] = ..., rate: _Optional[float] = ...) -> None: ...

class NumberedReport(_message.Message):
    __slots__ = ("number", "started", "start_failed", "checkpointed", "checkpoint_failed", "stopped", "exited", "spot_noticed")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    STARTED_FIELD_NUMBER: _ClassVar[int]
    START_FAILED_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINTED_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINT_FAILED_FIELD_NUMBER: _ClassVar[int]
    STOPPED_FIELD_NUMBER: _ClassVar[int]
    EXITED_FIELD_NUMBER: _ClassVar[int]
    SPOT_NOTICED_FIELD_NUMBER: _ClassVar[int]
    number: int
    started: Started
    start_failed: StartFailed
    checkpointed: Checkpointed
    checkpoint_failed: CheckpointFailed
    stopped: Stopped
    exited: Exited
    spot_noticed: SpotNoticed
    def __init__(self, number: _Optional[int] = ..., started: _Optional[_Union[Started, _Mapping]] = ..., start_failed: _Optional[_Union[StartFailed, _Mapping]] = ..., checkpointed: _Optional[_Union[Checkpointed, _Mapping]] = ..., checkpoint_failed: _Optional[_Union[CheckpointFailed, _Mapping]] = ..., stopped: _Optional[_Union[Stopped, _Mapping]] = ..., exited: _Optional[_Union[Exited, _Mapping]] = ..., spot_noticed: _Optional[_Union[SpotNoticed, _Mapping]] = ...) -> None: ...

class Acknowledge(_message.Message):
    __slots__ = ("number",)
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    number: int
    def __init__(self, number: _Optional[int] = ...) -> None: ...

class Started(_message.Message):
    __slots__ = ("task", "epoch", "launch_ms")
    TASK_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    LAUNCH_MS_FIELD_NUMBER: _ClassVar[int]
    task: str
    epoch: int
    launch_ms: int
    def __init__(self, task: _Optional[str] = ..., epoch: _Optional[int] = ..., launch_ms: _Optional[int] = ...) -> None: ...

class StartFailed(_message.Message):
    __slots__ = ("task", "epoch", "reason", "infrastructure")
    TASK_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    INFRASTRUCTURE_FIELD_NUMBER: _ClassVar[int]
    task: str
    epoch: int
    reason: str
    infrastructure: bool
    def __init__(self, task: _Optional[str] = ..., epoch: _Optional[int] = ..., reason: _Optional[str] = ..., infrastructure: _Optional[bool] = ...) -> None: ...

class Checkpointed(_message.Message):
    __slots__ = ("task", "epoch", "attempt", "key", "step", "checkpoint_ms")
    TASK_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINT_MS_FIELD_NUMBER: _ClassVar[int]
    task: str
    epoch: int
    attempt: int
    key: str
    step: int
    checkpoint_ms: int
    def __init__(self, task: _Optional[str] = ..., epoch: _Optional[int] = ..., attempt: _Optional[int] = ..., key: _Optional[str] = ..., step: _Optional[int] = ..., checkpoint_ms: _Optional[int] = ...) -> None: ...

class CheckpointFailed(_message.Message):
    __slots__ = ("task", "epoch", "attempt", "reason")
    TASK_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    task: str
    epoch: int
    attempt: int
    reason: str
    def __init__(self, task: _Optional[str] = ..., epoch: _Optional[int] = ..., attempt: _Optional[int] = ..., reason: _Optional[str] = ...) -> None: ...

class Stopped(_message.Message):
    __slots__ = ("task", "epoch", "reason")
    TASK_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    task: str
    epoch: int
    reason: str
    def __init__(self, task: _Optional[str] = ..., epoch: _Optional[int] = ..., reason: _Optional[str] = ...) -> None: ...

class Exited(_message.Message):
    __slots__ = ("task", "epoch", "exit_code", "kind", "detail", "steps")
    TASK_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    EXIT_CODE_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    DETAIL_FIELD_NUMBER: _ClassVar[int]
    STEPS_FIELD_NUMBER: _ClassVar[int]
    task: str
    epoch: int
    exit_code: int
    kind: ExitKind
    detail: str
    steps: int
    def __init__(self, task: _Optional[str] = ..., epoch: _Optional[int] = ..., exit_code: _Optional[int] = ..., kind: _Optional[_Union[ExitKind, str]] = ..., detail: _Optional[str] = ..., steps: _Optional[int] = ...) -> None: ...

class SpotNoticed(_message.Message):
    __slots__ = ("deadline_ms",)
    DEADLINE_MS_FIELD_NUMBER: _ClassVar[int]
    deadline_ms: int
    def __init__(self, deadline_ms: _Optional[int] = ...) -> None: ...

class Prepare(_message.Message):
    __slots__ = ("job", "task", "run")
    JOB_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    RUN_FIELD_NUMBER: _ClassVar[int]
    job: str
    task: str
    run: TaskRun
    def __init__(self, job: _Optional[str] = ..., task: _Optional[str] = ..., run: _Optional[_Union[TaskRun, _Mapping]] = ...) -> None: ...

class Start(_message.Message):
    __slots__ = ("job", "task", "epoch", "run")
    JOB_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    RUN_FIELD_NUMBER: _ClassVar[int]
    job: str
    task: str
    epoch: int
    run: TaskRun
    def __init__(self, job: _Optional[str] = ..., task: _Optional[str] = ..., epoch: _Optional[int] = ..., run: _Optional[_Union[TaskRun, _Mapping]] = ...) -> None: ...

class Checkpoint(_message.Message):
    __slots__ = ("task", "epoch", "attempt")
    TASK_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    task: str
    epoch: int
    attempt: int
    def __init__(self, task: _Optional[str] = ..., epoch: _Optional[int] = ..., attempt: _Optional[int] = ...) -> None: ...

class Stop(_message.Message):
    __slots__ = ("task", "epoch")
    TASK_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    task: str
    epoch: int
    def __init__(self, task: _Optional[str] = ..., epoch: _Optional[int] = ...) -> None: ...

class TaskRun(_message.Message):
    __slots__ = ("argv", "script", "demand", "image_reference", "dockerfile_build", "env", "workdir", "shm_mib", "checkpoint", "progress_regex", "window_ms", "gang", "stop_signal", "stop_grace_ms")
    ARGV_FIELD_NUMBER: _ClassVar[int]
    SCRIPT_FIELD_NUMBER: _ClassVar[int]
    DEMAND_FIELD_NUMBER: _ClassVar[int]
    IMAGE_REFERENCE_FIELD_NUMBER: _ClassVar[int]
    DOCKERFILE_BUILD_FIELD_NUMBER: _ClassVar[int]
    ENV_FIELD_NUMBER: _ClassVar[int]
    WORKDIR_FIELD_NUMBER: _ClassVar[int]
    SHM_MIB_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINT_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_REGEX_FIELD_NUMBER: _ClassVar[int]
    WINDOW_MS_FIELD_NUMBER: _ClassVar[int]
    GANG_FIELD_NUMBER: _ClassVar[int]
    STOP_SIGNAL_FIELD_NUMBER: _ClassVar[int]
    STOP_GRACE_MS_FIELD_NUMBER: _ClassVar[int]
    argv: Argv
    script: Script
    demand: Resources
    image_reference: str
    dockerfile_build: DockerfileBuild
    env: _containers.RepeatedCompositeFieldContainer[Variable]
    workdir: str
    shm_mib: int
    checkpoint: CheckpointPolicy
    progress_regex: str
    window_ms: int
    gang: GangPlace
    stop_signal: int
    stop_grace_ms: int
    def __init__(self, argv: _Optional[_Union[Argv, _Mapping]] = ..., script: _Optional[_Union[Script, _Mapping]] = ..., demand: _Optional[_Union[Resources, _Mapping]] = ..., image_reference: _Optional[str] = ..., dockerfile_build: _Optional[_Union[DockerfileBuild, _Mapping]] = ..., env: _Optional[_Iterable[_Union[Variable, _Mapping]]] = ..., workdir: _Optional[str] = ..., shm_mib: _Optional[int] = ..., checkpoint: _Optional[_Union[CheckpointPolicy, _Mapping]] = ..., progress_regex: _Optional[str] = ..., window_ms: _Optional[int] = ..., gang: _Optional[_Union[GangPlace, _Mapping]] = ..., stop_signal: _Optional[int] = ..., stop_grace_ms: _Optional[int] = ...) -> None: ...

class Argv(_message.Message):
    __slots__ = ("words",)
    WORDS_FIELD_NUMBER: _ClassVar[int]
    words: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, words: _Optional[_Iterable[str]] = ...) -> None: ...

class Script(_message.Message):
    __slots__ = ("text", "interpreter")
    TEXT_FIELD_NUMBER: _ClassVar[int]
    INTERPRETER_FIELD_NUMBER: _ClassVar[int]
    text: str
    interpreter: str
    def __init__(self, text: _Optional[str] = ..., interpreter: _Optional[str] = ...) -> None: ...

class DockerfileBuild(_message.Message):
    __slots__ = ("dockerfile", "build_args")
    DOCKERFILE_FIELD_NUMBER: _ClassVar[int]
    BUILD_ARGS_FIELD_NUMBER: _ClassVar[int]
    dockerfile: str
    build_args: _containers.RepeatedCompositeFieldContainer[Variable]
    def __init__(self, dockerfile: _Optional[str] = ..., build_args: _Optional[_Iterable[_Union[Variable, _Mapping]]] = ...) -> None: ...

class Variable(_message.Message):
    __slots__ = ("name", "value")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    name: str
    value: str
    def __init__(self, name: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...

class CheckpointPolicy(_message.Message):
    __slots__ = ("grace_ms", "signal", "restart")
    GRACE_MS_FIELD_NUMBER: _ClassVar[int]
    SIGNAL_FIELD_NUMBER: _ClassVar[int]
    RESTART_FIELD_NUMBER: _ClassVar[int]
    grace_ms: int
    signal: int
    restart: bool
    def __init__(self, grace_ms: _Optional[int] = ..., signal: _Optional[int] = ..., restart: _Optional[bool] = ...) -> None: ...

class GangPlace(_message.Message):
    __slots__ = ("rank", "world_size", "node_ips", "master_port", "network")
    RANK_FIELD_NUMBER: _ClassVar[int]
    WORLD_SIZE_FIELD_NUMBER: _ClassVar[int]
    NODE_IPS_FIELD_NUMBER: _ClassVar[int]
    MASTER_PORT_FIELD_NUMBER: _ClassVar[int]
    NETWORK_FIELD_NUMBER: _ClassVar[int]
    rank: int
    world_size: int
    node_ips: _containers.RepeatedScalarFieldContainer[str]
    master_port: int
    network: str
    def __init__(self, rank: _Optional[int] = ..., world_size: _Optional[int] = ..., node_ips: _Optional[_Iterable[str]] = ..., master_port: _Optional[int] = ..., network: _Optional[str] = ...) -> None: ...

class LogRequest(_message.Message):
    __slots__ = ("stream", "task", "epoch", "cursor", "follow")
    STREAM_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    FOLLOW_FIELD_NUMBER: _ClassVar[int]
    stream: int
    task: str
    epoch: int
    cursor: str
    follow: bool
    def __init__(self, stream: _Optional[int] = ..., task: _Optional[str] = ..., epoch: _Optional[int] = ..., cursor: _Optional[str] = ..., follow: _Optional[bool] = ...) -> None: ...

class LogCancel(_message.Message):
    __slots__ = ("stream",)
    STREAM_FIELD_NUMBER: _ClassVar[int]
    stream: int
    def __init__(self, stream: _Optional[int] = ...) -> None: ...

class LogData(_message.Message):
    __slots__ = ("stream", "data", "cursor")
    STREAM_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    stream: int
    data: bytes
    cursor: str
    def __init__(self, stream: _Optional[int] = ..., data: _Optional[bytes] = ..., cursor: _Optional[str] = ...) -> None: ...

class LogEnd(_message.Message):
    __slots__ = ("stream", "status", "message")
    STREAM_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    stream: int
    status: LogStatus
    message: str
    def __init__(self, stream: _Optional[int] = ..., status: _Optional[_Union[LogStatus, str]] = ..., message: _Optional[str] = ...) -> None: ...
