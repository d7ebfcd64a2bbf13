"""The journal in one SQLite file: the embedded default, for one machine."""

from eva.adapters.sqlite.journal import open_journal

__all__ = ["open_journal"]
