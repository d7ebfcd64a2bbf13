"""`eva serve`, `eva up`, `eva down`: a master in the foreground, in the background, and its end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from eva.cli.catalog import complete_catalog
from eva.cli.connecting import HomeOption, client_for, home_folder
from eva.cli.console import JsonOption, confirm, print_json, print_next
from eva.cli.policies import complete_policy

if TYPE_CHECKING:
    from eva.master.options import ServeOptions

LOG_FILE = "master.log"
PID_FILE = "master.pid"  # as eva.master.server writes it
_START_WITHIN_S, _STOP_WITHIN_S, _LOOK_EVERY_S = 60.0, 600.0, 0.1
_SAID_LINES = 15
_EVA = (sys.executable, "-c", "from eva.cli.main import main; main()")

HostOption = Annotated[str, typer.Option("--host", help="Address to listen on.")]
PortOption = Annotated[int, typer.Option("--port", help="Port of the HTTP API; 0 takes any.")]
StoreOption = Annotated[
    str | None,
    typer.Option("--store", metavar="URL|FILE", help="The journal: postgresql://... or a file."),
]
StorageOption = Annotated[
    str | None,
    typer.Option("--storage", metavar="URL|DIR", help="Global storage: s3://... or a folder."),
]
CatalogOption = Annotated[
    str | None,
    typer.Option(
        "--catalog",
        "-c",
        metavar="NAME|FILE",
        help="What can be rented. Default: paper; aws with --cloud aws.",
        autocompletion=complete_catalog,
    ),
]
PolicyOption = Annotated[
    str,
    typer.Option(
        "--policy", "-p", metavar="NAME", help="Who plans.", autocompletion=complete_policy
    ),
]
RoundOption = Annotated[
    float, typer.Option("--round", metavar="SECONDS", help="The scheduling period.")
]
ScaleOption = Annotated[
    float | None,
    typer.Option(
        "--delay-scale",
        help="Plan with the catalog's delays times this; local instances take so long. "
        "Default: 0; 1 with --cloud aws.",
    ),
]
RuntimeOption = Annotated[str, typer.Option("--runtime", help="How tasks run: process or docker.")]
CertOption = Annotated[Path | None, typer.Option("--tls-cert", help="Certificate of the API.")]
KeyOption = Annotated[Path | None, typer.Option("--tls-key", help="Its key.")]
DeadManOption = Annotated[
    float | None,
    typer.Option(
        "--dead-man",
        metavar="SECONDS",
        help="Instances end when no master is there for this long. Default: 600; 1800 with "
        "--cloud aws.",
    ),
]
CloudOption = Annotated[
    str,
    typer.Option(
        "--cloud",
        metavar="NAME",
        help="Who rents the instances: local plays them on this machine, aws is EC2.",
    ),
]
AwsConfigOption = Annotated[
    Path | None,
    typer.Option(
        "--aws-config",
        metavar="FILE",
        help="What `eva aws init` wrote. Default: aws.yaml in the home folder.",
    ),
]
EndpointOption = Annotated[
    str | None,
    typer.Option("--endpoint-url", metavar="URL", help="Another address of AWS, for emulators."),
]
WorkersHostOption = Annotated[
    str | None,
    typer.Option(
        "--workers-host",
        metavar="ADDRESS",
        help="Where workers' ports listen, which speak mutual TLS. Default: as --host; all "
        "addresses with --cloud aws.",
    ),
]
AdvertiseOption = Annotated[
    str | None,
    typer.Option(
        "--advertise",
        metavar="HOST",
        help="The name or address by which instances reach this machine. Default: as --host; the "
        "machine's own address with --cloud aws.",
    ),
]
SpotOption = Annotated[
    float | None,
    typer.Option(
        "--spot-interruptions",
        metavar="RATE",
        help="How often an hour an instance on spot is expected to be taken back, until that is "
        "learned. Default: 0.05, once in twenty hours.",
    ),
]


def serve(
    home: HomeOption = None,
    host: HostOption = "127.0.0.1",
    port: PortOption = 7332,
    store: StoreOption = None,
    storage: StorageOption = None,
    catalog: CatalogOption = None,
    policy: PolicyOption = "eva",
    round_s: RoundOption = 300.0,
    delay_scale: ScaleOption = None,
    runtime: RuntimeOption = "process",
    tls_cert: CertOption = None,
    tls_key: KeyOption = None,
    dead_man_s: DeadManOption = None,
    cloud: CloudOption = "local",
    aws_config: AwsConfigOption = None,
    endpoint_url: EndpointOption = None,
    workers_host: WorkersHostOption = None,
    advertise: AdvertiseOption = None,
    spot_interruptions: SpotOption = None,
) -> None:
    """Run a master here, in the foreground, until SIGTERM. Jobs survive it: start it again."""
    import asyncio

    from eva.cli.policies import policy_named
    from eva.master.options import ServeOptions
    from eva.master.server import serve as run

    policy_named(policy)
    options = ServeOptions(
        home_folder(home), host, port, store, storage, catalog, policy, round_s, delay_scale,
        runtime, tls_cert, tls_key, dead_man_s=dead_man_s, cloud=cloud, aws_config=aws_config,
        endpoint_url=endpoint_url, workers_host=workers_host, advertise=advertise,
        spot_interruptions=spot_interruptions,
    )  # fmt: skip
    asyncio.run(run(options))


def up(
    home: HomeOption = None,
    port: PortOption = 7332,
    store: StoreOption = None,
    storage: StorageOption = None,
    catalog: CatalogOption = None,
    policy: PolicyOption = "eva",
    round_s: RoundOption = 10.0,
    delay_scale: ScaleOption = None,
    runtime: RuntimeOption = "process",
    dead_man_s: DeadManOption = None,
    cloud: CloudOption = "local",
    aws_config: AwsConfigOption = None,
    endpoint_url: EndpointOption = None,
    workers_host: WorkersHostOption = None,
    advertise: AdvertiseOption = None,
    spot_interruptions: SpotOption = None,
    json: JsonOption = False,
) -> None:
    """Start a cluster: a master in the background, and its cloud.

    The instances are processes on this machine, or machines of EC2 with --cloud aws. Everything is
    kept in the home folder; jobs and instances of an earlier `eva up` are found
    again.
    """
    from eva.cli.policies import policy_named
    from eva.master.options import ServeOptions

    policy_named(policy)
    folder = home_folder(home)
    options = ServeOptions(
        folder, "127.0.0.1", port, store, storage, catalog, policy, round_s, delay_scale, runtime,
        dead_man_s=dead_man_s, cloud=cloud, aws_config=aws_config, endpoint_url=endpoint_url,
        workers_host=workers_host, advertise=advertise, spot_interruptions=spot_interruptions,
    )  # fmt: skip
    options.check()
    already = _is_let_in(folder)
    if not already:
        start_in_background(options)
    _say_up(folder, already, json=json)


def _say_up(folder: Path, already: bool, *, json: bool) -> None:
    with client_for(str(folder)) as client:
        cluster = client.cluster()
    if json:
        print_json({"home": str(folder), "already_running": already} | cluster.model_dump())
        return
    state = "is running already" if already else "is up"
    typer.echo(f"The cluster {state}: catalog {cluster.catalog}, policy {cluster.policy}, a round "
               f"every {cluster.period_ms / 1000:g} s, {cluster.live_jobs} live jobs.")  # fmt: skip
    typer.echo(f"It keeps everything in {folder}.")
    print_next("eva submit JOB.yaml")


def _is_let_in(folder: Path) -> bool:
    """Whether this home's master runs and lets us in.

    One that refuses our token (it was revoked), or whose address cannot be read any more, is ended
    here, so that the next one gives this home a new token. Its jobs go on.
    """
    from eva.master.client import NotRunningError
    from eva.model.errors import EvaError

    try:
        with client_for(str(folder)) as client:
            client.cluster()
    except NotRunningError:
        return False
    except EvaError:
        pid = _master_of(folder)
        if pid is not None:
            os.kill(pid, signal.SIGTERM)
            wait_until_gone(folder)
        return False
    return True


def _master_of(folder: Path) -> int | None:
    """The process of this home's master, if that is what its process id still stands for."""
    try:
        pid = int((folder / PID_FILE).read_text())
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except (OSError, ValueError):
        return None
    return pid if b"serve" in words and os.fsencode(folder) in words else None


