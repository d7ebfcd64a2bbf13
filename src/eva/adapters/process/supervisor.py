"""The small parent that every task of the process runtime has, so that the worker may die.

Run as a file (`python -I -S supervisor.py FOLDER LOCK_FD`), with nothing but the standard library,
and with the launch on its standard input, so that secrets never touch the disk. It forks: the
caller's child answers one line once the start is on disk, and ends; the fork stays, adopted by
init, and does three things until the task is over:

- It is the task's parent, and the reaper of every orphan below it (PR_SET_CHILD_SUBREAPER), so no
  process of the task can slip away by a double fork or a session of its own. "No child left" is
  the kernel's word, and it is what the proof of stop rests on.
- It holds a lock on `lock` for as long as it lives. The lock goes with it, so "is it alive?" has
  an answer in which process ids, and their reuse, play no part. It is told what to do over a
  FIFO for the same reason.
- It writes `exit.json` before it lets go of the lock, fsynced and renamed, into blocks that were
  reserved at the start: a disk that is full loses no exit code.

Memory. RLIMIT_AS, the usual tool, counts reserved addresses, and CUDA, Go and the JVM reserve
hundreds of GB that they never touch. So what is limited is what is used: resident memory, shared
pages counted once, is sampled over all processes of the task, and a task over its limit is killed
as a cgroup would kill it, and said to be OOM-killed. RLIMIT_DATA, far above the limit, refuses the
one absurd allocation that would be over between two samples; who fails of that is known by its
peak. RLIMIT_NPROC counts all processes of a user, not of a task, so threads are sampled as well.
Docker's limits are the kernel's; prefer it where jobs are not trusted.
"""
# Without pathlib it starts in half the time, and every task waits for that.
# ruff: noqa: PTH104, PTH118, PTH120, PTH123, PTH208

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import json
import os
import resource
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
RESERVED_BYTES = 4_096  # for exit.json
SAMPLE_S = 0.2
DATA_LIMIT_TIMES, DATA_LIMIT_EXTRA_MIB = 4, 1_024  # RLIMIT_DATA over the memory limit
HOST_SHUTDOWN_GRACE_MS = 10_000  # when the supervisor itself is asked to end
MIB = 1024 * 1024
FALLOC_FL_KEEP_SIZE = 1
FALLOC_FL_PUNCH_HOLE = 2
KEPT_OUTPUT_BYTES = 64 * MIB
USER_SIGNALS = (
    signal.SIGHUP,
    signal.SIGINT,
    signal.SIGTERM,
    signal.SIGUSR1,
    signal.SIGUSR2,
    signal.SIGCHLD,
)

libc = ctypes.CDLL(None, use_errno=True)


def now_ms() -> int:
    return time.time_ns() // 1_000_000


# ---------------------------------------------------------------------------------------- files
def write_durably(path: str, content: dict[str, Any]) -> None:
    """Write, fsync, rename, fsync the folder: the file is whole or it is not there."""
    temporary = path + ".tmp"
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        text = json.dumps(content).encode()
        # Padded to the reserved size and never truncated, so that no block has to be found.
        os.pwrite(descriptor, text.ljust(RESERVED_BYTES), 0)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    os.rename(temporary, path)
    sync_folder(os.path.dirname(path))


