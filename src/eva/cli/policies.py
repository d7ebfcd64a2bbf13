"""Policies by name on the command line: completed, and with a suggestion where mistyped."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from eva.scheduling.policy import SchedulingPolicy


def complete_policy(incomplete: str) -> list[str]:
    from eva.scheduling.policies import POLICY_NAMES

    return [name for name in POLICY_NAMES if name.startswith(incomplete)]


def policy_named(name: str, option: str = "--policy") -> SchedulingPolicy:
    from eva.inputs.problems import did_you_mean
    from eva.model.errors import InputError
    from eva.scheduling.policies import POLICY_NAMES, policy

    if name not in POLICY_NAMES:
        hint = did_you_mean(name, POLICY_NAMES)
        known = ", ".join(POLICY_NAMES)
        raise InputError.single(option, f"{name!r} is not a policy{hint} (known: {known})")
    return policy(name)
