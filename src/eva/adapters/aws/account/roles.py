"""Roles for instances, each with one policy of ours and an instance profile of the same name.

Policies that others put beside ours stay: that is how tasks are let do more than Eva needs.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from eva.adapters.aws.account.api import Api
from eva.adapters.aws.account.names import IAM_PATH, tags
from eva.adapters.aws.account.ownership import check_ours
from eva.adapters.aws.account.plan import Action, Step, Work, compared
from eva.adapters.aws.account.policies import Policy
from eva.model.errors import InputError

ROLE, PROFILE = "role", "instance profile"
POLICY_NAME = "eva"
ABSENT = frozenset({"NoSuchEntity"})


@dataclass(frozen=True, slots=True)
class WantedRole:
    name: str
    description: str
    trust: Policy
    policy: Policy


class Roles:
    def __init__(self, api: Api, cluster: str) -> None:
        self._api, self._cluster = api, cluster

    def role_step(self, wanted: WantedRole) -> Step:
        found = self._role(wanted.name)
        give = Work(f"giving {ROLE} {wanted.name} its policy", partial(self._give, wanted))
        if found is None:
            create = Work(f"creating {ROLE} {wanted.name}", partial(self._create, wanted))
            return Step(Action.CREATE, ROLE, wanted.name, (wanted.description,), (create, give))
        check_ours(ROLE, wanted.name, found.get("Tags", ()), self._cluster)
        details, work = [], []
        if not _same(found["AssumeRolePolicyDocument"], wanted.trust):
            details.append("who may take it is not as it should be")
            mend = partial(self._trust, wanted)
            work.append(Work(f"mending who may take {ROLE} {wanted.name}", mend))
        if not _same(self._given(wanted.name), wanted.policy):
            details.append("its policy is not as it should be")
            work.append(give)
        return compared(ROLE, wanted.name, tuple(details) or (wanted.description,), tuple(work))

    def profile_step(self, name: str) -> Step:
        """The profile of this name, holding the role of the same name."""
        found = self._profile(name)
        add = Work(f"putting {ROLE} {name} into its {PROFILE}", partial(self._add, name))
        if found is None:
            create = Work(f"creating {PROFILE} {name}", partial(self._create_profile, name))
            return Step(Action.CREATE, PROFILE, name, (f"holds {ROLE} {name}",), (create, add))
        check_ours(PROFILE, name, found.get("Tags", ()), self._cluster)
        held = [role["RoleName"] for role in found["Roles"]]
        work, details = [], [f"holds {ROLE} {name}"]
        for other in held:
            if other != name:
                details.append(f"takes out {ROLE} {other}")
                take = partial(self._take_out, name, other)
                work.append(Work(f"taking {ROLE} {other} out of {PROFILE} {name}", take))
        if name not in held:
            work.append(add)
        return compared(PROFILE, name, tuple(details), tuple(work))

    def role_of_profile(self, name: str, option: str) -> str:
        """The ARN of the role in a profile that somebody else made."""
        found = self._profile(name)
        if found is None or not found["Roles"]:
            why = "does not exist" if found is None else "holds no role"
            raise InputError.single(option, f"the {PROFILE} {name} {why}: name one with a role")
        return str(found["Roles"][0]["Arn"])

    # Looking

    def _role(self, name: str) -> Mapping[str, Any] | None:
        with self._api.doing(f"looking at {ROLE} {name}"):
            found = self._api.find("iam", "get_role", ABSENT, RoleName=name)
        return None if found is None else found["Role"]

    def _given(self, name: str) -> Policy:
        asked = {"RoleName": name, "PolicyName": POLICY_NAME}
        with self._api.doing(f"looking at the policy of {ROLE} {name}"):
            found = self._api.find("iam", "get_role_policy", ABSENT, **asked)
        return {} if found is None else found["PolicyDocument"]

    def _profile(self, name: str) -> Mapping[str, Any] | None:
        with self._api.doing(f"looking at {PROFILE} {name}"):
            found = self._api.find("iam", "get_instance_profile", ABSENT, InstanceProfileName=name)
        return None if found is None else found["InstanceProfile"]

    # Doing

    def _create(self, wanted: WantedRole) -> None:
        self._api.change(
            "iam",
            "create_role",
            RoleName=wanted.name,
            Path=IAM_PATH,
            Description=wanted.description,
            AssumeRolePolicyDocument=json.dumps(wanted.trust),
            Tags=tags(self._cluster),
        )

    def _give(self, wanted: WantedRole) -> None:
        self._api.change(
            "iam",
            "put_role_policy",
            RoleName=wanted.name,
            PolicyName=POLICY_NAME,
            PolicyDocument=json.dumps(wanted.policy),
        )

    def _trust(self, wanted: WantedRole) -> None:
        document = json.dumps(wanted.trust)
        self._api.change(
            "iam", "update_assume_role_policy", RoleName=wanted.name, PolicyDocument=document
        )

    def _create_profile(self, name: str) -> None:
        self._api.change(
            "iam",
            "create_instance_profile",
            InstanceProfileName=name,
            Path=IAM_PATH,
            Tags=tags(self._cluster),
        )

    def _add(self, name: str) -> None:
        self._api.change(
            "iam", "add_role_to_instance_profile", InstanceProfileName=name, RoleName=name
        )

    def _take_out(self, profile: str, role: str) -> None:
        self._api.change(
            "iam", "remove_role_from_instance_profile", InstanceProfileName=profile, RoleName=role
        )


def _same(found: Policy, wanted: Policy) -> bool:
    return bool(_canonical(found) == _canonical(wanted))


def _canonical(value: Any) -> Any:
    """IAM may give lists of one back as their element, and lists in another order."""
    if isinstance(value, dict):
        return {key: _canonical(each) for key, each in value.items()}
    if isinstance(value, list):
        each = sorted((_canonical(item) for item in value), key=json.dumps)
        return each[0] if len(each) == 1 else each
    return value