def sync_folder(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


# ------------------------------------------------------------------------------------ processes
def stat_field(pid: int, index: int) -> int | None:
    """A number of /proc/PID/stat, counted from after the name. None: no such process."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return int(file.read().rpartition(b")")[2].split()[index])
    except (OSError, IndexError):
        return None


def start_time(pid: int) -> int | None:
    """When a process began, in ticks since boot: with the pid, its identity."""
    return stat_field(pid, 19)


def parent(pid: int) -> int | None:
    return stat_field(pid, 1)


def children(pid: int) -> Iterator[int]:
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return
    for thread in threads:
        with (
            contextlib.suppress(OSError),
            open(f"/proc/{pid}/task/{thread}/children", "rb") as file,
        ):
            yield from map(int, file.read().split())


def descendants(pid: int) -> list[int]:
    found = []
    waiting = list(children(pid))
    while waiting:
        child = waiting.pop()
        found.append(child)
        waiting.extend(children(child))
    return found


def kilobytes(path: str, *names: bytes) -> int:
    """The sum of these fields of a status file of /proc; 0 for a process that is gone."""
    total = 0
    with contextlib.suppress(OSError), open(path, "rb") as file:
        for line in file:
            name, _, rest = line.partition(b":")
            if name in names:
                total += int(rest.split()[0])
    return total


def used_mib(pids: list[int]) -> int:
    """Memory that swapping aside cannot be taken back, shared pages counted once per sharer."""
    return sum(kilobytes(f"/proc/{pid}/status", b"RssAnon", b"RssShmem") for pid in pids) // 1024


def used_exactly_mib(pids: list[int]) -> int:
    """The same with shared pages divided among sharers. Dear: asked when it decides a life."""
    return (
        sum(kilobytes(f"/proc/{pid}/smaps_rollup", b"Pss_Anon", b"Pss_Shmem") for pid in pids)
        // 1024
    )


def thread_count(pids: list[int]) -> int:
    return sum(kilobytes(f"/proc/{pid}/status", b"Threads") for pid in pids)


# ----------------------------------------------------------------------------------------- task
class Task:
    """The task's processes: started, told, limited, killed and reaped."""

    def __init__(self, folder: str, launch: dict[str, Any]) -> None:
        self.folder = folder
        self.launch = launch
        self.started_ms: int | None = None
        self.wait_status: int | None = None
        self.over: str | None = None  # which limit it broke, in words
        self.out_of_memory = False
        self.mapped_files_mib = 0
        self.deadline: float | None = None
        self.output = os.open(
            os.path.join(folder, "output.log"), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600
        )

    def start(self) -> str | None:
        """Start it, or say why it cannot be."""
        try:
            self.process = subprocess.Popen(  # noqa: S603 - the user's argv is the point
                self.launch["argv"],
                cwd=self.launch["cwd"],
                env=self.launch["env"],
                stdin=subprocess.DEVNULL,
                stdout=self.output,
                stderr=self.output,
                start_new_session=True,
                preexec_fn=self._constrain(os.getpid()),  # noqa: PLW1509 - no threads here
            )
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            return f"cannot execute {self.launch['argv'][0]!r}: {error}"
        # Kept for as long as we live: dropped, it would collect the child behind our back.
        self.main = self.process.pid
        self.started_ms = now_ms()
        return None

    def _constrain(self, supervisor: int) -> Callable[[], None]:
        launch = self.launch

        def constrain() -> None:
            # Should the supervisor be killed, its task must not run on unwatched.
            libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != supervisor:
                os._exit(1)
            for number in USER_SIGNALS:
                signal.signal(number, signal.SIG_DFL)
            if launch["cpus"]:
                os.sched_setaffinity(0, launch["cpus"])
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            if launch["memory_mib"] is not None:
                hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
                wanted = (DATA_LIMIT_TIMES * launch["memory_mib"] + DATA_LIMIT_EXTRA_MIB) * MIB
                bound = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
                resource.setrlimit(resource.RLIMIT_DATA, (bound, bound))
            # When the machine runs out of memory, a task goes before its worker does.
            with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
                file.write("500")

        return constrain

    def signal_all(self, number: int) -> None:
        # Never reaped before `reap` sees it, so the number of the group is still the task's.
        if self.wait_status is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.main, number)

    def stop(self, number: int, grace_ms: int) -> None:
        deadline = time.monotonic() + grace_ms / 1000
        self.deadline = deadline if self.deadline is None else min(self.deadline, deadline)
        self.signal_all(number)

    def kill_all(self) -> None:
        """Kill everything below us. A pid that was reused meanwhile has a parent elsewhere."""
        pids = descendants(os.getpid())
        family = {*pids, os.getpid()}
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                handle = os.pidfd_open(pid)
                try:
                    if parent(pid) in family:
                        signal.pidfd_send_signal(handle, signal.SIGKILL)
                finally:
                    os.close(handle)

    def reap(self) -> None:
        """Collect whoever ended."""
        while True:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if pid == self.main:
                self.wait_status = status
                self._judge_peak(usage.ru_maxrss // 1024)

    def _judge_peak(self, peak_mib: int) -> None:
        """A task that failed after passing its limit between two samples failed of memory."""
        limit_mib = self.launch["memory_mib"]
        if self.wait_status != 0 and self.over is None and limit_mib is not None:
            used = peak_mib - self.mapped_files_mib  # pages of files can be taken back
            if used > limit_mib:
                self.out_of_memory = True
                self.over = f"used {used} MiB of {limit_mib} MiB"

    def end_remains(self) -> None:
        """As in a container, what the main process leaves behind ends with it."""
        while True:
            self.kill_all()
            try:
                os.waitpid(-1, 0)
            except ChildProcessError:
                return

    def enforce(self) -> None:
        if self.deadline is not None and time.monotonic() >= self.deadline:
            self.kill_all()
        pids = descendants(os.getpid())
        memory_mib, threads = self.launch["memory_mib"], self.launch["pids"]
        if memory_mib is not None:
            files_kib = kilobytes(f"/proc/{self.main}/status", b"RssFile")
            self.mapped_files_mib = max(self.mapped_files_mib, files_kib // 1024)
            if used_mib(pids) > memory_mib and (used := used_exactly_mib(pids)) > memory_mib:
                self.out_of_memory = True
                self.over = f"used {used} MiB of {memory_mib} MiB"
        if threads is not None and thread_count(pids) > threads:
            self.over = f"ran more than {threads} processes and threads"
        if self.over is not None:
            self.kill_all()

    def bound_output(self) -> None:
        """Give old output back to the disk, and keep the offsets of what follows."""
        excess = os.fstat(self.output).st_size - KEPT_OUTPUT_BYTES
        if excess > 0:
            libc.fallocate(
                self.output,
                FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                ctypes.c_long(0),
                ctypes.c_long(excess),
            )

    def until_over(self, control: int, wakeup: int) -> None:
        pending = b""
        while self.wait_status is None:
            ready, _, _ = select.select([control, wakeup], [], [], self._patience())
            if wakeup in ready:
                os.read(wakeup, 4_096)
                self.reap()
            if control in ready:
                *lines, pending = (pending + os.read(control, 4_096)).split(b"\n")
                for line in lines:
                    self._obey(line)
            if self.wait_status is None:
                self.enforce()
                self.bound_output()
        self.end_remains()

    def _patience(self) -> float:
        if self.deadline is None:
            return SAMPLE_S
        return min(SAMPLE_S, max(0.0, self.deadline - time.monotonic()))

    def _obey(self, line: bytes) -> None:
        verb, *numbers = line.split()
        if verb == b"signal":
            self.signal_all(int(numbers[0]))
        elif verb == b"stop":
            self.stop(int(numbers[0]), int(numbers[1]))

    def outcome(self, refusal: str | None) -> dict[str, Any]:
        status = self.wait_status
        return {
            "refusal": refusal,
            "code": os.WEXITSTATUS(status) if status is not None and os.WIFEXITED(status) else None,
            "signal": (
                os.WTERMSIG(status) if status is not None and os.WIFSIGNALED(status) else None
            ),
            "out_of_memory": self.out_of_memory,
            "detail": self.over or "",
            "started_ms": self.started_ms,
            "finished_ms": now_ms(),
        }


# ----------------------------------------------------------------------------------------- main
def supervise(
    folder: str, launch: dict[str, Any], answer: Callable[[dict[str, Any]], None]
) -> None:
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1)
    try:
        task, control = set_up(folder, launch)
    except OSError as error:  # before anything ran: the caller's to hear, and nothing to keep
        answer({"errno": error.errno, "message": str(error)})
        return
    wakeup = on_signals(task)
    exit_file = os.path.join(folder, "exit.json")
    refusal = task.start()
    if refusal is not None:
        write_durably(exit_file, task.outcome(refusal))
        answer({})
        return
    write_durably(os.path.join(folder, "task.json"), {"started_ms": task.started_ms})
    answer({})
    task.until_over(control, wakeup)
    with contextlib.suppress(OSError):  # a full disk may lose output; never the exit code
        os.fsync(task.output)
    write_durably(exit_file, task.outcome(None))


def set_up(folder: str, launch: dict[str, Any]) -> tuple[Task, int]:
    """Everything that needs the disk, so that a full one is found before the task runs."""
    for name in ("exit.json.tmp", "task.json.tmp"):
        with open(os.path.join(folder, name), "wb") as reserve:
            reserve.write(b" " * RESERVED_BYTES)
            reserve.flush()
            os.fsync(reserve.fileno())
    control = open_control(os.path.join(folder, "control"))
    task = Task(folder, launch)
    pid = os.getpid()
    write_durably(
        os.path.join(folder, "supervisor.json"), {"pid": pid, "start_time": start_time(pid)}
    )
    return task, control


def open_control(path: str) -> int:
    """Read and write, so that the FIFO never says end-of-file when a worker lets go of it."""
    os.mkfifo(path, 0o600)
    return os.open(path, os.O_RDWR | os.O_NONBLOCK)


def on_signals(task: Task) -> int:
    """Handlers, not SIG_IGN, which the task would inherit. The descriptor wakes `select`."""
    wakeup, wake = os.pipe()
    os.set_blocking(wakeup, False)
    os.set_blocking(wake, False)
    for number in USER_SIGNALS:
        signal.signal(number, lambda *_: None)
    signal.signal(signal.SIGTERM, lambda *_: task.stop(signal.SIGTERM, HOST_SHUTDOWN_GRACE_MS))
    signal.set_wakeup_fd(wake)
    return wakeup


def detach(folder: str) -> None:
    """Let go of the caller's pipes; complaints of our own go to a file beside the task's."""
    null = os.open(os.devnull, os.O_RDWR)
    errors = os.open(
        os.path.join(folder, "supervisor.log"), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600
    )
    os.dup2(null, 0)
    os.dup2(null, 1)
    os.dup2(errors, 2)
    os.chdir("/")


def main() -> NoReturn:
    folder, lock = sys.argv[1], int(sys.argv[2])
    launch = json.load(sys.stdin)
    fcntl.fcntl(lock, fcntl.F_SETFD, fcntl.FD_CLOEXEC)
    reader, writer = os.pipe()
    if os.fork() > 0:
        os.close(writer)
        os.close(lock)
        with open(reader, "rb") as answers:
            line = answers.read()
        os.write(1, line)
        os._exit(0 if line else 1)
    os.close(reader)
    detach(folder)

    def answer(said: dict[str, Any]) -> None:
        with contextlib.suppress(BrokenPipeError):  # a worker that died in between
            os.write(writer, json.dumps(said).encode() + b"\n")
        os.close(writer)

    supervise(folder, launch, answer)
    sys.exit(0)


if __name__ == "__main__":
    main()
