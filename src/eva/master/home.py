"""The folder where a master keeps everything, made and known to take files."""

from __future__ import annotations

import tempfile
from pathlib import Path

from eva.model.errors import OperatorError


def make_home(home: Path) -> None:
    """Readable by its owner alone: keys and tokens are in it."""
    try:
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
        with tempfile.TemporaryFile(dir=home):
            pass
    except OSError as error:
        raise OperatorError(
            f"the home folder {home} cannot be written to ({error.strerror}): mend that, or choose "
            "another with --home or EVA_HOME"
        ) from None
