"""Which adapter a user's words name, and what is said about words that name none."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from eva.adapters.directory import DirectoryStorage
from eva.adapters.s3 import S3Storage
from eva.adapters.stores import open_journal, open_storage
from eva.model.errors import InputError, OperatorError
from eva.ports.journal import JournalUnreachableError


def test_without_a_store_the_journal_is_a_file_in_the_data_folder(tmp_path: Path) -> None:
    open_journal(None, tmp_path / "data").close()
    assert (tmp_path / "data" / "journal.db").is_file()


def test_a_path_is_a_file(tmp_path: Path) -> None:
    open_journal(str(tmp_path / "other.db"), tmp_path / "data").close()
    assert (tmp_path / "other.db").is_file()
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("scheme", ["postgresql", "postgres"])
def test_a_postgresql_url_is_a_server(scheme: str, tmp_path: Path) -> None:
    with pytest.raises(JournalUnreachableError, match=r"127\.0\.0\.1:1"):
        open_journal(f"{scheme}://eva@127.0.0.1:1/eva", tmp_path)


def test_storage_is_a_directory_or_a_bucket(tmp_path: Path) -> None:
    assert isinstance(open_storage(str(tmp_path)), DirectoryStorage)
    assert isinstance(open_storage("s3://jobs/a?region=us-east-1"), S3Storage)


def test_what_names_nothing_says_what_would(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="postgresql://USER@HOST/DATABASE"):
        open_journal("mysql://host/db", tmp_path)
    for storage in ("gs://jobs", ""):
        with pytest.raises(InputError, match="s3://BUCKET/PREFIX"):
            open_storage(storage)


def test_a_missing_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("boto3", "psycopg"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(OperatorError, match=r"pip install 'eva-scheduler\[postgres\]'"):
        open_journal("postgresql://host/db", tmp_path)
    with pytest.raises(OperatorError, match=r"pip install 'eva-scheduler\[s3\]'"):
        open_storage("s3://jobs")
