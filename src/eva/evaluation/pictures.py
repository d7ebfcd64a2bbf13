"""What all pictures have in common: matplotlib without a screen, the same look, whole files.

matplotlib is the extra `plot`; without it, asking for a picture is an input error that says what
to install. Pictures are deterministic: the same figures give the same bytes.
"""

from __future__ import annotations

import importlib.util
import io
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eva.model.errors import InputError
from eva.traces.whole_file import write_whole

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_FORMATS = (".svg", ".png", ".pdf")
# Without the date of drawing; keys that a format does not know are refused by matplotlib.
_METADATA: Mapping[str, dict[str, Any]] = {
    "svg": {"Date": None, "Creator": None, "Format": None, "Type": None},
    "png": {"Software": None},
    "pdf": {"CreationDate": None, "Producer": None},
}
_STYLE: Any = {  # matplotlib types its keys one by one
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e6e6e6",
    "legend.frameon": False,
    "svg.hashsalt": "eva",  # ids inside the file, else random
    "svg.fonttype": "path",
}

# Told apart also by the colour-blind (Okabe and Ito), and by markers where lines cross.
POLICY_LOOKS: Mapping[str, tuple[str, str]] = {
    "no-packing": ("#7f7f7f", "s"),
    "stratus": ("#56b4e9", "v"),
    "synergy": ("#009e73", "^"),
    "owl": ("#cc79a7", "D"),
    "eva": ("#d55e00", "o"),
    "eva-published": ("#8d6e63", "X"),
    "eva-rp": ("#e69f00", "P"),
    "eva-single": ("#e69f00", "P"),
    "eva-partial-only": ("#e69f00", "<"),
    "eva-full-only": ("#0072b2", ">"),
    "optimal": ("#000000", "*"),
}
OTHER_LOOK = ("#333333", "x")


def check_plot(path: Path) -> None:
    """Complain before hours of simulation rather than after them."""
    if path.suffix not in _FORMATS:
        known = ", ".join(_FORMATS)
        raise InputError.single(str(path), f"ends in no format of pictures; use one of {known}")
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise InputError.single(
            str(path), f"cannot be written: {path.parent} is no folder that may be written to"
        )
    if not plotting_works():
        raise InputError.single(
            "--plot", "needs matplotlib; install it with: pip install 'eva-scheduler[plot]'"
        )


def plotting_works() -> bool:
    return importlib.util.find_spec("matplotlib") is not None


def new_figure(width: float, height: float, rows: int = 1, columns: int = 1, **layout: Any) -> Any:
    """A figure and its axes, in Eva's style, belonging to no window."""
    import matplotlib as mpl  # noqa: PLC0415  # an extra
    from matplotlib.figure import Figure  # noqa: PLC0415

    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(width, height), layout="constrained")
        axes = figure.subplots(rows, columns, **layout)
    return figure, axes


def picture_bytes(figure: Figure, kind: str) -> bytes:
    import matplotlib as mpl  # noqa: PLC0415

    content = io.BytesIO()
    with mpl.rc_context(_STYLE):
        figure.savefig(content, format=kind, dpi=150, metadata=_METADATA[kind])
    return content.getvalue()


def write_picture(figure: Figure, path: Path) -> None:
    write_whole(path, picture_bytes(figure, path.suffix.removeprefix(".")))
