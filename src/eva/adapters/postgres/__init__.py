"""The journal in PostgreSQL: for a master with a standby on another machine. An extra."""

from eva.adapters.postgres.journal import open_journal

__all__ = ["open_journal"]
