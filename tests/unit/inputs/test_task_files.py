from __future__ import annotations

import io
from pathlib import Path

import pytest

from eva.inputs import task_files
from eva.inputs.task_files import TaskFile
from eva.model.errors import InputError
from eva.model.ids import JobId
from eva.model.resources import Demand, Resources

HEADER = "id,workload,gpus,cpus,memory_gb"


def load(tmp_path: Path, text: str | bytes, name: str = "tasks.csv") -> TaskFile:
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return task_files.load(str(path))


def complaints(tmp_path: Path, text: str | bytes, name: str = "tasks.csv") -> list[str]:
    """The problems of a file, with the folder cut off."""
    with pytest.raises(InputError) as caught:
        load(tmp_path, text, name)
    assert caught.value.exit_code == 2
    return [str(problem).replace(f"{tmp_path}/", "") for problem in caught.value.problems]


def test_a_plain_file(tmp_path: Path) -> None:
    file = load(tmp_path, f"{HEADER}\na,vit,2,8,60\nb,gcn,0,12.5,0.5\n")
    first, second = file.tasks
    assert (first.id, first.job, first.spec.workload) == ("a", "a", "vit")
    assert first.spec.demand == Demand.of(2, 8, 60)
    assert second.spec.demand == Demand(Resources(0, 12_500, 512))
    assert first.instance is None


@pytest.mark.parametrize(
    "text",
    [
        b"\xef\xbb\xbf" + f"{HEADER}\na,w,1,2,3\n".encode(),
        f"{HEADER}\r\na,w,1,2,3\r\n",
        f"# a comment, with a comma\n\n{HEADER}\n\n a , w ,1, 2 ,3\n,,,,\n",
        f"{HEADER}\na,w,1,2,3",
        f'{HEADER}\n"a","w","1","2","3"\n',
        "gpus,memory_gb,cpus,workload,id\n1,3,2,w,a\n",
    ],
    ids=["bom", "crlf", "blanks and comments", "no last newline", "quotes", "column order"],
)
def test_csv_as_programs_write_it(tmp_path: Path, text: str | bytes) -> None:
    (task,) = load(tmp_path, text).tasks
    assert (task.id, task.spec.workload, task.spec.demand) == ("a", "w", Demand.of(1, 2, 3))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("t.yaml", "- {id: a, workload: w, gpus: 1, cpus: 2, memory_gb: 3}\n"),
        ("t.yml", "tasks:\n- id: a\n  workload: w\n  gpus: 1\n  cpus: 2\n  memory_gb: 3\n"),
        ("t.json", '[{"id": "a", "workload": "w", "gpus": 1, "cpus": 2, "memory_gb": 3}]'),
        ("noextension", "# tasks\n- {id: a, workload: w, gpus: 1, cpus: 2, memory_gb: 3}\n"),
    ],
)
def test_yaml_and_json(tmp_path: Path, name: str, text: str) -> None:
    (task,) = load(tmp_path, text, name).tasks
    assert (task.id, task.spec.demand) == ("a", Demand.of(1, 2, 3))


