"""`eva submit` and `eva exec`: jobs go in, with their price shown first and their output after."""

from __future__ import annotations

import os
import sys
import tempfile
import uuid
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from eva.cli.connecting import HomeOption, client_for
from eva.cli.console import (
    JsonOption,
    confirm,
    print_json,
    print_next,
    print_note,
    tamed,
    visible,
)

if TYPE_CHECKING:
    from eva.inputs.job_file import JobFile
    from eva.master.client import Client
    from eva.master.words import JobOut, LogLine, Preview, Submission

DETACHED_EXIT_CODE = 130
YesOption = Annotated[
    bool, typer.Option("--yes", "-y", help="Do not ask. Needed where there is no terminal.")
]
DetachOption = Annotated[
    bool, typer.Option("--detach", "-d", help="Return at once instead of following the output.")
]


def submit(
    job_file: Annotated[str, typer.Argument(metavar="JOB.yaml", help="The job; - reads stdin.")],
    home: HomeOption = None,
    yes: YesOption = False,
    detach: DetachOption = False,
    key: Annotated[
        str | None,
        typer.Option("--key", help="Idempotency key: a second submit with it changes nothing."),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Show where a job would go and at what price, then submit it.

    Its output is followed until it is over. Ctrl-C detaches; it never stops a job. Exit codes: 0
    the job finished (or was submitted, with --detach or --json), 1 it failed or was cancelled, 2
    the file is wrong, 130 detached.
    """
    from eva.inputs import job_file as reader

    text = reader.read_text(job_file)
    source = reader.source_of(job_file)
    file = reader.parse(text, source)
    folder = Path.cwd() if job_file == "-" else Path(job_file).resolve().parent
    with client_for(home) as client:
        submission = _submission(client, file, text, source, folder, key)
        if not yes:
            _ask(client.preview(submission))
        submitted = client.submit(submission)
        if json:
            print_json(submitted.model_dump())
            return
        again = " (again: this key was submitted before)" if submitted.repeated else ""
        typer.echo(f"Submitted {submitted.job}{again}.")
        if detach:
            print_next(f"eva status {submitted.job}", f"eva logs -f {submitted.job}")
            return
        raise typer.Exit(follow(client, submitted.job))


def exec_(
    command: Annotated[list[str], typer.Argument(metavar="-- COMMAND [ARGS]")],
    home: HomeOption = None,
    gpus: Annotated[str, typer.Option("--gpus", help="GPUs.")] = "0",
    cpus: Annotated[str, typer.Option("--cpus", help="CPUs.")] = "1",
    memory: Annotated[str, typer.Option("--memory", help="Memory, such as 4GB.")] = "1GB",
    name: Annotated[str, typer.Option("--name", help="What to call the job.")] = "exec",
    workdir: Annotated[
        bool, typer.Option("--workdir", help="Give it a copy of the current folder.")
    ] = False,
    image: Annotated[str | None, typer.Option("--image", help="A container image.")] = None,
    detach: DetachOption = False,
    json: JsonOption = False,
) -> None:
    """Run one command as a job of its own, and follow its output.

    Example: eva exec --gpus 1 --cpus 4 -- python train.py --epochs 3

    No shell sees the command: for pipes and variables give it one, as in -- sh -c 'a | b'. Exit
    codes are those of `eva submit`; the command's own is in `eva status JOB`.
    """
    import json as text_of

    from eva.inputs import job_file as reader

    # JSON is YAML, and quotes whatever the words hold.
    fields = {
        "name": name,
        "run": command,
        "resources": {
            "gpus": int(gpus) if gpus.isdigit() else gpus,
            "cpus": cpus,
            "memory": memory,
        },
    }
    if workdir:
        fields["workdir"] = "."
    if image is not None:
        fields["image"] = image
    text = text_of.dumps(fields)
    file = reader.parse(text, "eva exec")
    with client_for(home) as client:
        submission = _submission(client, file, text, "eva exec", Path.cwd(), None)
        submitted = client.submit(submission)
        if json:
            print_json(submitted.model_dump())
            return
        typer.echo(f"Submitted {submitted.job}.", err=True)
        if detach:
            print_next(f"eva status {submitted.job}", f"eva logs -f {submitted.job}")
            return
        raise typer.Exit(follow(client, submitted.job))


def _submission(
    client: Client, file: JobFile, text: str, source: str, folder: Path, key: str | None
) -> Submission:
    from eva.inputs.job_file import missing_secrets
    from eva.master.words import Submission

    secrets = missing_secrets(file, dict(os.environ))
    return Submission(
        job_file=text,
        source=source,
        workdir=_upload(client, file, folder),
        secrets={name: secrets[name] for name, value in file.secrets.items() if value is None},
        key=key or uuid.uuid4().hex,  # our own retries must not make two jobs of one
    )


def _upload(client: Client, file: JobFile, folder: Path) -> str | None:
    """Workdir and file mounts as one folder, stored once per content."""
    import shutil

    from eva.adapters import workdir_archive
    from eva.model.errors import InputError

    if file.workdir is None and not file.file_mounts:
        return None
    with tempfile.TemporaryDirectory() as scratch, tempfile.TemporaryFile() as archive:
        made = Path(scratch) / "workdir"
        if file.workdir is None:
            made.mkdir()
        elif not (folder / file.workdir).is_dir():
            raise InputError.single("workdir", f"{folder / file.workdir} is not a folder")
        elif not (folder / file.workdir).resolve().is_relative_to(folder.resolve()):
            raise InputError.single("workdir", f"{folder / file.workdir} leads out of {folder}")
        elif not file.file_mounts:
            made = folder / file.workdir
        else:
            shutil.copytree(folder / file.workdir, made, symlinks=True)
        for target, origin in file.file_mounts.items():
            path = folder / origin
            if not path.resolve().is_relative_to(folder.resolve()) or not path.exists():
                raise InputError.single(
                    f"file_mounts.{target}", f"{path} does not exist beside the job file"
                )
            (made / target).parent.mkdir(parents=True, exist_ok=True)
            if path.is_dir():
                shutil.copytree(path, made / target, symlinks=True, dirs_exist_ok=True)
            else:
                shutil.copy2(path, made / target)
        workdir_archive.pack(made, archive)
        archive.seek(0)
        return client.store_workdir(archive)


def _ask(preview: Preview) -> None:
    """Money is not spent unasked."""
    for line in preview_lines(preview):
        typer.echo(line, err=True)
    confirm("Submit?", default=True)


def preview_lines(preview: Preview) -> list[str]:
    """Where it would go, and what that adds to the bill."""
    from eva.model.units import format_usd

    lines = []
    for each in preview.instances:
        place = f"{each.instance}, running" if each.instance else "a new instance"
        beside = f" beside {', '.join(each.beside)}" if each.beside else ""
        tasks = f"{each.tasks} task{'s' if each.tasks > 1 else ''}"
        price = format_usd(each.hourly_micros, 4)
        risk = f" + {format_usd(each.risk_micros, 4)}/h of risk" if each.risk_micros else ""
        lines.append(f"  {tasks} on {place} ({each.type}, {price}/h{risk}){beside}")
    if preview.instances:
        added, alone = (
            format_usd(preview.added_micros, 4),
            format_usd(preview.alone_hourly_micros, 4),
        )
        lines.insert(0, "If the next round were now, the job would go to:")
        lines.append(f"That adds {added}/h to the bill; alone it would cost {alone}/h.")
        if any(each.risk_micros for each in preview.instances):
            lines.append(
                "What is on spot may be taken back, and the job starts again from its last "
                "checkpoint. The risk is what that is expected to cost; it is not billed."
            )
    lines += [f"It cannot be placed: {reason}" for reason in preview.unplaceable]
    return lines


def follow(client: Client, job: str) -> int:
    """Print the job's output until it is over; the exit code that says how it went."""
    try:
        print_lines(client.logs(job, follow=True), several=(client.job(job).nodes or 1) > 1)
        ended = client.job(job)
    except KeyboardInterrupt:
        print_note(f"detached, {job} goes on: eva logs -f {job} to come back, eva cancel {job}")
        return DETACHED_EXIT_CODE
    print_note(summary(ended))
    return 0 if ended.state == "finished" else 1


def print_lines(lines: Iterable[LogLine], *, several: bool) -> None:
    """Output as it was written; where several tasks write, each line says which."""
    terminal = sys.stdout.isatty()
    for line in lines:
        text = tamed(line.text) if terminal else line.text
        typer.echo(f"[{line.task}] {text}" if several else text)


def summary(job: JobOut) -> str:
    """One line: how it is, or how it went."""
    from eva.model.units import format_duration

    parts = [f"{job.id} is {job.state}"]
    if job.ended_ms is not None:
        parts = [f"{job.id} {job.state} after {format_duration(job.ended_ms - job.submitted_ms)}"]
    if job.migrations:
        parts.append(f"moved {job.migrations} times" if job.migrations > 1 else "moved once")
    attempts = job.failures + (job.state != "failed")
    if attempts > 1:
        parts.append(f"attempt {attempts}")
    why = "" if job.reason in {"", job.state} else f": {job.reason}"
    return visible(", ".join(parts) + why)
