"""The documentation as a reader meets it: pages with links, anchors and commands, and as HTML.

`python -m tests.documentation.pages OUT` builds it all into a folder.
"""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

from tests.support.requirements import REPOSITORY

_PAGES = ("*.md", "docs/*.md", "packages/*/*.md", "examples/**/*.md")
_PROMPT = re.compile(r"^\s*(?:\$ )?(?:\S+=\S+ )*(eva\b.*)$")
_SHELLS = frozenset({"", "console", "sh", "bash"})
_COMMENT = re.compile(r"\s#\s.*$")
_PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>{title}</title>
<meta name="viewport" content="width=device-width">
<style>
body {{ max-width: 50rem; margin: 2rem auto; padding: 0 1rem; font: 16px/1.5 sans-serif }}
pre, code {{ font: 14px/1.4 monospace; background: #f4f4f4 }}
pre {{ padding: .7rem; overflow-x: auto }}
table {{ border-collapse: collapse }} td, th {{ border: 1px solid #ccc; padding: .2rem .6rem }}
</style>
{body}</html>
"""


@dataclass(frozen=True)
class Page:
    """One Markdown file of the repository."""

    path: Path

    @property
    def name(self) -> str:
        return str(self.path.relative_to(REPOSITORY))

    @cached_property
    def _tokens(self) -> list[Token]:
        return _markdown().parse(self.path.read_text())

    @cached_property
    def anchors(self) -> set[str]:
        """As hosts of repositories make them from headings; a second equal one gets a number."""
        found: dict[str, int] = {}
        for token, inline in zip(self._tokens, self._tokens[1:], strict=False):
            if token.type == "heading_open":
                slug = _slug(inline.content)
                found[slug] = found.get(slug, -1) + 1
        return set(found) | {
            f"{slug}-{n}" for slug, most in found.items() for n in range(1, most + 1)
        }

    def links(self) -> Iterator[str]:
        for token in self._inline():
            for name in ("href", "src"):
                target = token.attrGet(name)
                if isinstance(target, str):
                    yield target

    def commands(self) -> Iterator[list[str]]:
        """Every command line of Eva, in blocks and in running text."""
        for token in self._tokens:
            if token.type in {"fence", "code_block"} and token.info in _SHELLS:
                for line in token.content.replace("\\\n", " ").splitlines():
                    yield from _command(line)
        for token in self._inline():
            if token.type == "code_inline":
                yield from _command(token.content)

    def html(self) -> str:
        body = _markdown().render(self.path.read_text())
        return _PAGE.format(title=self.path.stem, body=re.sub(r'\.md(["#])', r".html\1", body))

    def _inline(self) -> Iterator[Token]:
        for token in self._tokens:
            yield from token.children or ()


def _markdown() -> MarkdownIt:
    return MarkdownIt("commonmark").enable("table")


def _slug(heading: str) -> str:
    kept = re.sub(r"[^\w\- ]", "", heading.lower())
    return kept.replace(" ", "-")


def _command(line: str) -> Iterator[list[str]]:
    """`$ eva queue --all   # comment`, without what is not the command."""
    match = _PROMPT.match(_COMMENT.sub("", line))
    if match is None or not match[1].isascii():  # else it is part of a picture
        return
    try:
        words = shlex.split(match[1].split(" | ")[0].rstrip("&; "))
    except ValueError:  # an apostrophe in a sentence
        return
    if words[0] == "eva":
        yield words[1:]


def pages() -> list[Page]:
    return [Page(path) for each in _PAGES for path in sorted(REPOSITORY.glob(each))]


def build(out: Path) -> None:
    for page in pages():
        target = (out / page.name).with_suffix(".html")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(page.html())


if __name__ == "__main__":
    build(Path(sys.argv[1]))
