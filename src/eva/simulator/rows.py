"""From what the world remembers to the rows of a result."""

from __future__ import annotations

from eva.control.state import JobRecord
from eva.model.units import cost_micros
from eva.simulator.result import InstanceRow, JobRow
from eva.simulator.world import WorldInstance, WorldJob


def job_row(job: WorldJob, record: JobRecord) -> JobRow:
    return JobRow(
        job=job.id,
        workload=job.trace.spec.tasks[0].workload,
        tasks=len(job.trace.phases),
        state=record.state.value,
        arrival_ms=job.trace.arrival_ms,
        ended_ms=record.ended_ms,
        ran_ms=job.ran_ms,
        standalone_ms=job.trace.duration_ms,
        migrations=record.migrations,
        failures=record.failures,
    )


def instance_row(instance: WorldInstance) -> InstanceRow:
    """The row of an instance that was acquired and has ended."""
    acquired_ms = instance.acquired_ms or 0
    ended_ms = instance.ended_ms or acquired_ms
    return InstanceRow(
        instance=instance.id,
        type=instance.type.name,
        hourly_micros=instance.type.billed_micros,
        launched_ms=instance.launched_ms,
        acquired_ms=acquired_ms,
        ready_ms=instance.ready_ms,
        ended_ms=ended_ms,
        cost_micros=cost_micros(instance.type.billed_micros, ended_ms - acquired_ms),
        tasks_hosted=instance.hosted,
        task_ms=instance.task_ms,
        running_ms=instance.running_ms,
        speed_ms=instance.speed_ms,
        used_ms=(instance.used_ms[0], instance.used_ms[1], instance.used_ms[2]),
        capacity=instance.type.capacity,
        spent_ms=dict(instance.spent_ms),
        spot=instance.type.spot,
        interrupted=instance.interrupted,
    )