@pytest.mark.parametrize(
    "text",
    [f"{HEADER}\na,w,1,2,3\n", "- {id: a, workload: w, gpus: 1, cpus: 2, memory_gb: 3}\n"],
)
def test_standard_input_is_either(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    file = task_files.load("-")
    assert (file.source, len(file.tasks)) == ("<stdin>", 1)


def test_demands_by_family(tmp_path: Path) -> None:
    file = load(
        tmp_path,
        f"{HEADER},cpus.c7i,gpus.p3,memory_gb.p3,cpus.p3\n"
        "a,w,0,12,40,6,,,\n"  # another amount on one family
        "b,w,0,12,40,,,,\n"  # no other amount
        "c,w,,,,,2,8,4\n",  # one family and no other
    )
    first, second, third = (task.spec.demand for task in file.tasks)
    assert first.on("c7i") == Resources(0, 6_000, 40_960)
    assert first.on("r7i") == Resources(0, 12_000, 40_960)
    assert second == Demand.of(0, 12, 40)
    assert third.on("c7i") is None
    assert third.on("p3") == Resources(2, 4_000, 8_192)
    assert file.families == ("c7i", "p3")


def test_jobs_speeds_and_durations(tmp_path: Path) -> None:
    file = load(
        tmp_path,
        f"{HEADER},job,throughput,throughput.p3,duration_h\n"
        "a,w,1,1,1,train,2,3.5,1.5\nb,w,1,1,1,train,,,2\nc,w,1,1,1,,,,\n",
    )
    assert [task.job for task in file.tasks] == ["train", "train", "c"]
    speed = file.tasks[0].spec.throughput
    assert (speed.on("p3"), speed.on("c7i")) == (3.5, 2.0)
    assert file.durations_ms == {JobId("train"): 7_200_000}


def test_equal_rows_share_one_spec(tmp_path: Path) -> None:
    file = load(tmp_path, f"{HEADER}\na,w,1,2,3\nb,w,1,2,3\n")
    assert file.tasks[0].spec is file.tasks[1].spec


def test_every_problem_of_every_row_at_once(tmp_path: Path) -> None:
    found = complaints(
        tmp_path,
        f"{HEADER}\n"
        "a,w,NaN,-1,inf\n"
        'a,w,1,"1,000",1e400\n'
        "c,,0,0,0\n"
        "d,w,1.5,-0,3\n"
        ",w,1,1,1\n"
        "f,w,1,1\n"
        "g,w,1,1,000,5\n",
    )
    assert found == [
        "tasks.csv:2: gpus: 'NaN' is not a finite number",
        "tasks.csv:2: cpus: -1 is negative; CPUs start at 0",
        "tasks.csv:2: memory_gb: 'inf' is not a finite number",
        "tasks.csv:3: cpus: '1,000' has a thousands separator; write 1000",
        "tasks.csv:3: memory_gb: 1e400 is more than any sensible number of GB (10,000,000)",
        "tasks.csv:3: id: 'a' is already on line 2",
        "tasks.csv:4: workload: is missing",
        "tasks.csv:4: gpus, cpus, memory_gb: asks for nothing; a task needs a GPU, CPU or memory",
        "tasks.csv:5: gpus: 1.5 is not a whole number of GPUs",
        "tasks.csv:6: id: is missing",
        "tasks.csv:7: has 4 cells, the header has 5",
        "tasks.csv:7: memory_gb: is missing; write a number",
        "tasks.csv:8: has 6 cells, the header has 5 (write 1000, not 1,000)",
    ]


def test_the_same_wrong_row_twice_is_two_complaints(tmp_path: Path) -> None:
    found = complaints(tmp_path, f"{HEADER}\na,w,x,1,1\nb,w,x,1,1\n")
    assert [line.split(": ")[0] for line in found] == ["tasks.csv:2", "tasks.csv:3"]


def test_columns_are_known_or_suggested(tmp_path: Path) -> None:
    found = complaints(
        tmp_path, "id,worklod,gpus,cpus,memory_gb,cpu.c7i,cpus.any,id\na,w,1,1,1,,,\n"
    )
    assert found[0] == "tasks.csv:1: column 'workload' is missing"
    assert "unknown column 'worklod'; did you mean 'workload'?" in found[1]
    assert "unknown column 'cpu.c7i'; did you mean 'cpus'?" in found[2]
    assert "what holds on any family goes into 'cpus'" in found[3]
    assert found[4] == "tasks.csv:1: column 'id' is there twice"
    assert len(found) == 5  # and not once more for every row


def test_a_job_called_like_a_lone_task(tmp_path: Path) -> None:
    found = complaints(tmp_path, f"{HEADER},job\ntrain,w,1,1,1,\nb,w,1,1,1,train\n")
    assert found == ["tasks.csv:3: job: 'train' is the id of a task of its own (line 2)"]


def test_a_family_without_a_default_is_stated_in_full(tmp_path: Path) -> None:
    found = complaints(tmp_path, f"{HEADER},cpus.p3\na,w,,,,4\n")
    assert found == [
        "tasks.csv:2: gpus.p3: is missing; write a number",
        "tasks.csv:2: memory_gb.p3: is missing; write a number",
    ]


def test_zero_demand_on_one_family(tmp_path: Path) -> None:
    (found,) = complaints(tmp_path, f"{HEADER},gpus.p3,cpus.p3,memory_gb.p3\na,w,1,1,1,0,0,0\n")
    assert found.startswith("tasks.csv:2: gpus.p3, cpus.p3, memory_gb.p3: asks for nothing")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "tasks.csv: is empty"),
        (" \n\n", "tasks.csv: is empty"),
        (f"{HEADER}\n", "tasks.csv: has no rows"),
        ("# only\n# comments\n", "tasks.csv: has no header line"),
        (
            f"{HEADER}\nb\u00fcro,w,1,1,1\n".encode("latin-1"),
            "tasks.csv:2: is not UTF-8 (byte 0xfc)",
        ),
        (f"{HEADER}\na,w,1,\x001,1\n", "tasks.csv:2: holds a zero byte"),
        (HEADER.replace(",", ";") + "\na;w;1;1;1\n", "separated by semicolons; use commas"),
        (f'{HEADER}\n"a,w,1,1,1\n', "is not valid CSV"),
        (f"{HEADER}\n" + "x" * 200_000 + ",w,1,1,1\n", "is not valid CSV: field larger"),
        (f'{HEADER}\n"a\nb",w,1,1,1\n', "tasks.csv:2: id: 'a\\nb' holds a control character"),
    ],
    ids=range(10),
)
def test_files_that_are_none(tmp_path: Path, text: str | bytes, complaint: str) -> None:
    assert complaint in complaints(tmp_path, text)[0]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("tasks: 5\n", "must be a list"),
        ("jobs: []\n", "unknown key 'jobs'"),
        ("- 5\n", "t.yaml:1: must be a mapping"),
        (
            "- id: [a]\n  workload: w\n  gpus: 1\n  cpus: 1\n  memory_gb: 1\n",
            "t.yaml:1: id: must be",
        ),
        (
            "- {id: a, workload: w, gpus: .nan, cpus: 1, memory_gb: 1}",
            "gpus: '.nan' is not a finite",
        ),
        (
            "- {id: a, workload: w, cpus: 1, gpus: 1, memory_gb: 1}\n- {id: b}",
            "t.yaml:2: workload: is",
        ),
    ],
)
def test_yaml_that_is_no_task_file(tmp_path: Path, text: str, complaint: str) -> None:
    assert any(complaint in line for line in complaints(tmp_path, text, "t.yaml"))


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        task_files.load(str(tmp_path / "absent.csv"))
    with pytest.raises(InputError, match="is a folder"):
        task_files.load(str(tmp_path))


def test_tasks_say_whether_they_may_run_on_spot(tmp_path: Path) -> None:
    rows = "a,w,1,2,3,true\nb,w,1,2,3,No\nc,w,1,2,3,\nd,w,1,2,3,1\n"
    file = load(tmp_path, f"{HEADER},use_spot\n{rows}")
    assert [task.spec.demand.spot for task in file.tasks] == [True, False, False, True]
    yaml = "- {id: a, workload: w, gpus: 1, cpus: 2, memory_gb: 3, use_spot: true}\n"
    (task,) = load(tmp_path, yaml, "tasks.yaml").tasks
    assert task.spec.demand.spot
    (problem,) = complaints(tmp_path, f"{HEADER},use_spot\na,w,1,2,3,maybe\n")
    assert "'maybe' is neither true nor false" in problem
