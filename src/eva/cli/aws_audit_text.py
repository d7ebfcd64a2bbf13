"""What `eva aws audit` prints: a section for each verdict, what to do about it, and the totals."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from eva.adapters.aws.account import inventory
from eva.adapters.aws.account.audit import Audit, Item, Verdict
from eva.cli.money import places_for
from eva.cli.tables import table
from eva.model.units import MS_PER_SECOND, format_duration, format_usd

if TYPE_CHECKING:
    from rich.console import RenderableType

_COLUMNS = ("id", "type", "zone", "state", "age", "$/hour", "for")
_NEXT_LINE = " \\\n      "
_HANGING = (inventory.VOLUME, inventory.INTERFACE, inventory.SPOT)
_REMOVED_BY = {
    inventory.INSTANCE: "terminate-instances --instance-ids",
    inventory.VOLUME: "delete-volume --volume-id",
    inventory.INTERFACE: "delete-network-interface --network-interface-id",
    inventory.SPOT: "cancel-spot-instance-requests --spot-instance-request-ids",
}


def shown(found: Audit) -> Iterator[RenderableType]:
    yield _headline(found)
    for verdict in _SECTIONS:
        yield from _section(found, verdict)
    yield from _set_up(found)
    for region, reason in found.unseen.items():
        yield f"\n{region} could not be looked at: {reason}"
    if found.items:
        yield ""
        yield from _totals(found)
    yield f"\n{_verdict(found)}"
    for line, lead in zip(_next(found), ("Next:", "  or:"), strict=False):
        yield f"{lead} {line}"


def as_json(found: Audit) -> dict[str, object]:
    return {
        "account": found.account.id,
        "cluster": found.target.cluster,
        "regions": list(found.regions),
        "unseen": dict(found.unseen),
        "journal": found.known.journal or None,
        "journal_missing": found.known.missing or None,
        "clean": found.is_clean,
        "left_over": len(found.left_over),
        "hourly_micros": _hourly(found.items),
        "left_over_hourly_micros": _hourly(found.left_over),
        "unpriced": len(_unpriced(found)),
        "found": [_item_json(found, each) for each in found.items],
    }


def _item_json(found: Audit, each: Item) -> dict[str, object]:
    thing = each.thing
    return {
        "kind": thing.kind,
        "id": thing.id,
        "name": thing.name or None,
        "cluster": thing.cluster,
        "region": each.region or None,
        "zone": thing.zone or None,
        "type": thing.type or None,
        "spot": thing.spot,
        "state": thing.state or None,
        "created_ms": thing.created_ms,
        "age_ms": None if thing.created_ms is None else found.now_ms - thing.created_ms,
        "instance": thing.host or None,
        "intent": thing.intent or None,
        "journal": thing.journal or None,
        "verdict": each.verdict.value,
        "left_over": each.verdict.left_over,
        "hourly_micros": each.hourly_micros if not each.is_unpriced else None,
        "price_as_of": each.price.date if each.is_billed and each.price else None,
        "remove": _removal(each) or None,
    }


# Sections


def _headline(found: Audit) -> str:
    target, known = found.target, found.known
    where = target.region if len(found.regions) == 1 else f"{len(found.regions)} regions"
    journal = known.missing or f"journal {known.journal} in {target.home}"
    return f"Account {found.account.id}, {where}, cluster {target.cluster}\n{_capital(journal)}"


def _section(found: Audit, verdict: Verdict) -> Iterator[RenderableType]:
    items = found.of(verdict)
    if not items:
        return
    mark = "LEFT OVER: " if verdict.left_over else ""
    yield f"\n{mark}{_SECTIONS[verdict][0]}"
    places = places_for(each.hourly_micros for each in items)
    yield table(_COLUMNS, (_row(found, each, places) for each in items))
    said = _said(found, verdict, items)
    if said:
        yield said
    if verdict.left_over:
        yield "One by one:\n    " + _removal(items[0], _NEXT_LINE)


def _row(found: Audit, each: Item, places: int) -> list[str]:
    thing = each.thing
    price = format_usd(each.hourly_micros, places) if each.is_billed else ""
    age = "" if thing.created_ms is None else format_duration(found.now_ms - thing.created_ms)
    theirs = thing.cluster != found.target.cluster
    return [
        thing.id,
        " ".join(filter(None, (_short(thing.kind, thing.type), "spot" * thing.spot))),
        thing.zone or each.region,
        thing.state,
        age,
        "?" if each.is_unpriced else price,
        thing.cluster if theirs else thing.intent,
    ]


def _short(kind: str, type_: str) -> str:
    """The table says what it is by its type; what has none is `interface`, or `request`."""
    return type_ or kind.rpartition(" ")[2]


def _set_up(found: Audit) -> Iterator[RenderableType]:
    hanging = found.of(Verdict.ATTACHED)
    if hanging:
        counts = ((kind, sum(each.thing.kind == kind for each in hanging)) for kind in _HANGING)
        told = ", ".join(
            f"{number} {kind}{'s' * (number > 1)}" for kind, number in counts if number
        )
        yield f"\nOn instances that are there, and ending with them: {told}"
    items = found.of(Verdict.SET_UP)
    if items:
        yield "\nSet up, and not billed by itself; a bucket is billed for what is in it"
        yield table(("what", "name", "id", "for"), (_set_up_row(found, each) for each in items))


def _set_up_row(found: Audit, each: Item) -> list[str]:
    thing = each.thing
    theirs = "" if thing.cluster == found.target.cluster else thing.cluster
    return [thing.kind, thing.name or thing.id, thing.id if thing.name else "", theirs]


# What a verdict means, and what follows

_MASTER_ENDS = (
    "A master of this home ends what its journal does not know, a minute after its launch."
)
_ANOTHERS = (
    "Asked for by {journals}: a home that was lost, or another home under this cluster's name. "
    "A master of this home ends them."
)
_NO_JOURNAL = (
    "{missing}. Where the master runs, its home can tell; a journal elsewhere is named with "
    "--store."
)
_OTHERS = "Only their own homes can tell whether they are needed."
_SECTIONS: Mapping[Verdict, tuple[str, str]] = {
    Verdict.KNOWN: ("Known to the journal", ""),
    Verdict.ENDING: ("On their way out", ""),
    Verdict.OTHER_CLUSTER: ("Of other clusters", _OTHERS),
    Verdict.UNKNOWN: ("the journal does not know them", _MASTER_ENDS),
    Verdict.DOUBLE: ("their purpose got another instance", _MASTER_ENDS),
    Verdict.OTHER_JOURNAL: ("another journal's, of this cluster", _ANOTHERS),
    Verdict.UNTOLD: ("no journal here knows them", _NO_JOURNAL),
    Verdict.LOOSE: ("no instance has them", "Volumes are billed by their size."),
}


def _said(found: Audit, verdict: Verdict, items: Sequence[Item]) -> str:
    names = sorted({f"journal {each.thing.journal}" for each in items if each.thing.journal})
    since = _since(items) if verdict.left_over else ""
    text = _SECTIONS[verdict][1].format(
        journals=", ".join(names) or "no journal", missing=_capital(found.known.missing)
    )
    return f"{since} {text}".strip()


def _since(items: Sequence[Item]) -> str:
    oldest = min((each.thing.created_ms for each in items if each.thing.created_ms), default=None)
    return "" if oldest is None else f"There since {_moment(oldest)}."


def _moment(at_ms: int) -> str:
    return f"{dt.datetime.fromtimestamp(at_ms / MS_PER_SECOND, dt.UTC):%Y-%m-%d %H:%M} UTC"


def _removal(each: Item, break_: str = " ") -> str:
    """The command of AWS's own tool that ends this one; Eva ends them all together."""
    words = _REMOVED_BY.get(each.thing.kind)
    if words is None or not each.verdict.left_over:
        return ""
    operation, _, key = words.partition(" ")
    return f"aws ec2 {operation} --region {each.region}{break_}{key} {each.thing.id}"