def start_in_background(options: ServeOptions) -> subprocess.Popen[bytes]:
    """Start a master that outlives this command; its process, once it answers."""
    from eva.master.home import make_home
    from eva.model.errors import OperatorError

    make_home(options.home)
    log = options.home / LOG_FILE
    log.touch(mode=0o600)
    with log.open("ab") as output:
        begin = output.tell()
        process = subprocess.Popen(  # noqa: S603  this very program
            [*_EVA, *serve_words(options)], stdin=subprocess.DEVNULL, stdout=output, stderr=output,
            start_new_session=True,
        )  # fmt: skip
    deadline = time.monotonic() + _START_WITHIN_S
    while time.monotonic() < deadline:
        if process.poll() is not None:
            said = log.read_bytes()[begin:].decode(errors="replace").strip().splitlines()
            raise OperatorError("the master did not start:\n" + "\n".join(said[-_SAID_LINES:]))
        if is_answering(options.home, process.pid):
            return process
        time.sleep(_LOOK_EVERY_S)
    process.kill()
    raise OperatorError(f"the master did not answer within {_START_WITHIN_S:.0f} s: see {log}")


def is_answering(home: Path, pid: int) -> bool:
    """Whether the master of this process id is there, and not one that was before it."""
    from eva.model.errors import EvaError

    pid_file = home / PID_FILE
    if not pid_file.exists() or pid_file.read_text().strip() != str(pid):
        return False
    try:
        with client_for(str(home)) as client:
            client.health()
    except EvaError:  # what stands in the home may still be of an earlier one, or damaged
        return False
    return True


