"""Packages that only some commands need: which extra brings them, if one is not there."""

from __future__ import annotations

from eva.model.errors import OperatorError

# By the name under which it is imported.
_EXTRAS = {
    "boto3": "aws",
    "botocore": "aws",
    "cryptography": "server",
    "dask": "dask",
    "distributed": "dask",
    "docker": "docker",
    "fastapi": "server",
    "google": "server",
    "grpc": "server",
    "matplotlib": "plot",
    "prometheus_client": "server",
    "psycopg": "postgres",
    "pyarrow": "parquet",
    "starlette": "server",
    "structlog": "server",
    "uvicorn": "server",
}
_PACKAGES = {"eva_iterator": "eva-iterator"}  # of ours, installed by themselves


def what_to_install(missing: ModuleNotFoundError) -> OperatorError | None:
    """What to say of a package that is missing; None if it is one that always has to be there."""
    module = (missing.name or "").partition(".")[0]
    extra = _EXTRAS.get(module)
    package = f"eva-scheduler[{extra}]" if extra else _PACKAGES.get(module)
    if package is None:
        return None
    return OperatorError(f"this needs {module}, which is not installed: pip install '{package}'")
