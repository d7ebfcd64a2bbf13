"""`eva solve --json`: the solution for programs. Keys are stable; new ones may be added."""

from __future__ import annotations

from typing import Any

from eva.cli.solving import Solution
from eva.model.units import micros_to_usd
from eva.scheduling.explanation import Reason, Share


def as_json(solution: Solution) -> dict[str, Any]:
    plan = solution.plan
    return {
        "policy": solution.policy,
        "catalog": solution.catalog.name,
        "cost_usd_per_hour": micros_to_usd(plan.billed_micros),
        "interruption_risk_usd_per_hour": micros_to_usd(plan.risk_micros),
        "cost_with_risk_usd_per_hour": micros_to_usd(plan.hourly_micros),  # as bounds are
        "no_packing_usd_per_hour": micros_to_usd(solution.no_packing_micros),
        "lower_bound_usd_per_hour": micros_to_usd(solution.lower_bound_micros),
        "gap": solution.gap,
        "decision": {"chosen": plan.decision.chosen, "reason": plan.decision.reason},
        "instances": [_instance(reason) for reason in solution.reasons],
        "unplaceable": [
            {"id": missing.task, "reason": missing.reason} for missing in plan.unplaceable
        ],
    }


def _instance(reason: Reason) -> dict[str, Any]:
    planned = reason.planned
    return {
        "type": planned.type.name,
        "usd_per_hour": micros_to_usd(planned.type.billed_micros),
        "interruption_risk_usd_per_hour": micros_to_usd(planned.type.risk_micros),
        "spot": planned.type.spot,
        "tasks": list(planned.tasks),
        "value_usd_per_hour": micros_to_usd(planned.value_micros),
        "saving_usd_per_hour": micros_to_usd(planned.saving_micros),
        "apart_usd_per_hour": micros_to_usd(reason.apart_micros),
        "shares": [_share(share) for share in reason.shares],
    }


def _share(share: Share) -> dict[str, Any]:
    return {
        "workload": share.workload,
        "tasks": list(share.tasks),
        "reservation_price_type": share.alone_on.name,
        "reservation_price_usd_per_hour": micros_to_usd(share.alone_micros),
        "throughput": share.throughput,
        "value_usd_per_hour": micros_to_usd(share.worth_micros),
    }
