"""Job files: what is read, and how everything that is wrong is told."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eva.inputs import job_file, job_file_reference
from eva.inputs.job_file import parse
from eva.master.definitions import workload_of
from eva.model.errors import InputError
from eva.model.resources import Resources
from tests.support.requirements import REPOSITORY

EVERYTHING = """\
name: train
workload: resnet
num_nodes: 2
workdir: code
envs: {EPOCHS: 90, DEBUG: true, EMPTY: }
secrets: [TOKEN]
file_mounts: {data/small: samples}
setup: pip install -r requirements.txt
run: |
  python train.py
image: pytorch/pytorch
resources:
  gpus: 1
  cpus: 4.5
  memory: 24GB
  shm_size: 512MB
  per_family: {c7i: {cpus: 6}, r7i: {gpus: 0, memory: 32}}
throughput: {default: 10, per_family: {p3: 20}}
progress: {regex: 'step (\\d+)', window: 5m}
checkpoint: {signal: SIGUSR1, grace: 90s}
retries: 3
max_duration: 2h
priority: -1
"""


def problems_of(text: str) -> list[str]:
    with pytest.raises(InputError) as caught:
        parse(text, "job.yaml")
    return [str(problem) for problem in caught.value.problems]


def test_everything_at_once() -> None:
    job = parse(EVERYTHING, "job.yaml")
    assert job.resources.demand.default == Resources(1, 4_500, 24 * 1_024)
    assert job.resources.demand.on("c7i") == Resources(1, 6_000, 24 * 1_024)
    assert job.resources.demand.on("r7i") == Resources(0, 4_500, 32 * 1_024)
    assert job.resources.shm_size == 512
    assert job.envs == {"EPOCHS": "90", "DEBUG": "true", "EMPTY": ""}
    assert job.secrets == {"TOKEN": None}
    assert (job.standalone.on("p3"), job.standalone.on("c7i")) == (20.0, 10.0)
    assert (job.checkpoint.signal, job.checkpoint.grace) == ("USR1", 90_000)
    assert (job.max_duration, job.progress.window) == (7_200_000, 300_000)


@pytest.mark.parametrize(
    "image",
    [
        "busybox",
        "python:3.11-slim",
        "nvcr.io/nvidia/pytorch:24.05-py3",
        "localhost:5000/team/my__train:v1_2",
        f"registry.example.com:443/a/b@sha256:{'0f' * 32}",
        f"pytorch/pytorch:2.4@sha256:{'0f' * 32}",
    ],
)
def test_images_are_named_as_registries_spell_them(image: str) -> None:
    assert parse(f"run: x\nimage: {image}", "job.yaml").image == image


def test_the_least_there_can_be() -> None:
    job = parse("run: [python, train.py, 7]", "my job.yaml")
    assert job.name == "my-job"
    assert job.run == ("python", "train.py", "7")
    assert job.resources.demand.default == Resources(0, 1_000, 1_024)


def test_every_problem_is_told_by_line_with_a_hint() -> None:
    text = (
        "name: train\nnun_nodes: 2\nrun: x\nresources:\n  gpus: 1.5\n  cpu: 4\n  memory: -3GB\n"
        "  per_family:\n    c7i: {cpus: nan, gpu: 1}\nworkdir: ../x\nenvs: {EVA_X: 1}\n"
        "retries: '3'\nprogress: {regex: step}\nmax_duration: .inf\n"
        "file_mounts:\n  data: /etc/passwd\n"
    )
    told = [problem.removeprefix("job.yaml:") for problem in problems_of(text)]
    assert told == [
        "2: nun_nodes: is not a field of a job file; did you mean 'num_nodes'?",
        "5: resources.gpus: 1.5 is not a whole number of GPUs",
        "6: resources.cpu: is not a field of a job file; did you mean 'cpus'?",
        "7: resources.memory: -3 is negative; GB start at 0",
        "9: resources.per_family.c7i.cpus: 'nan' is not a finite number",
        "9: resources.per_family.c7i.gpu: is not a field of a job file; did you mean 'gpus'?",
        "10: workdir: '../x' leaves the folder of the job file; copy what it names into it",
        "11: envs: 'EVA_X' is set by Eva itself; choose a name without EVA_",
        "12: retries: must be a whole number",
        "13: progress.regex: 'step' has 0 groups; put parentheses around the step number",
        "14: .inf is not a finite number",
        "16: file_mounts.data: '/etc/passwd' must be relative to the folder of the job file",
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("name: x", "run: is missing"),
        ("- run", "must be a mapping of fields"),
        ("", "is empty"),
        ("run: ''", "is empty; write what to run"),
        ("run: []", "is an empty list"),
        ("run: x\nrun: y", "is here twice"),
        ("run: x\nimage: a\ndockerfile: b\nworkdir: .", "both image and dockerfile"),
        ("run: x\nimage: a b", "is not an image reference"),
        ("run: x\nimage: -v/:/host", "is not an image reference"),
        ("run: x\nimage: Python:3.11", "is not an image reference"),
        (f"run: x\nimage: {'a' * 256}", "is not an image reference"),
        ("run: x\ndockerfile: Dockerfile", "no workdir"),
        ("run: x\nresources: {cpus: 0, memory: 0}", "asks for nothing"),
        ("run: x\nresources: 4", "must be a mapping"),
        ("run: x\nnum_nodes: 0", "greater than or equal to 1"),
        ("run: x\nnum_nodes: 2000", "less than or equal to"),
        ("run: x\nname: ../up", "cannot be a name"),
        ("run: x\nname: 'a\n\n  b'", "cannot be a name"),
        ("run: x\nmax_duration: soon", "'soon' is not a duration"),
        ("run: x\nmax_duration: 0s", "must be more than 0"),
        ("run: x\nmax_duration: 400d", "longer than a year"),
        ("run: x\ncheckpoint: {signal: KILL}", "is not one of the signals"),
        ("run: x\ncheckpoint: {path: /tmp/x}", "must be relative"),
        ("run: x\nworkdir: ~/x", "must be relative"),
        ("run: x\nworkdir: a/../../b", "leaves the folder"),
        ("run: x\nthroughput: -1", "must be more than 0"),
        ("run: x\nenvs: {'A B': 1}", "cannot name an environment variable"),
        ("run: x\nenvs: {A: [1]}", "must be text or a number, not a list"),
        ("run: x\nenvs: {A: 1}\nsecrets: [A]", "both in envs and in secrets"),
        ("run: [x]\nsetup: y", "must both be scripts"),
        ("run: x\nprogress: {regex: '('}", "is not a regular expression"),
        ("run: !!python/object:os.system x", "tag"),
        ("run: &a [*a]", ""),
        ("run: {{{{{{{{{1}}}}}}}}}", "nests deeper"),
        (f"run: {'x' * 300_000}", "is larger than"),
    ],
)
def test_each_mistake_is_named(text: str, said: str) -> None:
    assert any(said in problem for problem in problems_of(text))


@given(st.text(max_size=200))
def test_whatever_is_written_is_a_job_or_an_input_error(text: str) -> None:
    try:
        parse(text, "job.yaml")
    except InputError:
        return


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "latin.yaml").write_bytes(b"run: \xe9")
    with pytest.raises(InputError, match="not UTF-8"):
        job_file.load(str(tmp_path / "latin.yaml"))
    with pytest.raises(InputError, match="is a folder; name the file in it"):
        job_file.load(str(tmp_path))


def test_secrets_come_from_the_environment() -> None:
    job = parse("run: x\nsecrets: {A: null, B: two}", "job.yaml")
    assert job_file.missing_secrets(job, {"A": "one"}) == {"A": "one", "B": "two"}
    with pytest.raises(InputError, match="A"):
        job_file.missing_secrets(job, {})


def test_the_documented_example_is_a_job() -> None:
    assert parse(job_file_reference.EXAMPLE, "example.yaml").num_nodes == 2


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("job-file.md", job_file_reference.markdown),
        ("job-file.schema.json", job_file_reference.schema_text),
    ],
)
def test_the_reference_is_up_to_date(name: str, content: object) -> None:
    assert callable(content)
    remedy = "run: python -m eva.inputs.job_file_reference docs"
    assert (REPOSITORY / "docs" / name).read_text() == content(), remedy


def test_jobs_are_not_on_spot_unless_they_say_so() -> None:
    assert not parse("run: x\n", "job.yaml").resources.demand.spot
    willing = parse("run: x\nresources: {use_spot: true}\n", "job.yaml")
    assert willing.resources.demand.spot
    (problem,) = problems_of("run: x\nresources: {use_spot: maybe}\n")
    assert "must be true or false" in problem


def test_where_a_job_may_run_does_not_change_how_it_behaves() -> None:
    """What is learned of a workload holds on spot too, and was learned before there was spot."""
    text = "name: a\nrun: x\nresources: {{cpus: 2, use_spot: {}}}\n"
    names = {workload_of(parse(text.format(w), "job.yaml"), None) for w in ("true", "false")}
    assert names == {"a-aad716d5d5"}
