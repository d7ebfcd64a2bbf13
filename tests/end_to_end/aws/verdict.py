"""What happened at EC2, held against what the master wrote down first and what it billed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field

from eva.adapters.stores import open_journal
from eva.control.commands import LaunchInstance, TerminateInstance
from eva.control.controller import Controller
from eva.control.events import InstanceLost, InstanceTerminated, LaunchRefused
from eva.control.journal import Codec
from eva.master.clouds import catalog_of, master_settings
from eva.master.memory import EVENT
from eva.master.options import ServeOptions
from eva.model.ids import InstanceId
from tests.end_to_end.live.cluster import LiveCluster
from tests.support.cloud_proxy import Launch


@dataclass
class Intents:
    """Since when each instance was wanted, and not any more, by the journal."""

    wanted: dict[InstanceId, int] = field(default_factory=dict)
    let_go: dict[InstanceId, int] = field(default_factory=dict)
    lost: list[InstanceId] = field(default_factory=list)

    @classmethod
    def read(cls, options: ServeOptions) -> Intents:
        """Folded from the first record, as the next master would without a snapshot."""
        catalog = catalog_of(options)
        controller = Controller(catalog, master_settings(options).controller)
        codec, intents = Codec(catalog), cls()
        with closing(open_journal(options.store, options.home)) as journal:
            for record in journal.read(1):
                if record.kind != EVENT:
                    continue
                now_ms, event = codec.decode(json.loads(record.payload))
                for thing in (event, *controller.handle(event, now_ms)):
                    intents.note(now_ms, thing)
        return intents

    def note(self, now_ms: int, thing: object) -> None:
        match thing:
            case LaunchInstance(instance):
                self.wanted.setdefault(instance, now_ms)
            case TerminateInstance(instance) | InstanceTerminated(instance):
                self.let_go.setdefault(instance, now_ms)
            case LaunchRefused(instance):
                self.let_go.setdefault(instance, now_ms)
            case InstanceLost(instance):
                self.lost.append(instance)


def check_against_journal(cluster: LiveCluster, launches: Sequence[Launch]) -> None:
    """First the record, then the call; and nothing that was still wanted has ended."""
    intents = Intents.read(cluster.options)
    assert intents.lost == [], "an instance ended that was still wanted"
    for each in launches:
        name = InstanceId(each.tag("eva:instance") or "")
        assert intents.wanted[name] <= each.launched_ms, f"{name} was launched unrecorded"
        assert each.ending_ms is not None
        assert intents.let_go[name] <= each.ending_ms, f"{name} was ended while it was wanted"


def check_bill(cluster: LiveCluster, launches: Sequence[Launch]) -> None:
    """Whatever was rented is on it from its first moment to its last, and nothing else is."""
    with cluster.client() as client:
        billed = {each.id: each for each in client.instances(ended=True)}
    for each in launches:
        account = billed.pop(each.tag("eva:instance") or "")
        assert account.acquired_ms == each.launched_ms, account
        assert account.ended_ms is not None
        assert each.ending_ms is not None
        assert account.ended_ms >= each.ending_ms, account
    assert [each for each in billed.values() if each.cost_micros] == []
    assert cluster.unpaid() == 0
