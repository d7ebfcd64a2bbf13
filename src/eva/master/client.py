"""The one client of the HTTP API: typed, synchronous, and clear about what to do when it fails."""

from __future__ import annotations

import json
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Self, TypeVar
from urllib.parse import quote

import httpx
from pydantic import TypeAdapter, ValidationError

from eva.master.words import (
    API,
    Cluster,
    DecisionOut,
    EventOut,
    Explanation,
    Fault,
    InstanceOut,
    JobOut,
    LogLine,
    Preview,
    Submission,
    Submitted,
    TokenOut,
    WorkdirStored,
)
from eva.model.errors import EvaError, InputError, OperatorError, Problem, TryAgainError

CONNECTION_FILE = "client.json"
_TIMEOUT_S = 30.0
_T = TypeVar("_T")


class NotRunningError(TryAgainError):
    """There is no master at this address."""


class RefusedError(EvaError):
    """The master understood, and said no."""

    def __init__(self, fault: Fault, exit_code: int) -> None:
        self.fault = fault
        self.exit_code = exit_code
        super().__init__(fault.message)


@dataclass(frozen=True, slots=True)
class Connection:
    """Where a master is and how to be let in; `certificate` is what it is known by under TLS."""

    url: str
    token: str
    certificate: str | None = None

    @classmethod
    def read(cls, home: Path) -> Connection:
        path = home / CONNECTION_FILE
        try:
            raw = json.loads(path.read_text())
            return cls(raw["url"], raw["token"], raw.get("certificate"))
        except FileNotFoundError:
            raise NotRunningError(f"no cluster was started in {home}: run `eva up`") from None
        except NotADirectoryError:
            raise OperatorError(
                f"{home} is no folder, so no cluster can be kept there: choose another with --home "
                "or EVA_HOME"
            ) from None
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise OperatorError(f"{path} cannot be read ({error}): run `eva up` again") from error

    def write(self, home: Path) -> None:
        path = home / CONNECTION_FILE
        fresh = path.with_suffix(".new")
        fresh.touch(mode=0o600)
        fresh.write_text(
            json.dumps({"url": self.url, "token": self.token, "certificate": self.certificate})
        )
        fresh.replace(path)


class Client:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._http = httpx.Client(
            base_url=connection.url + API,
            headers=_authorization(connection.token),
            timeout=_TIMEOUT_S,
            verify=_verification(connection.certificate),
            trust_env=False,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def health(self) -> dict[str, Any]:
        return self._ask(dict[str, Any], "GET", "/health")

    def cluster(self) -> Cluster:
        return self._ask(Cluster, "GET", "/cluster")

    def submit(self, submission: Submission) -> Submitted:
        return self._ask(Submitted, "POST", "/jobs", json=submission.model_dump())

    def preview(self, submission: Submission) -> Preview:
        return self._ask(Preview, "POST", "/preview", json=submission.model_dump())

    def store_workdir(self, archive: IO[bytes]) -> str:
        return self._ask(WorkdirStored, "POST", "/workdirs", content=archive).digest

    def jobs(self, *, ended: bool = False) -> list[JobOut]:
        return self._ask(list[JobOut], "GET", "/jobs", params={"ended": ended})

    def job(self, name: str) -> JobOut:
        return self._ask(JobOut, "GET", f"/jobs/{_part(name)}")

    def cancel(self, name: str) -> JobOut:
        return self._ask(JobOut, "POST", f"/jobs/{_part(name)}/cancel")

    def instances(self, *, ended: bool = False) -> list[InstanceOut]:
        return self._ask(list[InstanceOut], "GET", "/instances", params={"ended": ended})

    def explain(self, subject: str) -> Explanation:
        return self._ask(Explanation, "GET", f"/explain/{_part(subject)}")

    def decisions(self, *, changes: bool = False) -> list[DecisionOut]:
        return self._ask(list[DecisionOut], "GET", "/decisions", params={"changes": changes})

    def events(self, after: int = 0) -> list[EventOut]:
        return self._ask(list[EventOut], "GET", "/events", params={"after": after})

    def tokens(self) -> list[TokenOut]:
        return self._ask(list[TokenOut], "GET", "/tokens")

    def make_token(self, name: str) -> TokenOut:
        return self._ask(TokenOut, "POST", f"/tokens/{_part(name)}")

    def revoke_token(self, name: str) -> None:
        self._ask(dict[str, str], "DELETE", f"/tokens/{_part(name)}")

    def shut_down(self, *, cancel: bool) -> dict[str, Any]:
        return self._ask(dict[str, Any], "POST", "/shutdown", params={"cancel": cancel})

    def logs(self, job: str, *, follow: bool = False) -> Iterator[LogLine]:
        """Lines as they come; with `follow` until the job is over."""
        timeout = httpx.Timeout(_TIMEOUT_S, read=None)
        try:
            with self._http.stream(
                "GET", f"/jobs/{_part(job)}/logs", params={"follow": follow}, timeout=timeout
            ) as answer:
                if answer.is_error:
                    answer.read()
                    raise _fault(answer)
                for line in answer.iter_lines():
                    yield LogLine.model_validate_json(line)
        except httpx.TransportError as error:
            raise self._not_running(error) from error

    def _ask(self, kind: type[_T], method: str, path: str, **rest: Any) -> _T:
        try:
            answer = self._http.request(method, path, **rest)
        except httpx.TransportError as error:
            raise self._not_running(error) from error
        if answer.is_error:
            raise _fault(answer)
        try:
            return TypeAdapter(kind).validate_json(answer.content)
        except ValidationError as error:
            raise OperatorError(
                f"{self._connection.url} does not answer as an Eva master ({error.error_count()} "
                "fields are wrong): check the address, and that both sides are of one version"
            ) from error

    def _not_running(self, error: httpx.TransportError) -> NotRunningError:
        return NotRunningError(
            f"no master answers at {self._connection.url} ({error}): run `eva up`, or point "
            "EVA_HOME or EVA_URL at the cluster that you mean"
        )


def _part(name: str) -> str:
    """A name as one part of a path, whatever somebody typed."""
    return quote(name, safe="")


def _verification(certificate: str | None) -> ssl.SSLContext | bool:
    """Whom to believe: what the machine trusts, or one certificate and nobody else."""
    if certificate is None:
        return True
    try:
        return ssl.create_default_context(cafile=certificate)
    except OSError as error:
        raise OperatorError(
            f"the certificate {certificate} cannot be used ({error.strerror or error}): "
            "EVA_CERTIFICATE names the PEM file that the master is known by"
        ) from error


def _authorization(token: str) -> dict[str, str]:
    if not token:
        return {}  # the master says what is missing
    if not (token.isascii() and token.isprintable()):
        raise InputError.single(
            "EVA_TOKEN",
            "holds characters that no token has; copy it again, as `eva token make` printed it",
        )
    return {"Authorization": f"Bearer {token}"}


_EXIT_CODES = {400: 2, 401: 1, 404: 2, 409: 2, 422: 2}


def _fault(answer: httpx.Response) -> EvaError:
    try:
        fault = Fault.model_validate_json(answer.content)
    except ValidationError:
        fault = Fault(kind="HttpError", message=f"HTTP {answer.status_code}: {answer.text[:500]}")
    if fault.problems:
        return InputError([Problem(where, message) for where, message in fault.problems])
    return RefusedError(fault, _EXIT_CODES.get(answer.status_code, 1))
