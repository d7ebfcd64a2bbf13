from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eva.inputs.guarded_yaml import Entries, Limits, Node, line_of, plain, read_yaml
from eva.inputs.problems import Problems
from eva.model.errors import InputError


def read(text: str, limits: Limits | None = None) -> Node:
    return read_yaml(text, Problems("f.yaml"), limits)


def complaints(text: str, limits: Limits | None = None) -> str:
    with pytest.raises(InputError) as caught:
        read(text, limits)
    return str(caught.value)


def test_values_follow_yaml_1_2() -> None:
    tree = read(
        "yes_is_text: yes\nflag: true\ncount: 012\nhalf: .5\nminus: -0.0\ntime: 1:30\n"
        "quoted: '5'\nnothing: ~\nempty:\nlist: [1, two, {a: b}]\n"
    )
    problems = Problems("f")
    assert plain(tree, problems) == {
        "yes_is_text": "yes",
        "flag": True,
        "count": 12,
        "half": 0.5,
        "minus": 0.0,
        "time": "1:30",
        "quoted": "5",
        "nothing": None,
        "empty": None,
        "list": [1, "two", {"a": "b"}],
    }
    assert str(plain(read("x: -0.0"), problems)) == "{'x': 0.0}"
    assert len(problems) == 0


@pytest.mark.parametrize("value", [".nan", ".inf", "-.Inf", "1e400", "9" * 200])
def test_numbers_that_are_none_are_complained_about_by_line(value: str) -> None:
    problems = Problems("f.yaml")
    plain(read(f"a: 1\nb: {value}\n"), problems)
    with pytest.raises(InputError, match=r"^f\.yaml:2: "):
        problems.raise_if_any()


def test_lines_of_paths() -> None:
    tree = read("jobs:\n  - name: a\n    resources:\n      gpus: 1\n  - name: b\n")
    assert line_of(tree, ["jobs", 0, "resources", "gpus"]) == 4
    assert line_of(tree, ["jobs", 1, "name"]) == 5
    assert line_of(tree, ["jobs", 1, "resources", "gpus"]) == 5  # the deepest that exists
    assert line_of(tree, ["jobs", 7]) == 2


def test_a_billion_laughs_are_refused_quickly() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 10)]
    assert "expands to more than" in complaints("\n".join(lines), Limits(nodes=100_000))


def test_too_many_aliases_are_refused() -> None:
    text = "a: &a 1\nb: [" + ", ".join(["*a"] * 101) + "]"
    assert "f.yaml:2: uses more than 100 aliases" in complaints(text)


def test_a_few_aliases_are_fine() -> None:
    assert plain(read("a: &a {x: 1}\nb: *a\n"), Problems("f")) == {"a": {"x": 1}, "b": {"x": 1}}


def test_an_alias_to_its_own_parent_ends() -> None:
    assert "nests deeper" in complaints("a: &a\n  b: *a\n")


@pytest.mark.parametrize("bomb", ["[" * 100_000, "{a: " * 50_000, "- " * 50_000])
def test_depth_is_limited_before_anything_recurses(bomb: str) -> None:
    assert "nests deeper than 32 levels" in complaints(bomb)


def test_size_is_limited() -> None:
    assert "larger than 10 characters" in complaints("a: 12345678901", Limits(characters=10))


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("a: 1\na: 2\n", "f.yaml:2: a: is here twice (first on line 1)"),
        ("a: !!python/object/apply:os.system [ls]", "f.yaml:1: tag"),
        ("a: !secret b", "tag !secret is not read"),
        ("a: &x {b: 1}\nc:\n  <<: *x\n", "f.yaml:3: merge keys"),
        ("a: 1\n---\nb: 2\n", "f.yaml:2: starts a second document"),
        ("? [a, b]\n: 1\n", "a key must be a word"),
        ("a: [1, 2\nb: 3\n", "is not valid YAML"),
        ("a: *nobody\n", "is not valid YAML"),
        ("a:\t\t- b\n\tc", "is not valid YAML"),
        ("a: \x07", "is not valid YAML"),
        ("# nothing\n", "is empty"),
    ],
)
def test_what_is_refused_says_so_by_line(text: str, complaint: str) -> None:
    assert complaint in complaints(text)


def test_all_problems_come_together() -> None:
    found = complaints("a: 1\na: 2\nb: !x 3\n")
    assert [line.split(": ")[0] for line in found.splitlines()] == ["f.yaml:2", "f.yaml:3"]


@given(st.text(alphabet="ab:-[]{}&*!#|>\"'\n ,?<%@`~019.", max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(InputError):
        plain(read(text), Problems("f"))


@given(
    st.dictionaries(
        st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=8),
        st.integers(-(10**9), 10**9),
        min_size=1,
        max_size=6,
    )
)
def test_plain_mappings_come_back(mapping: dict[str, int]) -> None:
    text = "\n".join(f'"{key}": {value}' for key, value in mapping.items())
    tree = read(text)
    assert isinstance(tree, Entries)
    assert plain(tree, Problems("f")) == mapping
