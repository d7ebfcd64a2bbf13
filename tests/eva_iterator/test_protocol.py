"""The line protocol: both ends agree, and nothing that arrives can break or grow the receiver."""

from __future__ import annotations

import pytest
from eva_iterator.errors import ProtocolError
from eva_iterator.protocol import (
    MAX_CONNECTIONS,
    MAX_COUNT,
    MAX_LINE_BYTES,
    VERSION,
    Answer,
    Cancel,
    Checkpoint,
    Checkpointed,
    CheckpointFailed,
    Hello,
    LineReader,
    Message,
    Step,
    TaskChannel,
    format_line,
    is_checkpoint_name,
    parse_line,
)
from hypothesis import given
from hypothesis import strategies as st

COUNTS = st.integers(0, MAX_COUNT)
NAMES = st.text(min_size=1, max_size=60).filter(
    lambda text: is_checkpoint_name(text) and text == text.strip()
)
WORDS = st.text(st.characters(categories=["L", "N"]), max_size=20)
MESSAGES: st.SearchStrategy[Message] = st.one_of(
    st.builds(Hello, COUNTS, WORDS),
    st.builds(Step, COUNTS, COUNTS),
    st.builds(Checkpointed, COUNTS, NAMES),
    st.builds(CheckpointFailed, COUNTS, WORDS),
    st.builds(Checkpoint, COUNTS, COUNTS),
    st.builds(Cancel, COUNTS),
)


@given(MESSAGES)
def test_what_is_written_is_read(message: Message) -> None:
    line = format_line(message)
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert parse_line(line.decode()) == message


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("hello 1", Hello(1)),
        ("hello 2 my loop in C", Hello(2, "my loop in C")),
        ("step 7", Step(7)),
        ("step 7 2500", Step(7, 2500)),
        ("  step   7  ", Step(7)),
        ("step 7\r", Step(7)),
        ("step 7 2500 and more that a later version may say", Step(7, 2500)),
        ("checkpointed 3 .", Checkpointed(3, ".")),
        ("checkpointed 3 my run/step 7", Checkpointed(3, "my run/step 7")),
        ("failed 3", CheckpointFailed(3)),
        ("failed 3 disk is full", CheckpointFailed(3, "disk is full")),
        ("checkpoint 3 120", Checkpoint(3, 120)),
        ("cancel 3", Cancel(3)),
    ],
)
def test_lines_of_the_document(line: str, message: Message) -> None:
    assert parse_line(line) == message


@pytest.mark.parametrize(
    "line",
    [
        "",
        "   ",
        "STEP 7",
        "step",
        "step -1",
        "step 1.5",
        "step 1e3",
        "step ٣",
        "step 9223372036854775808",
        "step " + "9" * 3000,
        "hello one",
        "checkpoint 3",
        "checkpointed 3",
        "checkpointed 3 /etc",
        "checkpointed 3 ../other",
        "checkpointed 3 a/../../b",
        "checkpointed 3 a//b",
        "checkpointed 3 a\x00b",
        "dance 1",
        "\ufffd\ufffd",
    ],
)
def test_anything_else_is_nothing(line: str) -> None:
    assert parse_line(line) is None


@pytest.mark.parametrize(
    "message",
    [Step(-1), Step(MAX_COUNT + 1), Checkpointed(1, "../up"), Checkpointed(1, "a\nstep 9")],
)
def test_what_cannot_be_read_is_not_written(message: Message) -> None:
    with pytest.raises(ProtocolError):
        format_line(message)


def test_free_text_cannot_smuggle_a_line() -> None:
    line = format_line(CheckpointFailed(1, "no space\nstep 99\n" + "x" * 9000))
    assert line.count(b"\n") == 1
    assert len(line) < MAX_LINE_BYTES


@given(st.lists(st.binary(max_size=50).filter(lambda line: b"\n" not in line)), st.data())
def test_lines_do_not_depend_on_how_bytes_are_cut(lines: list[bytes], data: st.DataObject) -> None:
    stream = b"".join(line + b"\n" for line in lines)
    reader, found = LineReader(), []
    while stream:
        size = data.draw(st.integers(1, len(stream)))
        found += reader.feed(stream[:size])
        stream = stream[size:]
    assert found == [line.decode("utf-8", "replace") for line in lines]


