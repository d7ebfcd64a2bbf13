"""Global storage in a directory that all instances see: the default."""

from eva.adapters.directory.storage import DirectoryStorage

__all__ = ["DirectoryStorage"]
