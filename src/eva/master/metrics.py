"""Numbers for Prometheus, read off the state when they are asked for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from eva.model.units import MICROS_PER_USD

if TYPE_CHECKING:
    from eva.master.service import Master

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class _StateCollector(Collector):
    def __init__(self, master: Master) -> None:
        self._master = master

    def collect(self) -> Iterator[Metric]:
        master, state = self._master, self._master.state
        now_ms = master.clock()
        yield _by_label("eva_jobs", "Live jobs.", (j.state.value for j in state.jobs.values()))
        yield _by_label("eva_tasks", "Live tasks.", (t.state.value for t in state.tasks.values()))
        yield _by_label(
            "eva_instances", "Instances.", (i.state.value for i in state.instances.values())
        )
        yield _by_label(
            "eva_jobs_ended", "Jobs that are over.", (r.state.value for r in state.records.values())
        )
        hourly = sum(i.type.billed_micros for i in state.instances.values())
        yield GaugeMetricFamily(
            "eva_usd_per_hour", "Price of all live instances.", hourly / MICROS_PER_USD
        )
        bill = state.ledger.bill_micros(now_ms) / MICROS_PER_USD
        yield CounterMetricFamily("eva_billed_usd", "The bill so far.", bill)
        yield CounterMetricFamily("eva_migrations", "Tasks moved.", state.migrations)
        yield CounterMetricFamily("eva_rounds", "Scheduling rounds.", state.round)
        yield CounterMetricFamily(
            "eva_full_reconfigurations", "Full ones adopted.", state.full_reconfigurations
        )
        yield CounterMetricFamily("eva_journal_records", "Last record.", master.memory.seq)
        connected = len(master.around.workers.connected())
        yield GaugeMetricFamily("eva_workers_connected", "Workers connected.", connected)


def _by_label(name: str, text: str, states: Iterator[str]) -> GaugeMetricFamily:
    family = GaugeMetricFamily(name, text, labels=["state"])
    for state, count in sorted(Counter(states).items()):
        family.add_metric([state], count)
    return family


def text(master: Master) -> str:
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_StateCollector(master))
    return generate_latest(registry).decode()
