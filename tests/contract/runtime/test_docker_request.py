"""What is asked of Docker, as data: the only way to check GPUs where there are none."""

from __future__ import annotations

from pathlib import Path

import pytest
from docker.types import HostConfig

from eva.adapters.docker import containers
from eva.adapters.docker.engine import meaning_of
from eva.model.errors import EvaError
from eva.model.ids import InstanceId, TaskId
from eva.ports.runtime import (
    Argv,
    DiskFullError,
    ExitKind,
    GangNetwork,
    Home,
    ImageNotFoundError,
    LaunchRefusedError,
    Limits,
    Mount,
    NoSuchDeviceError,
    Prepared,
    RuntimeUnreachableError,
    TaskLaunch,
    TaskRef,
)

HOME = Home("c", InstanceId("i-1"))
LAUNCH = TaskLaunch(
    TaskRef("c", TaskId("train/7.0"), 3),
    Argv(("python", "train.py", "--name", "$HOME; rm -rf /")),
    Prepared("sha256:abc"),
    env={"A": "b"},
    limits=Limits(memory_mib=2_048, pids=100, shm_mib=512),
    cpus=(3, 1),
    gpus=("GPU-1", "GPU-2"),
    mounts=(Mount(Path("/data"), "/eva/job", read_only=True, variable="EVA_JOB_DIR"),),
    network=GangNetwork("train/7", "train-0"),
    labels={"k": "v"},
)


def request(launch: TaskLaunch) -> HostConfig:
    """The host's part as it goes over the wire."""
    return HostConfig(version="1.41", **containers.host_settings(launch, HOME))


def test_gpus_are_asked_for_by_uuid() -> None:
    (devices,) = request(LAUNCH)["DeviceRequests"]
    assert devices["DeviceIDs"] == ["GPU-1", "GPU-2"]
    assert devices["Capabilities"] == [["gpu"]]
    assert devices["Count"] == 0
    assert "NVIDIA_VISIBLE_DEVICES" not in containers.environment(LAUNCH)


def test_a_task_without_gpus_gets_none_whatever_its_image_asks_for() -> None:
    launch = TaskLaunch(LAUNCH.ref, LAUNCH.program, LAUNCH.prepared)
    assert "DeviceRequests" not in request(launch)
    assert containers.environment(launch)["NVIDIA_VISIBLE_DEVICES"] == "void"


def test_the_request_is_closed_by_default() -> None:
    host = request(LAUNCH)
    assert not host.get("Privileged")
    assert host["CapDrop"] == ["ALL"]
    assert host["SecurityOpt"] == ["no-new-privileges"]
    assert host["Init"] is True
    assert host["RestartPolicy"] == {"Name": "no"}
    assert host["LogConfig"]["Config"] == {"max-size": "32m", "max-file": "2"}
    assert [mount["Source"] for mount in host["Mounts"]] == ["/data"]
    assert host["Mounts"][0]["ReadOnly"] is True


def test_limits_and_cpus_are_passed_on_without_swap() -> None:
    host = request(LAUNCH)
    assert host["Memory"] == host["MemorySwap"] == 2_048 * 1024**2
    assert host["PidsLimit"] == 100
    assert host["ShmSize"] == 512 * 1024**2
    assert host["CpusetCpus"] == "1,3"
    assert host["NetworkMode"] == containers.network_name("c", "train/7")


def test_argv_is_a_list_and_labels_name_the_placement() -> None:
    settings = containers.container_settings(LAUNCH, HOME)
    assert settings["entrypoint"] == ["python"]
    assert settings["command"] == ["train.py", "--name", "$HOME; rm -rf /"]
    labels = settings["labels"]
    assert containers.ref_of(labels) == LAUNCH.ref
    assert (labels["eva.instance"], labels["eva.label.k"]) == ("i-1", "v")
    assert settings["environment"]["EVA_JOB_DIR"] == "/eva/job"
    assert settings["environment"]["A"] == "b"


def test_names_differ_where_placements_do() -> None:
    refs = [TaskRef("c", TaskId(task), epoch) for task in ("a.0", "a/0") for epoch in (1, 2)]
    homes = [HOME, Home("c", InstanceId("i-2"))]
    names = {containers.container_name(ref, home) for ref in refs for home in homes}
    assert len(names) == len(refs) * len(homes)


RUN = {"StartedAt": "2026-11-18T21:31:52.22081003Z", "FinishedAt": "2026-11-18T21:31:53.1Z"}


@pytest.mark.parametrize(
    ("code", "out_of_memory", "kind", "shown", "number"),
    [
        (0, False, ExitKind.EXITED, 0, None),
        (128, False, ExitKind.EXITED, 128, None),
        (255, False, ExitKind.EXITED, 255, None),
        (137, False, ExitKind.SIGNALLED, None, 9),
        (137, True, ExitKind.OOM_KILLED, None, 9),
        (1, True, ExitKind.OOM_KILLED, 1, None),  # a child was killed, and it was needed
        (0, True, ExitKind.EXITED, 0, None),  # a child was killed, and it was not
        (143, True, ExitKind.SIGNALLED, None, 15),  # ... and later it was asked to end
    ],
)
def test_one_number_and_a_flag_become_an_end(
    *, code: int, out_of_memory: bool, kind: ExitKind, shown: int | None, number: int | None
) -> None:
    end = containers.exit_of({"ExitCode": code, "OOMKilled": out_of_memory, "Error": "", **RUN})
    assert (end.kind, end.code, end.signal) == (kind, shown, number)
    assert (end.started_ms, end.finished_ms) == (1_795_037_512_220, 1_795_037_513_100)


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("write /var/lib/docker/tmp/x: no space left on device", DiskFullError),
        ('could not select device driver "" with capabilities: [[gpu]]', NoSuchDeviceError),
        (
            "nvidia-container-cli: device error: GPU-x: unknown device: unknown",
            NoSuchDeviceError,
        ),
        ("Requested CPUs are not available - requested 9, available: 0-1", NoSuchDeviceError),
        (
            "pull access denied for no/such, repository does not exist or may require login",
            ImageNotFoundError,
        ),
        ("manifest for busybox:9 not found: manifest unknown", ImageNotFoundError),
        ("toomanyrequests: You have reached your pull rate limit", RuntimeUnreachableError),
        (
            "Get https://registry-1.docker.io/v2/: dial tcp: lookup x: no such host",
            RuntimeUnreachableError,
        ),
        (
            'invalid mount config for type "bind": bind source path does not exist: /no',
            LaunchRefusedError,
        ),
        ("unable to find user nobody2: no matching entries in passwd file", LaunchRefusedError),
    ],
)
def test_messages_of_the_engine_become_typed_errors(said: str, kind: type[EvaError]) -> None:
    error = meaning_of(said, "task job.0")
    assert type(error) is kind
    assert "task job.0" in str(error)
    assert said in str(error)
