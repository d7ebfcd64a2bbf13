"""Migration of a program that knows nothing of Eva."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path

from tests.end_to_end.live.cluster import LiveCluster, counting_job

# Saves to one place of its own accord, and counts every step in another.
SAVING = """\
name: saving
run: |
  begin=$(cat "$EVA_JOB_DIR/done" 2>/dev/null || echo 0)
  for step in $(seq $((begin + 1)) 200); do
    sleep 0.05
    echo $step > "$EVA_JOB_DIR/done.new" && mv "$EVA_JOB_DIR/done.new" "$EVA_JOB_DIR/done"
    echo "step $step"
  done
resources: {gpus: 1, cpus: 4, memory: 20GB}
progress: {regex: 'step (\\d+)', window: 5s}
checkpoint: {path: done, grace: 5s}
"""
PRICES = """\
instance_type,family,gpus,cpus,memory_gb,usd_per_hour,spot_usd_per_hour
four,g,4,32,244,12,
one,g,1,8,61,3,0.9
"""
KEEPING = "name: keeping\nrun: sleep 600\nresources: {gpus: 3, cpus: 8, memory: 60GB}\n"


def test_a_program_that_saves_by_itself_is_moved(cluster: LiveCluster) -> None:
    keeping, saving = cluster.submit(KEEPING), cluster.submit(SAVING)
    cluster.until(lambda client: client.job(saving).state == "running")
    with cluster.client() as client:
        (instance,) = client.instances()
        assert (instance.type, len(instance.tasks)) == ("p3.8xlarge", 2)
        client.cancel(keeping)
    cluster.until_over([saving])
    with cluster.client() as client:
        job = client.job(saving)
        assert (job.state, job.migrations, job.failures) == ("finished", 1, 0)
        lines = [line.text for line in client.logs(saving)]
        types = [each.type for each in client.instances(ended=True)]
    steps = {int(line.removeprefix("step ")) for line in lines if line.startswith("step ")}
    assert sorted(steps) == list(range(1, 201))
    assert types == ["p3.8xlarge", "p3.2xlarge"]


def test_what_is_on_spot_is_taken_back_and_rented_anew_with_more_risk(tmp_path: Path) -> None:
    cluster = LiveCluster(tmp_path)
    (tmp_path / "prices.csv").write_text(PRICES)
    cluster.options = replace(cluster.options, catalog=str(tmp_path / "prices.csv"))
    cluster.start()
    try:
        willing = counting_job("willing", 200).replace("gpus: 1", "use_spot: true, gpus: 1")
        job = cluster.submit(willing)
        cluster.until(lambda _: cluster.steps(job))
        with cluster.client() as client:
            (on_spot,) = client.instances()
        assert (on_spot.type, on_spot.hourly_micros) == ("one:spot", 900_000)
        (machine,) = cluster.home.glob(f"instances/*/{on_spot.id}")
        facts = json.loads((machine / "machine.json").read_text())
        assert (facts["type"], facts["spot"]) == ("one", True)
        deadline_ms = time.time_ns() // 1_000_000 + 120_000
        (machine / "worker/spot-notice").write_text(str(deadline_ms))
        cluster.until(
            lambda client: (
                [e.type for e in client.instances() if e.id != on_spot.id] == ["one:spot"]
            )
        )
        with cluster.client() as client:
            (new,) = [each for each in client.instances() if each.id != on_spot.id]
        assert new.risk_micros == 2 * on_spot.risk_micros, "one was believed, and one was seen"
        cluster.until_over([job])
        with cluster.client() as client:
            assert client.job(job).state == "finished"
        assert cluster.steps(job) == list(range(1, 201))
        assert cluster.unpaid() == 0
    finally:
        cluster.down()
        cluster.until_empty()


def test_a_spot_notice_moves_the_tasks_and_loses_no_step(cluster: LiveCluster) -> None:
    job = cluster.submit(counting_job("steady", 200))
    cluster.until(lambda _: cluster.steps(job))
    with cluster.client() as client:
        (doomed,) = client.instances()
    (state,) = cluster.home.glob(f"instances/*/{doomed.id}/worker")
    deadline_ms = time.time_ns() // 1_000_000 + 120_000
    (state / "spot-notice").write_text(str(deadline_ms))
    cluster.until_over([job])
    with cluster.client() as client:
        moved = client.job(job)
        rented = client.instances(ended=True)
        notices = [event.text for event in client.events() if "is taken back" in event.text]
    assert (moved.state, moved.migrations, moved.failures) == ("finished", 1, 0)
    assert [each.type for each in rented] == [doomed.type] * 2
    assert notices == [f"{doomed.id} is taken back at {deadline_ms} ms"]
    assert cluster.steps(job) == list(range(1, 201))
