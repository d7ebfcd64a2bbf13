"""What `eva aws audit` finds: everything that bears a cluster's tag, whose it is, what it costs.

EC2 is looked at first and the journal is read afterwards, as the reaper does and for its reason: an
intent is in the journal before its instance is asked for, so what was seen first and is unknown
afterwards is part of no plan. What this home's journal cannot vouch for is said to be left over;
what belongs to other clusters can only be judged from their own homes. Nothing is changed.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from eva.adapters.aws.account import inventory
from eva.adapters.aws.account.api import Api
from eva.adapters.aws.account.identity import Account, account_of
from eva.adapters.aws.account.inventory import Found
from eva.adapters.aws.account.names import Names
from eva.adapters.aws.account.target import Target
from eva.adapters.aws.prices import Market, Price, Prices
from eva.adapters.aws.reaper import Cause, cause_of
from eva.model.errors import EvaError
from eva.model.ids import InstanceId

_OF_A_REGION = (
    inventory.instances,
    inventory.volumes,
    inventory.interfaces,
    inventory.spot_requests,
    inventory.security_groups,
)
_HANGING = frozenset({inventory.VOLUME, inventory.INTERFACE, inventory.SPOT})
_ENDING = frozenset({"shutting-down", "deleting", "deleted"})
_BILLED = frozenset({"pending", "running"})  # others have only their volumes billed
_REGIONS_AT_ONCE = 8


class Verdict(enum.Enum):
    """Of one thing; the value is what programs read."""

    KNOWN = "known"
    UNKNOWN = "unknown"
    DOUBLE = "double"
    OTHER_JOURNAL = "other-journal"
    UNTOLD = "untold"
    OTHER_CLUSTER = "other-cluster"
    LOOSE = "loose"
    ATTACHED = "attached"
    ENDING = "ending"
    SET_UP = "set-up"

    @property
    def left_over(self) -> bool:
        return self in _LEFT_OVER


_LEFT_OVER = frozenset(
    {Verdict.UNKNOWN, Verdict.DOUBLE, Verdict.OTHER_JOURNAL, Verdict.UNTOLD, Verdict.LOOSE}
)


@dataclass(frozen=True, slots=True)
class Known:
    """The intents of this home's journal that are not over, and which instance each got, if known.

    `missing` says why there is no journal to ask; then nothing can be told.
    """

    journal: str = ""
    intents: Mapping[InstanceId, str | None] = field(default_factory=dict)
    missing: str = ""


@dataclass(frozen=True, slots=True)
class Item:
    """`region` is empty where a thing is of the whole account. `price` is None where unknown."""

    thing: Found
    region: str
    verdict: Verdict
    price: Price | None = None

    @property
    def is_billed(self) -> bool:
        """By the hour, as an instance; volumes and buckets are billed for what they hold."""
        return self.thing.kind == inventory.INSTANCE and self.thing.state in _BILLED

    @property
    def hourly_micros(self) -> int:
        return self.price.hourly_micros if self.price is not None and self.is_billed else 0

    @property
    def is_unpriced(self) -> bool:
        return self.is_billed and self.price is None


@dataclass(frozen=True, slots=True)
class Audit:
    """`unseen` are regions that could not be looked at, and why."""

    account: Account
    target: Target
    regions: Sequence[str]
    known: Known
    items: Sequence[Item]
    unseen: Mapping[str, str]
    now_ms: int

    @property
    def left_over(self) -> Sequence[Item]:
        return [each for each in self.items if each.verdict.left_over]

    @property
    def is_clean(self) -> bool:
        """Nothing is left that nobody knows of, and everywhere was looked."""
        return not (self.left_over or self.unseen)

    def of(self, verdict: Verdict) -> Sequence[Item]:
        return [each for each in self.items if each.verdict is verdict]


@dataclass(frozen=True, slots=True)
class Scope:
    """Where to look beside the target's region, and for which clusters beside its own."""

    all_clusters: bool = False
    all_regions: bool = False


