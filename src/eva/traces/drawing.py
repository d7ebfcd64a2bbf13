"""What a list of pods leaves open, and how it is drawn."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from eva.model.units import MS_PER_HOUR

MEAN_INTERARRIVAL_MS = MS_PER_HOUR // 3  # 20 minutes, the paper's


class Durations(Enum):
    """As the trace says, or drawn by the model of Gavel."""

    TRACED = "traced"
    GAVEL = "gavel"


@dataclass(frozen=True, slots=True)
class Drawing:
    seed: int = 0
    durations: Durations = Durations.TRACED
    mean_interarrival_ms: int = MEAN_INTERARRIVAL_MS