@given(st.integers(1, 5000))
def test_a_line_too_long_is_skipped_whole(size: int) -> None:
    reader = LineReader()
    endless = b"step 1" * (3 * MAX_LINE_BYTES)
    for begin in range(0, len(endless), size):
        assert reader.feed(endless[begin : begin + size]) == []
        assert len(reader._partial) < MAX_LINE_BYTES
    assert reader.feed(b"\nstep 2\n") == ["step 2"]


@given(st.lists(st.binary(max_size=300), max_size=20))
def test_noise_never_raises(pieces: list[bytes]) -> None:
    connection = TaskChannel().open()
    connection.receive(b"hello 1\n", 0)
    for now_ms, piece in enumerate(pieces):
        connection.receive(piece, now_ms)


def say(channel: TaskChannel, text: str, now_ms: int = 0) -> list[Answer]:
    """One short connection, as a shell would open it."""
    connection = channel.open()
    answers = connection.receive(f"hello 1\n{text}\n".encode(), now_ms)
    connection.close()
    return answers


def test_handshake_settles_on_the_lower_version() -> None:
    connection = TaskChannel().open()
    connection.receive(b"hello 9 from the future\n", 0)
    assert connection.take_output() == b"hello %d eva\n" % VERSION
    assert (connection.version, connection.name) == (VERSION, "from the future")
    connection.receive(b"hello 1\n", 0)
    assert connection.take_output() == b"", "greeted once"


def test_nothing_counts_before_hello() -> None:
    channel = TaskChannel()
    connection = channel.open()
    connection.receive(b"step 7\nhello 0\nstep 8\n", 0)
    assert channel.steps is None
    assert not channel.listening


def test_count_outlives_connections() -> None:
    channel = TaskChannel()
    for second in range(11):
        say(channel, f"step {second * 5}", now_ms=second * 1000)
    assert channel.steps == 50
    assert channel.rate(10_000) == pytest.approx(5.0)


def test_a_worker_that_restarts_gets_the_window_back() -> None:
    before = TaskChannel()
    say(before, "step 10", 1_000)
    say(before, "step 40", 4_000)
    replayed = "\n".join(f"step {count} {5_000 - at}" for at, count in before.history.points())
    after = TaskChannel()
    say(after, replayed, 5_000)
    assert after.rate(5_000) == pytest.approx(10.0)
    say(before, replayed, 5_003)
    say(before, replayed, 60_000)
    assert before.history.points() == ((1_000, 10), (4_000, 40)), "a replay adds nothing to itself"
    say(before, "step 12", 61_000)
    assert before.steps == 12, "but a task may start over"


def test_request_reaches_everyone_until_it_is_answered() -> None:
    channel = TaskChannel()
    early = channel.open()
    early.receive(b"hello 1\n", 0)
    early.take_output()
    channel.request_checkpoint(3, 120)
    assert early.take_output() == b"checkpoint 3 120\n"
    late = channel.open()
    late.receive(b"hello 1\n", 0)
    assert late.take_output() == b"hello 1 eva\ncheckpoint 3 120\n"
    assert late.receive(b"checkpointed 3 step-7\n", 0) == [Checkpointed(3, "step-7")]
    assert channel.pending is None
    assert early.receive(b"checkpointed 3 step-7\n", 0) == [], "one answer is enough"


def test_late_and_foreign_answers_do_not_count() -> None:
    channel = TaskChannel()
    channel.request_checkpoint(3, 10)
    assert say(channel, "checkpointed 2 old") == []
    assert say(channel, "failed 2") == []
    channel.cancel_checkpoint()
    assert say(channel, "checkpointed 3 late") == []
    assert say(channel, "checkpointed 0 regular") == [Checkpointed(0, "regular")]
    channel.request_checkpoint(4, 10)
    assert say(channel, "failed 4 full disk") == [CheckpointFailed(4, "full disk")]


def test_cancel_is_told() -> None:
    channel = TaskChannel()
    connection = channel.open()
    connection.receive(b"hello 1\n", 0)
    channel.request_checkpoint(3, 10)
    channel.cancel_checkpoint()
    channel.cancel_checkpoint()
    assert connection.take_output().splitlines()[-2:] == [b"checkpoint 3 10", b"cancel 3"]


def test_connections_and_request_numbers_are_bounded() -> None:
    channel = TaskChannel()
    held = [channel.open() for _ in range(MAX_CONNECTIONS)]
    with pytest.raises(ProtocolError, match="close one"):
        channel.open()
    held[0].close()
    held[0].close()
    channel.open()
    with pytest.raises(ProtocolError, match="from 1"):
        channel.request_checkpoint(0, 10)
