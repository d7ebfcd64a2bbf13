"""From what a user writes (`--store`, `--storage`) to the adapter that it names.

Extras are imported only when they are asked for, so that a missing one is a sentence with its
remedy, and never a traceback.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType
from urllib.parse import urlsplit

from eva.adapters import sqlite
from eva.adapters.directory import DirectoryStorage
from eva.model.errors import InputError, OperatorError
from eva.ports.journal import Journal
from eva.ports.storage import Storage

JOURNAL_FILE = "journal.db"


def open_journal(store: str | None, data_dir: Path) -> Journal:
    """A PostgreSQL URL, the path of an SQLite file, or nothing: then a file in `data_dir`."""
    scheme = urlsplit(store).scheme if store else ""
    if scheme in {"postgresql", "postgres"}:
        adapter = _extra("eva.adapters.postgres", "psycopg", "postgres", "a PostgreSQL store")
        journal: Journal = adapter.open_journal(store)
        return journal
    if scheme:
        raise InputError.single(
            "--store",
            f"{scheme}:// is not a store: write postgresql://USER@HOST/DATABASE, or a file's path",
        )
    return sqlite.open_journal(Path(store) if store else data_dir / JOURNAL_FILE)


def open_storage(storage: str) -> Storage:
    """An S3 URL, or the path of a directory that all instances see."""
    scheme = urlsplit(storage).scheme
    if scheme == "s3":
        adapter = _extra("eva.adapters.s3", "boto3", "s3", "storage in S3")
        location = adapter.Location.parse(storage)
        made: Storage = adapter.S3Storage(adapter.Bucket(location))
        return made
    if scheme or not storage:
        raise InputError.single(
            "--storage",
            f"{storage!r} is not a storage: write s3://BUCKET/PREFIX, or a directory's path",
        )
    return DirectoryStorage(Path(storage))


def _extra(adapter: str, needs: str, extra: str, what: str) -> ModuleType:
    try:
        importlib.import_module(needs)
    except ImportError as error:
        raise OperatorError(
            f"{what} needs {needs}: pip install 'eva-scheduler[{extra}]'"
        ) from error
    return importlib.import_module(adapter)
