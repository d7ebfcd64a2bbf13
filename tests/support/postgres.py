"""A real PostgreSQL server on a loopback port, for one test session.

The server refuses to run as root, so that where tests are root it is given to an unprivileged
account. It keeps its data in a folder of its own and goes away with the fixture.
"""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from tests.support.requirements import require

PASSWORD = "loopback-only"  # of a server that lives for one test session


def postgres_binaries() -> Path | None:
    """Where `initdb` and `pg_ctl` are: on the path, or where Debian puts them."""
    found = shutil.which("initdb")
    if found:
        return Path(found).resolve().parent
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((folder for folder in folders if (folder / "initdb").exists()), None)


class PostgresServer:
    """A server that can be stopped, killed and started again under the same address."""

    def __init__(self, binaries: Path, folder: Path, account: str | None) -> None:
        self._binaries = binaries
        self._folder = folder
        self._account = account
        self._schemas = 0
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self._port = probe.getsockname()[1]
        secret = folder / "password"
        secret.write_text(PASSWORD)
        if account:
            shutil.chown(folder, account)
            shutil.chown(secret, account)
        self._run(
            *("initdb", "-D", folder / "data", "-U", "eva", "--pwfile", secret),
            *("-A", "scram-sha-256", "-E", "UTF8", "--no-sync", "--no-locale"),
        )

    def start(self) -> None:
        # Tests kill the server, never the machine: without fsync it starts again in no time.
        options = (
            f"-p {self._port} -c fsync=off -c listen_addresses=127.0.0.1 "
            "-c unix_socket_directories=''"
        )
        self._run(
            *("pg_ctl", "-D", self._folder / "data", "-w", "-t", "30"),
            *("-l", self._folder / "log", "-o", options, "start"),
        )

    def stop(self, mode: str = "fast") -> None:
        self._run("pg_ctl", "-D", self._folder / "data", "-w", "-m", mode, "stop")

    def url(self, database: str, password: str = PASSWORD) -> str:
        return f"postgresql://eva:{password}@127.0.0.1:{self._port}/{database}"

    def execute(self, statement: str) -> list[tuple[object, ...]]:
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    def new_schema(self) -> str:
        """The URL of an empty schema: as good as a database of its own, and a hundredth of it."""
        self._schemas += 1
        name = f"eva_{self._schemas}"
        self.execute(f"CREATE SCHEMA {name}")
        return f"{self.url('postgres')}?options=-csearch_path%3D{name}"

    def end_sessions(self, how: str = "pg_terminate_backend") -> None:
        """Cut every connection but the one that asks."""
        self.execute(f"SELECT {how}(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()")

    def _run(self, program: str, *arguments: str | Path) -> None:
        command = [str(self._binaries / program), *map(str, arguments)]
        # To a file, not a pipe: the server inherits it and would keep a pipe open.
        with (self._folder.parent / f"{self._folder.name}.out").open("w+") as output:
            code = subprocess.run(
                command,
                check=False,
                user=self._account,
                group=pwd.getpwnam(self._account).pw_gid if self._account else None,
                extra_groups=[] if self._account else None,
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            ).returncode
            output.seek(0)
            assert code == 0, f"{' '.join(command)}: {output.read()}"


@contextmanager
def running_postgres(binaries: Path) -> Iterator[PostgresServer]:
    account = None
    if os.geteuid() == 0:
        names = {entry.pw_name for entry in pwd.getpwall()}
        account = "postgres" if "postgres" in names else "nobody"
    # Not pytest's folder: the unprivileged account could not reach into it.
    folder = Path(tempfile.mkdtemp(prefix="eva-postgres-"))
    server = PostgresServer(binaries, folder, account)
    server.start()
    try:
        yield server
    finally:
        server.stop("immediate")
        shutil.rmtree(folder)
        folder.with_name(f"{folder.name}.out").unlink(missing_ok=True)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    binaries = postgres_binaries()
    require(binaries, "PostgreSQL's initdb and pg_ctl (Debian: the package postgresql)")
    assert binaries is not None
    with running_postgres(binaries) as server:
        yield server
