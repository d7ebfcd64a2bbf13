"""The pages that Eva makes, in a browser that reaches nothing but this machine."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from PIL import ImageColor

from eva.evaluation.pictures import POLICY_LOOKS
from eva.master.client import Connection
from tests.end_to_end.live.cluster import LiveCluster
from tests.end_to_end.live.commands import run
from tests.support.browser import colours_of, page_tree


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A small report, by the command that makes it."""
    out = tmp_path_factory.mktemp("report")
    run(out, "experiment", "run", "physical-32", "--quick", "--out", str(out))
    return (out / "report.html").as_uri()


@pytest.fixture(scope="module")
def master(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Connection]:
    cluster = LiveCluster(tmp_path_factory.mktemp("cluster"))
    cluster.start()
    yield Connection.read(cluster.home)
    cluster.down()
    cluster.until_empty()


def test_the_report_is_read_without_a_network(report: str, tmp_path: Path) -> None:
    tree = page_tree(report, tmp_path)
    assert "<h2" in tree
    assert not re.findall(r"""(?:src|href)=["'](?!#)[^"']*""", tree), "it hangs on nothing else"


def test_the_reports_pictures_are_seen(report: str, tmp_path: Path) -> None:
    colour, _ = POLICY_LOOKS["eva"]
    seen = colours_of(report, tmp_path)
    assert seen[ImageColor.getrgb(colour)] > 500


def test_the_api_is_described_on_one_page(master: Connection, tmp_path: Path) -> None:
    tree = page_tree(f"{master.url}/api/v1/docs", tmp_path)
    for path in httpx.get(f"{master.url}/api/v1/openapi.json").json()["paths"]:
        assert f"<code>{path}</code>" in tree
    named = set(re.findall(r'id="(\w+)"', tree))
    assert set(re.findall(r'href="#(\w+)"', tree)) <= named, "every word is explained"
    assert "<script" not in tree


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "said"),
    [
        ("GET", "/api/v1/nothing", "", 404, "there is no such path"),
        ("PUT", "/api/v1/jobs", "", 405, "takes another method"),
        ("POST", "/api/v1/jobs", "{", 400, "body"),
        ("POST", "/api/v1/jobs", "{}", 400, "body.job_file: Field required"),
        ("GET", "/api/v1/events?after=x", "", 400, "query.after"),
    ],
)
def test_what_the_api_refuses_has_one_shape(
    master: Connection, method: str, path: str, body: str, status: int, said: str
) -> None:
    headers = {"Authorization": f"Bearer {master.token}", "Content-Type": "application/json"}
    answer = httpx.request(method, f"{master.url}{path}", content=body, headers=headers)
    assert answer.status_code == status
    assert answer.json().keys() == {"kind", "message", "problems"}
    assert said in answer.json()["message"]
