"""The local cloud: instances of any catalog as worker processes of this machine."""

from eva.adapters.local.cloud import LocalCloud, LocalDelays

__all__ = ["LocalCloud", "LocalDelays"]