def serve_words(options: ServeOptions) -> list[str]:
    """What `eva` is told on the command line to be a master with these options."""
    words = ["serve"]
    given = {
        "--home": options.home, "--host": options.host, "--port": options.port,
        "--store": options.store, "--storage": options.storage, "--catalog": options.catalog,
        "--policy": options.policy, "--round": options.round_s,
        "--delay-scale": options.delay_scale, "--runtime": options.runtime,
        "--dead-man": options.dead_man_s, "--cloud": options.cloud,
        "--aws-config": options.aws_config, "--endpoint-url": options.endpoint_url,
        "--workers-host": options.workers_host, "--advertise": options.advertise,
        "--spot-interruptions": options.spot_interruptions,
    }  # fmt: skip
    for name, value in given.items():
        if value is not None:
            words += [name, str(value)]
    return words


def down(
    home: HomeOption = None,
    keep: Annotated[
        bool,
        typer.Option("--keep", help="Only stop the master; jobs and instances go on without it."),
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Cancel live jobs unasked.")] = False,
    json: JsonOption = False,
) -> None:
    """End the cluster: its jobs, its instances, its master."""
    from eva.model.units import format_usd

    folder = home_folder(home)
    with client_for(home) as client:
        cluster = client.cluster()
        if cluster.live_jobs and not (keep or yes):
            question = f"{cluster.live_jobs} live jobs will be cancelled. Go on?"
            confirm(question)
        client.shut_down(cancel=not keep)
    wait_until_gone(folder)
    bill = format_usd(cluster.bill_micros, 4)
    if json:
        print_json({"kept": keep, "bill_micros": cluster.bill_micros})
    elif keep:
        typer.echo("The master stopped; its jobs and instances go on.")
        print_next("eva up")
    else:
        typer.echo(f"The cluster is down. The bill was {bill} when it was asked to stop.")


def wait_until_gone(folder: Path) -> None:
    from eva.model.errors import TryAgainError

    pid_file = folder / PID_FILE
    deadline = time.monotonic() + _STOP_WITHIN_S
    while time.monotonic() < deadline:
        if not pid_file.exists() or not _alive(int(pid_file.read_text() or 0)):
            return
        time.sleep(_LOOK_EVERY_S)
    raise TryAgainError(
        f"the master has not stopped after {_STOP_WITHIN_S:.0f} s: see {folder / LOG_FILE}"
    )


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    return True
