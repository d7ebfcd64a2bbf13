"""What goes wrong on the way through the HTTP API, in one JSON shape whoever found it.

The status says what the caller can do about it. What FastAPI itself refuses (a body that is no
JSON, a parameter that is no number, a path that is not there) has the same shape as what Eva does.
"""

from __future__ import annotations

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from eva.master.submission import KeyReusedError
from eva.master.tokens import UnauthorisedError
from eva.master.words import API, Fault
from eva.model.errors import CapacityError, EvaError, InputError, Problem, TryAgainError
from eva.ports.journal import JournalFullError


class NoSuchThingError(EvaError):
    """No job, task or instance of this name."""

    exit_code = 2


class ClosingError(EvaError):
    """The cluster is being shut down."""


_STATUS: tuple[tuple[type[EvaError], int], ...] = (
    (UnauthorisedError, 401),
    (NoSuchThingError, 404),
    (KeyReusedError, 409),
    (ClosingError, 409),
    (JournalFullError, 507),
    (InputError, 400),
    (TryAgainError, 503),
    (CapacityError, 503),
)
_KINDS = {413: "TooLargeError"}
_NOT_HERE = {404: "there is no such path", 405: "this path takes another method"}


def answer_faults(app: FastAPI) -> None:
    app.add_exception_handler(EvaError, _of_eva)
    app.add_exception_handler(RequestValidationError, _of_the_request)
    app.add_exception_handler(HTTPException, _of_the_path)


def _of_eva(_request: Request, error: Exception) -> JSONResponse:
    status = next((code for kind, code in _STATUS if isinstance(error, kind)), 500)
    problems = error.problems if isinstance(error, InputError) else ()
    return _answer(status, type(error).__name__, str(error), problems)


def _of_the_request(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)  # noqa: S101  as it was registered for
    problems = [
        Problem(".".join(map(str, each["loc"])), f"{each['msg']}; see {API}/docs")
        for each in error.errors()
    ]
    return _of_eva(request, InputError(problems))


def _of_the_path(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)  # noqa: S101  as it was registered for
    said = _NOT_HERE.get(error.status_code, str(error.detail))
    message = f"{request.method} {request.url.path}: {said}; see {API}/docs"
    return _answer(error.status_code, _KINDS.get(error.status_code, "NoSuchPathError"), message)


def _answer(
    status: int, kind: str, message: str, problems: tuple[Problem, ...] = ()
) -> JSONResponse:
    told = [[_text(problem.where), _text(problem.message)] for problem in problems]
    fault = Fault(kind=kind, message=_text(message), problems=told)
    return JSONResponse(fault.model_dump(), status_code=status)


def _text(said: str) -> str:
    """A complaint quotes what was sent, and that may hold what no answer can."""
    return said.encode("utf-8", "replace").decode()