# Totals


def _totals(found: Audit) -> Iterator[str]:
    parts = [
        (_hourly(found.of(Verdict.KNOWN)), "known"),
        (_hourly(found.left_over), "left over"),
        (_hourly(found.of(Verdict.OTHER_CLUSTER)), "of other clusters"),
    ]
    places = places_for(micros for micros, _ in parts)
    told = ", ".join(f"{format_usd(m, places)} {name}" for m, name in parts if m)
    total = format_usd(_hourly(found.items), places)
    yield f"{total}/hour for instances" + (f": {told}" if told else "")
    yield "Volumes, addresses, traffic and what is in the bucket are not in it."
    unpriced = _unpriced(found)
    if unpriced:
        types = ", ".join(sorted({each.thing.type for each in unpriced}))
        missing = "1 instance is" if len(unpriced) == 1 else f"{len(unpriced)} instances are"
        yield f"No price is known here of {types}: {missing} not in it either."
    priced = [each for each in found.items if each.is_billed and each.price is not None]
    dates = sorted({each.price.date for each in priced if each.price is not None})
    if dates:
        yield f"Prices of {' to '.join(dict.fromkeys((dates[0], dates[-1])))}." + (
            f" They are those of {found.target.region}; elsewhere they may differ."
            if any(each.region != found.target.region for each in priced)
            else ""
        )


def _hourly(items: Sequence[Item]) -> int:
    return sum(each.hourly_micros for each in items)


def _unpriced(found: Audit) -> Sequence[Item]:
    return [each for each in found.items if each.is_unpriced]


# The end


def _verdict(found: Audit) -> str:
    if found.left_over:
        return f"{len(found.left_over)} left over that nobody here knows of."
    if found.unseen:
        return "Nothing is left over where it was looked."
    if not found.items:
        return "Nothing is left."
    cluster = found.target.cluster
    return "Nothing is left over." if _ours(found) else f"Nothing is left of cluster {cluster}."


def _next(found: Audit) -> Iterator[str]:
    """Of the target's cluster: what is another's is for its own home to remove."""
    ours = _ours(found)
    here = found.target.home_region
    if any(each.verdict.left_over and each.region != here for each in found.items):
        yield f"aws ec2 ... as above, for what is not in {here}"
        return
    instances = [each for each in ours if each.thing.kind == inventory.INSTANCE]
    if any(each.verdict is Verdict.KNOWN for each in ours):
        if any(each.verdict.left_over for each in instances):
            yield "eva up --cloud aws    # its master ends instances that it does not know"
        yield "eva down    # ends jobs and instances; then: eva aws destroy"
    elif any(each.verdict is not Verdict.ENDING for each in instances):
        yield "eva aws destroy --end-instances    # removes everything of the cluster"
    elif ours:
        yield "eva aws destroy    # removes everything of the cluster"


def _ours(found: Audit) -> Sequence[Item]:
    return [each for each in found.items if each.thing.cluster == found.target.cluster]


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
