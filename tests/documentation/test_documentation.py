"""What the documentation says is there: links, anchors, and every command line with its options."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
import typer

from eva.cli.main import app
from tests.documentation.pages import Page, build, pages
from tests.support.requirements import REPOSITORY

ROOT: Any = typer.main.get_command(app)
EVERY_PAGE = pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)


@EVERY_PAGE
def test_links_lead_somewhere(page: Page) -> None:
    dead = [link for link in page.links() if not _leads_somewhere(page, link)]
    assert dead == []


@EVERY_PAGE
def test_commands_exist_with_these_options(page: Page) -> None:
    wrong = {" ".join(words): why for words in page.commands() if (why := _wrong(ROOT, words))}
    assert wrong == {}


def test_every_room_is_in_the_list_of_rooms() -> None:
    """Those of the architecture, those of the layers, and those that there are."""
    folders = {p.name for p in (REPOSITORY / "src/eva").iterdir() if (p / "__init__.py").exists()}
    folders.add("catalogs")  # data alone
    text = (REPOSITORY / "ARCHITECTURE.md").read_text()
    rows = re.findall(r"^\| (`[a-z`, ]+) \|", text, re.MULTILINE)
    assert {room for row in rows for room in re.findall(r"`([a-z]+)`", row)} == folders


def test_the_checks_find_what_is_wrong(tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text(
        "# A heading, `code`!\n[ok](#a-heading-code) [dead](none.md) [lost](#none)\n\n"
        "    $ eva queue --all   # fine\n    eva queue --al\n\nand `eva nothing`, `eva status`\n"
    )
    page = Page(tmp_path / "page.md")
    assert [link for link in page.links() if not _leads_somewhere(page, link)] == [
        "none.md",
        "#none",
    ]
    assert [_wrong(ROOT, words) for words in page.commands()] == [
        "",
        "no option --al",
        "no command nothing",
        "",  # named, not run
    ]
    assert _wrong(ROOT, ["status", "--watch", "job-1", "job-2"]) == "too many arguments"


def test_it_builds(tmp_path: Path) -> None:
    build(tmp_path)
    html = (tmp_path / "docs" / "first-job.html").read_text()
    assert '<a href="job-file.html">' in html
    assert "<table>" in html


def _leads_somewhere(page: Page, link: str) -> bool:
    if "://" in link or link.startswith("mailto:"):
        return True
    path, _, anchor = link.partition("#")
    target = (page.path.parent / unquote(path)).resolve() if path else page.path
    if not target.exists():
        return False
    if path and REPOSITORY not in target.parents:
        return False
    return not anchor or target.suffix != ".md" or anchor in Page(target).anchors


def _wrong(command: Any, words: list[str]) -> str:
    """Why `eva WORDS` would be refused for its shape; empty if it would not."""
    if words[:1] == ["aws"] and "aws" not in ROOT.commands:
        return ""
    if words and hasattr(command, "commands"):
        name, *rest = words
        if name.startswith("-"):
            return _wrong_options(command, words)
        if name not in command.commands:
            return f"no command {name}"
        return _wrong(command.commands[name], rest)
    if command.ignore_unknown_options:  # hands everything on
        return ""
    return _wrong_options(command, words)


def _wrong_options(command: Any, words: list[str]) -> str:
    options = {name: p for p in command.params for name in (*p.opts, *p.secondary_opts)}
    options |= dict.fromkeys(("-h", "--help"))
    most = sum(999 if p.nargs < 0 else p.nargs for p in command.params if p.opts[0][0] != "-")
    rest, given = iter(words), 0
    for word in rest:
        if word == "--":
            break
        if not word.startswith("-") or word == "-":
            given += 1
            continue
        name, equals, _ = word.partition("=")
        if name not in options:
            return f"no option {name}"
        parameter = options[name]
        if parameter is not None and not parameter.is_flag and not equals:
            next(rest, None)
    return "too many arguments" if given > most else ""
