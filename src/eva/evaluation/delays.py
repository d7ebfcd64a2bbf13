"""How delays are told on a command line and in an experiment's file.

`fixed`     as the trace and the catalog have them
`sampled`   each multiplied by a factor drawn anew between 0.5 and 1.5
`xN`        the delays of tasks N times as long (the paper's sweep over migration delay)
"""

from __future__ import annotations

from eva.model.errors import InputError
from eva.model.units import parse_decimal
from eva.simulator.settings import DelaySettings

_JITTER = (0.5, 1.5)
_MOST = 1_000


def delays_named(text: str, seed: int, where: str) -> DelaySettings:
    if text == "fixed":
        return DelaySettings(seed=seed)
    if text == "sampled":
        return DelaySettings(jitter=_JITTER, seed=seed)
    if text.startswith("x"):
        try:
            factor = float(parse_decimal(text[1:]))
        except ValueError:
            factor = -1.0
        if 0 <= factor <= _MOST:
            return DelaySettings(task_scale=factor, seed=seed)
    raise InputError.single(
        where, f"{text!r} is no way to have delays; give fixed, sampled or xN, such as x2"
    )
