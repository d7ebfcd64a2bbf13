"""Every scheduling policy by its name: the one list that command lines and experiments read."""

from __future__ import annotations

from collections.abc import Callable

from eva.model.errors import InputError
from eva.scheduling.baselines.no_packing import NoPacking
from eva.scheduling.baselines.owl import Owl
from eva.scheduling.baselines.stratus import Stratus
from eva.scheduling.baselines.synergy import Synergy
from eva.scheduling.eva import PUBLISHED, EvaPolicy, Reconfiguration
from eva.scheduling.exact.ilp import IlpPolicy
from eva.scheduling.exact.net_value import NetValuePolicy
from eva.scheduling.exact.optimal import OptimalPolicy
from eva.scheduling.policy import SchedulingPolicy
from eva.scheduling.valuation import Valuation

_MAKERS: dict[str, Callable[[], SchedulingPolicy]] = {
    "eva": EvaPolicy,
    "eva-published": lambda: EvaPolicy("eva-published", considered=PUBLISHED),
    "eva-full-only": lambda: EvaPolicy("eva-full-only", considered=(Reconfiguration.FULL,)),
    "eva-partial-only": lambda: EvaPolicy(
        "eva-partial-only", considered=(Reconfiguration.PARTIAL,)
    ),
    "eva-rp": lambda: EvaPolicy("eva-rp", Valuation(interference=False), PUBLISHED),
    "eva-single": lambda: EvaPolicy("eva-single", Valuation(multi_task=False), PUBLISHED),
    "no-packing": NoPacking,
    "stratus": Stratus,
    "synergy": Synergy,
    "owl": Owl,
    "optimal": OptimalPolicy,
    "net-value": NetValuePolicy,
    "ilp": IlpPolicy,
}

POLICY_NAMES: tuple[str, ...] = tuple(_MAKERS)


def policy(name: str) -> SchedulingPolicy:
    """A fresh policy, or an input error that names the ones there are."""
    if name not in _MAKERS:
        known = ", ".join(POLICY_NAMES)
        raise InputError.single("policy", f"{name!r} is not a policy; choose one of {known}")
    return _MAKERS[name]()