def audit(
    api: Api,
    target: Target,
    scope: Scope,
    recall: Callable[[], Known],
    prices: Prices,
    now_ms: int,
) -> Audit:
    """`recall` reads the journal."""
    account = account_of(api)
    target.check_account(account)
    cluster = None if scope.all_clusters else target.cluster
    regions = _regions(api) if scope.all_regions else (target.region,)
    seen, unseen = _seen(api, regions, cluster)
    known = recall()
    items = [
        Item(each, region, _judged(each, target.cluster, known, there.alive), _price(each, prices))
        for region, there in seen.items()
        for each in there.found
    ]
    everywhere = _of_the_account(api, target, account, cluster)
    items += [Item(each, "", Verdict.SET_UP) for each in everywhere]
    return Audit(account, target, regions, known, items, unseen, now_ms)


# Looking


@dataclass(frozen=True, slots=True)
class _Seen:
    """In one region. `alive` are the instances that are there, ours or not."""

    found: Sequence[Found]
    alive: Collection[str]


def _regions(api: Api) -> tuple[str, ...]:
    """Those that the account may use."""
    with api.doing("listing the regions"):
        found = api.look("ec2", "describe_regions")["Regions"]
    return tuple(sorted(each["RegionName"] for each in found))


def _seen(
    api: Api, regions: Sequence[str], cluster: str | None
) -> tuple[dict[str, _Seen], dict[str, str]]:
    """By region; those closed to us are told, unless there is no other."""

    def look(region: str) -> _Seen | EvaError:
        there = api.at(region)
        try:
            return _look(there, cluster)
        except EvaError as error:
            return error
        finally:
            if there is not api:
                there.close()

    if len(regions) == 1:
        return {regions[0]: _look(api.at(regions[0]), cluster)}, {}
    with ThreadPoolExecutor(_REGIONS_AT_ONCE) as pool:
        answers = dict(zip(regions, pool.map(look, regions), strict=True))
    seen = {region: each for region, each in answers.items() if isinstance(each, _Seen)}
    return seen, {
        region: str(each) for region, each in answers.items() if isinstance(each, EvaError)
    }


def _look(api: Api, cluster: str | None) -> _Seen:
    found = [each for listing in _OF_A_REGION for each in listing(api, cluster)]
    ours = {each.id for each in found if each.kind == inventory.INSTANCE}
    hosts = {each.host for each in found if each.host}
    return _Seen(found, ours | inventory.alive(api, hosts - ours))


def _of_the_account(api: Api, target: Target, account: Account, cluster: str | None) -> list[Found]:
    named = {Names(target.cluster, account.id).bucket, target.bucket(account)}
    return [
        *inventory.profiles(api, cluster),
        *inventory.iam_roles(api, cluster),
        *inventory.bucket_list(api, cluster, named),
    ]


# Judging


def _judged(each: Found, cluster: str, known: Known, alive: Collection[str]) -> Verdict:
    if each.kind == inventory.INSTANCE:
        return _instance_judged(each, cluster, known)
    if each.kind not in _HANGING:
        return Verdict.SET_UP
    if each.host in alive:
        return Verdict.ATTACHED
    return Verdict.ENDING if each.state in _ENDING else Verdict.LOOSE


def _instance_judged(each: Found, cluster: str, known: Known) -> Verdict:
    if each.state in _ENDING:
        return Verdict.ENDING
    if each.cluster != cluster:
        return Verdict.OTHER_CLUSTER
    if known.missing:
        return Verdict.UNTOLD
    if each.journal != known.journal:
        return Verdict.OTHER_JOURNAL
    causes = {None: Verdict.KNOWN, Cause.UNKNOWN: Verdict.UNKNOWN, Cause.DOUBLE: Verdict.DOUBLE}
    return causes[cause_of(each.id, InstanceId(each.intent), known.intents)]


def _price(each: Found, prices: Prices) -> Price | None:
    return prices.of(each.type, Market.SPOT if each.spot else Market.ON_DEMAND)
