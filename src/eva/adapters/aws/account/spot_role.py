"""The role that EC2 itself needs before an account's first spot instance: made once, never removed.

It is the account's and not a cluster's, so it bears no tag of ours. A master may not make it, and
must not need to.
"""

from __future__ import annotations

from functools import partial

from eva.adapters.aws.account.api import Api
from eva.adapters.aws.account.plan import Action, Step, Work

KIND = "service-linked role"
NAME = "AWSServiceRoleForEC2Spot"
_SERVICE = "spot.amazonaws.com"
_PATH = f"/aws-service-role/{_SERVICE}/"


def spot_role_step(api: Api) -> Step:
    with api.doing(f"looking at {KIND} {NAME}"):
        found = api.pages("iam", "list_roles", "Roles", PathPrefix=_PATH)
    told = ("EC2's own, for spot instances; the account's, so it stays when the cluster goes",)
    if found:
        return Step(Action.KEEP, KIND, NAME, told)
    make = partial(api.change, "iam", "create_service_linked_role", AWSServiceName=_SERVICE)
    return Step(Action.CREATE, KIND, NAME, told, (Work(f"creating {KIND} {NAME}", make),))
