"""`eva aws policies`: a policy as IAM takes it, filled in for one account, region and cluster.

It is needed most by somebody who may do nothing yet, so it asks AWS for as little as it can: whose
account it is, which needs no permission. What else cannot be looked up is left open, and told.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from eva.cli.aws_options import (
    ClusterOption,
    ConfigOption,
    EndpointOption,
    RegionOption,
    target_of,
)
from eva.cli.connecting import HomeOption
from eva.cli.console import print_json, print_note

if TYPE_CHECKING:
    from eva.adapters.aws.account.api import Api
    from eva.adapters.aws.account.target import Target

_ANY_VPC = "*"


def policies(
    name: Annotated[
        str,
        typer.Argument(metavar="NAME", help="administrator, master, workers, trust or bucket."),
    ] = "administrator",
    home: HomeOption = None,
    region: RegionOption = "",
    cluster: ClusterOption = "",
    aws_config: ConfigOption = None,
    endpoint_url: EndpointOption = "",
) -> None:
    """Print a policy that Eva needs, as JSON for IAM.

    `administrator` is for whoever runs `eva aws init`, `audit` and `destroy`. The others are put in
    place by init: what the master may do, what workers may do, who may take these roles, and that
    the bucket is reached over TLS alone. Changes nothing.
    """
    from eva.adapters.aws.account.identity import account_of
    from eva.adapters.aws.account.init import find_blanks
    from eva.adapters.aws.account.policies import POLICIES, policy
    from eva.adapters.aws.account.roles import Roles
    from eva.adapters.aws.account.target import Wishes
    from eva.inputs.problems import did_you_mean
    from eva.model.errors import InputError

    if name not in POLICIES:
        hint = did_you_mean(name, POLICIES)
        raise InputError.single("NAME", f"{name!r} is none of {', '.join(POLICIES)}{hint}")
    target = target_of(home, aws_config, Wishes(cluster, region, endpoint_url))
    api = target.api()
    account = account_of(api)
    target.check_account(account)
    roles = Roles(api, target.cluster)
    print_json(policy(name, find_blanks(target, account, _vpc(api, target), roles)))


def _vpc(api: Api, target: Target) -> str:
    """Where the cluster is or would be; any, where that may not be looked at."""
    from eva.adapters.aws.account.network import find_network
    from eva.model.errors import EvaError

    subnets = target.before.settings.subnets if target.before else {}
    try:
        return find_network(api, subnets).vpc
    except EvaError as error:
        print_note(f"any VPC is allowed, since the cluster's is not known yet ({error})")
        return _ANY_VPC
