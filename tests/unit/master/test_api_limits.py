"""What comes in over HTTP is bounded before it is believed, and half characters end at the door."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

import httpx
import pytest

from eva.master.api import make_api
from eva.master.api_limits import MOST_BODY_BYTES
from eva.master.service import Master
from tests.unit.master.conftest import JOB, Bench, running


def client_of(master: Master, token: str = "") -> httpx.AsyncClient:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    transport = httpx.ASGITransport(make_api(master, lambda _: None))
    return httpx.AsyncClient(
        transport=transport, base_url="http://test/api/v1", headers=headers, timeout=60
    )


def test_a_body_is_not_read_for_ever_for_somebody_without_a_token(bench: Bench) -> None:
    sent = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal sent
        while sent < 100 * MOST_BODY_BYTES:
            sent += 1 << 20
            yield b" " * (1 << 20)

    async def story() -> None:
        async with running(bench) as master, client_of(master) as client:
            answer = await client.post("/jobs", content=endless())
            assert answer.status_code == 413
            assert answer.json()["kind"] == "TooLargeError"
            assert "larger than 4 MiB" in answer.json()["message"]
            assert sent <= MOST_BODY_BYTES + (2 << 20)

    asyncio.run(story())


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"job_file": "name: x\nrun: echo \ud800\n"}, "half of a character"),
        ({"job_file": JOB + "secrets: [A]\n", "secrets": {"A": "\udfff"}}, "half of a character"),
        ({"job_file": JOB, "secrets": {"\udfff": "x"}}, "half of a character"),
        ({"job_file": JOB + "secrets: [A]\n", "secrets": {"A": "a\0b"}}, "NUL character"),
        ({"job_file": JOB + "secrets: [A]\n", "secrets": {"A": "x" * 200_000}}, "200,000 bytes"),
        ({"job_file": JOB + f"envs: {{A: {'x' * 200_000}}}\n"}, "200,000 bytes"),
        (
            {
                "job_file": JOB + "secrets: [A, B, C, D]\n",
                "secrets": dict.fromkeys("ABCD", "x" * 90_000),
            },
            "together",
        ),
    ],
)
def test_what_no_program_can_be_given_is_refused(
    bench: Bench, body: dict[str, object], said: str
) -> None:
    """A secret with half a character once ended the master, and each one started after it."""

    async def story() -> None:
        async with running(bench) as master:
            token = master.tokens.make("me")
            async with client_of(master, token) as client:
                answer = await client.post(
                    "/jobs",
                    content=json.dumps(body),
                    headers={"Content-Type": "application/json"},
                )
                assert answer.status_code == 400
                assert said in answer.json()["message"]
                assert not master.state.jobs

    asyncio.run(story())
