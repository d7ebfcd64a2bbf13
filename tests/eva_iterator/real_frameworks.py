"""The callbacks against the real Trainers. Not collected by itself, because they are heavy:

pip install torch==2.13.0 transformers accelerate lightning torchdata
pytest tests/eva_iterator/real_frameworks.py
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.eva_iterator.test_jobs import moved_and_undisturbed


@pytest.mark.timeout(300)
@pytest.mark.parametrize("job", ["huggingface_job.py", "lightning_job.py"])
def test_a_training_that_is_moved_ends_at_the_same_weights(
    job: str, tmp_path: Path, socket_path: Path
) -> None:
    logs = moved_and_undisturbed(tmp_path, socket_path, (job, 90), 90)
    assert len(logs) == 90
