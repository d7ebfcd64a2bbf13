"""Migration of a program that knows nothing of Eva."""

from __future__ import annotations

import time

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
