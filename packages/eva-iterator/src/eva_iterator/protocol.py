"""The line protocol between a task and its worker: one definition for both ends, without I/O.

`PROTOCOL.md` is the text of it. Messages are lines of plain words, so that a shell can speak them;
a table says which word is parsed how. `LineReader` cuts bytes into bounded lines. `TaskChannel` is
what the worker holds per task: it outlives connections, because tasks reconnect, a shell task may
open one connection per report, and a worker restarts.

Nothing here can be made to raise or to grow by what arrives: a line that is unknown, malformed or
too long is ignored.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Callable, Union

from eva_iterator.errors import ProtocolError
from eva_iterator.throughput import DEFAULT_WINDOW_MS, StepHistory

VERSION = 1
MAX_LINE_BYTES = 4096  # with its newline
MAX_COUNT = 2**63 - 1
MAX_CONNECTIONS = 16
CHECKPOINTED_EXIT_CODE = 85  # "I am checkpointed, start me again": not success and not failure
UNASKED = 0  # the request number of a checkpoint that nobody asked for


@dataclass(frozen=True)
class Hello:
    """First line of both sides: the highest version that the sender speaks, and who it is."""

    version: int
    name: str = ""


@dataclass(frozen=True)
class Step:
    """The task has done `count` steps in all, as of `age_ms` ago."""

    count: int
    age_ms: int = 0


@dataclass(frozen=True)
class Checkpointed:
    """A complete checkpoint stands in the folder `name` under $EVA_CHECKPOINT_DIR."""

    request: int
    name: str


@dataclass(frozen=True)
class CheckpointFailed:
    """The request cannot be met; the task goes on."""

    request: int
    reason: str = ""


@dataclass(frozen=True)
class Checkpoint:
    """The worker asks for a checkpoint, to be answered within `grace_s`."""

    request: int
    grace_s: int


@dataclass(frozen=True)
class Cancel:
    """The worker no longer wants the checkpoint it asked for."""

    request: int


Message = Union[Hello, Step, Checkpointed, CheckpointFailed, Checkpoint, Cancel]
Answer = Union[Checkpointed, CheckpointFailed]


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 19):
        raise ValueError(text)
    value = int(text)
    if value > MAX_COUNT:
        raise ValueError(text)
    return value


def is_checkpoint_name(name: str) -> bool:
    """A relative path that stays where it is put; it comes from the task, so nobody trusts it."""
    if not name or name.startswith("/") or not name.isprintable():
        return False
    return name == "." or all(part not in ("", ".", "..") for part in name.split("/"))


def _checkpoint_name(text: str) -> str:
    if not is_checkpoint_name(text):
        raise ValueError(text)
    return text


def _text(text: str) -> str:
    return text


@dataclass(frozen=True)
class _Word:
    """How one word is read and written: `required` then `optional` fields, in order."""

    message: type[Message]
    fields: tuple[tuple[str, Callable[[str], int | str]], ...]
    required: int


# The last field takes the rest of the line if it is text, so names may hold spaces.
_WORDS: dict[str, _Word] = {
    "hello": _Word(Hello, (("version", _count), ("name", _text)), 1),
    "step": _Word(Step, (("count", _count), ("age_ms", _count)), 1),
    "checkpointed": _Word(Checkpointed, (("request", _count), ("name", _checkpoint_name)), 2),
    "failed": _Word(CheckpointFailed, (("request", _count), ("reason", _text)), 1),
    "checkpoint": _Word(Checkpoint, (("request", _count), ("grace_s", _count)), 2),
    "cancel": _Word(Cancel, (("request", _count),), 1),
}
_WORD_OF: dict[type[Message], str] = {word.message: text for text, word in _WORDS.items()}


def parse_line(line: str) -> Message | None:
    """The message on a line, None if it is none that this version knows."""
    text, _, rest = line.strip().partition(" ")
    word = _WORDS.get(text)
    if word is None:
        return None
    takes_rest = word.fields[-1][1] != _count
    pieces = rest.split(None, len(word.fields) - 1) if takes_rest else rest.split()
    if len(pieces) < word.required:
        return None
    values: dict[str, int | str] = {}
    try:
        for (name, read), piece in zip(word.fields, pieces):  # more words than fields: ignored
            values[name] = read(piece)
    except ValueError:
        return None
    build: Callable[..., Message] = word.message
    return build(**values)


def format_line(message: Message) -> bytes:
    """A message as its line. Free text is flattened and cut; anything else wrong is an error."""
    text = _WORD_OF[type(message)]
    pieces = [text]
    for name, read in _WORDS[text].fields:
        value = str(getattr(message, name))
        if read is _text:
            value = " ".join(value.split())[:500]
        try:
            read(value)
        except ValueError:
            raise ProtocolError(
                f"{text} {name} is {value!r}: send a whole number from 0 to 2^63-1, or a printable "
                "relative path without '..'"
                "without '..'"
            ) from None
        pieces.append(value)
    line = " ".join(pieces).rstrip().encode("utf-8", "replace") + b"\n"
    if len(line) > MAX_LINE_BYTES:
        raise ProtocolError(f"{text} line of {len(line)} bytes: shorten it to {MAX_LINE_BYTES}")
    return line


class LineReader:
    """Bytes in, lines out. A line over the limit is skipped whole, and never held in memory."""

    def __init__(self) -> None:
        self._partial = b""
        self._skipping = False

    def feed(self, data: bytes) -> list[str]:
        lines: list[str] = []
        *whole, tail = data.split(b"\n")
        for piece in whole:
            line = self._partial + piece
            if not self._skipping and len(line) < MAX_LINE_BYTES:
                lines.append(line.decode("utf-8", "replace"))
            self._partial = b""
            self._skipping = False
        if self._skipping or len(self._partial) + len(tail) >= MAX_LINE_BYTES:
            self._partial = b""
            self._skipping = True
        else:
            self._partial += tail
        return lines


class TaskChannel:
    """The worker's side of one task, over all of its connections.

    The driver opens a `Connection` per accepted socket, feeds it what it reads, sends what
    `take_output` hands out (after every call that may have produced some, on every connection),
    and closes it with the socket.
    """

    def __init__(self, window_ms: int = DEFAULT_WINDOW_MS) -> None:
        self.history = StepHistory(window_ms)
        self.pending: Checkpoint | None = None
        self._connections: list[Connection] = []

    @property
    def steps(self) -> int | None:
        """All steps that the task has done, as last reported; None before the first report."""
        return self.history.steps

    @property
    def listening(self) -> bool:
        """Whether somebody is there to hear a checkpoint request."""
        return any(connection.version is not None for connection in self._connections)

    def rate(self, now_ms: int) -> float | None:
        """Steps per second over the window that ends now, None while unknown."""
        return self.history.rate(now_ms)

    def report(self, step: Step, now_ms: int) -> None:
        """A count as of now may fall, for a task may start over; one out of a replay may not."""
        if step.age_ms == 0 or step.count > (self.steps or 0):
            self.history.observe(now_ms - step.age_ms, step.count)

    def open(self) -> Connection:
        if len(self._connections) >= MAX_CONNECTIONS:
            raise ProtocolError(
                f"the task holds {MAX_CONNECTIONS} connections: close one before opening another"
            )
        connection = Connection(self)
        self._connections.append(connection)
        return connection

    def request_checkpoint(self, request: int, grace_s: int) -> None:
        """Ask everyone connected, and everyone who connects until it is answered or cancelled.

        A worker that restarts asks again with the number it used before: a task that has already
        answered that number answers it again at once.
        """
        if request == UNASKED:
            raise ProtocolError("request 0 is no request: number requests from 1")
        self.pending = Checkpoint(request, grace_s)
        self._broadcast(self.pending)

    def cancel_checkpoint(self) -> None:
        if self.pending is not None:
            self._broadcast(Cancel(self.pending.request))
            self.pending = None

    def _broadcast(self, message: Message) -> None:
        for connection in self._connections:
            if connection.version is not None:
                connection.say(message)

    def accept(self, answer: Answer) -> bool:
        """Whether an answer counts: to the request at hand, or unasked. Late ones do not."""
        if answer.request == UNASKED:
            return isinstance(answer, Checkpointed)
        if self.pending is None or answer.request != self.pending.request:
            return False
        self.pending = None
        return True

    def forget(self, connection: Connection) -> None:
        if connection in self._connections:
            self._connections.remove(connection)


class Connection:
    """One accepted socket of a task."""

    def __init__(self, channel: TaskChannel) -> None:
        self.version: int | None = None  # agreed with the first hello; before it nothing counts
        self.name = ""
        self._channel = channel
        self._reader = LineReader()
        self._output = bytearray()

    def receive(self, data: bytes, now_ms: int) -> list[Answer]:
        """Take what was read; answers that count are returned, all else goes into the channel."""
        answers: list[Answer] = []
        for line in self._reader.feed(data):
            message = parse_line(line)
            if isinstance(message, Hello):
                self._greet(message)
            elif self.version is None:
                continue
            elif isinstance(message, Step):
                self._channel.report(message, now_ms)
            elif isinstance(message, (Checkpointed, CheckpointFailed)) and self._channel.accept(
                message
            ):
                answers.append(message)
        return answers

    def take_output(self) -> bytes:
        output = bytes(self._output)
        self._output.clear()
        return output

    def close(self) -> None:
        self._channel.forget(self)

    def say(self, message: Message) -> None:
        self._output += format_line(message)

    def _greet(self, hello: Hello) -> None:
        if self.version is not None or hello.version < 1:
            return
        self.version = min(hello.version, VERSION)
        self.name = hello.name
        self.say(Hello(self.version, "eva"))
        if self._channel.pending is not None:
            self.say(self._channel.pending)
