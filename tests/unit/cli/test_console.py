"""What strangers wrote cannot give orders to the terminal that it is shown on."""

from __future__ import annotations

import pytest

from eva.cli.console import tamed, visible


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("exited with 1", "exited with 1"),
        ("two\n\tlines \u2014 naïve", "two\n\tlines \u2014 naïve"),
        ("\x1b]0;title\x07", "\\x1b]0;title\\x07"),
        ("\x1b[31mred\r", "\\x1b[31mred\\r"),
        ("\x9b31m", "\\x9b31m"),
        ("a\u202eb", "a\\u202eb"),
    ],
)
def test_reasons_are_spelled_out(text: str, shown: str) -> None:
    assert visible(text) == shown


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("\x1b[1;31mred\x1b[0m 50%\r", "\x1b[1;31mred\x1b[0m 50%\r"),
        ("\x1b[2A\x1b[Kbars", "\x1b[2A\x1b[Kbars"),
        ("\x1b]52;c;aGk=\x07", "\\x1b]52;c;aGk=\\x07"),
        ("\x1b[6n\x1b[21t\x1bc", "\\x1b[6n\\x1b[21t\\x1bc"),
        ("\x1bPq\x1b\\", "\\x1bPq\\x1b\\"),
    ],
)
def test_of_output_only_colours_and_cursor_moves_go_through(line: str, shown: str) -> None:
    assert tamed(line) == shown
