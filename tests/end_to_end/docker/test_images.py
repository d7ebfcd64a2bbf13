"""Images on a real engine: built once, found again, passed on, and refused with a reason."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import docker
import pytest

from eva.adapters.docker.images import content_digest
from eva.adapters.docker.runtime import DockerRuntime
from eva.model.errors import InputError
from eva.model.ids import InstanceId
from eva.ports.runtime import (
    Argv,
    BuildFailedError,
    Home,
    ImageBuild,
    ImageNotFoundError,
    ImageReference,
    LaunchRefusedError,
    Preparation,
    RuntimeUnreachableError,
    TaskLaunch,
    UnsupportedError,
)
from tests.contract.runtime.bench import Bench

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(60)]


@pytest.fixture
def context(tmp_path: Path, busybox_image: str) -> Path:
    folder = tmp_path / "context"
    folder.mkdir()
    (folder / "Dockerfile").write_text(
        f"FROM {busybox_image}\nARG GREETING=hello\nCOPY name /name\n"
        'RUN echo "$GREETING $(cat /name)" >/greeting\nCMD ["cat", "/greeting"]\n'
    )
    (folder / "name").write_text("world")
    (folder / ".dockerignore").write_text("# what is not copied\nnotes\n")
    return folder


async def test_a_dockerfile_is_built_and_runs_its_own_command(bench: Bench, context: Path) -> None:
    runtime = bench.open()
    image = ImageBuild(context, build_args=(("GREETING", "good morning"),))
    prepared = await runtime.prepare(Preparation(image))
    assert prepared.built
    await runtime.start(TaskLaunch(bench.ref(), None, prepared))
    assert (await runtime.wait(bench.ref())).succeeded
    printed = b"".join([chunk.data async for chunk in runtime.logs(bench.ref())])
    assert printed == b"good morning world\n"


async def test_two_tasks_build_once_and_a_migration_does_not_build(
    bench: Bench, context: Path
) -> None:
    preparation = Preparation(ImageBuild(context))
    one, two = bench.open(), bench.open(InstanceId("i-2"))  # two workers on one engine
    prepared = await asyncio.gather(*(worker.prepare(preparation) for worker in (one, two, one)))
    assert sorted(each.built for each in prepared) == [False, False, True]
    assert len({each.image for each in prepared}) == 1
    assert not (await bench.open().prepare(preparation)).built


async def test_what_counts_is_content(bench: Bench, context: Path) -> None:
    before = content_digest(ImageBuild(context))
    (context / "notes").write_text("ignored by .dockerignore")
    (context / "name").touch()
    assert content_digest(ImageBuild(context)) == before
    digests = {before, content_digest(ImageBuild(context, build_args=(("GREETING", "x"),)))}
    (context / "name").chmod(0o755)
    digests.add(content_digest(ImageBuild(context)))
    (context / "name").write_text("moon")
    digests.add(content_digest(ImageBuild(context)))
    (context / "link").symlink_to("name")
    digests.add(content_digest(ImageBuild(context)))
    assert len(digests) == 5


async def test_an_image_travels_through_the_store_of_the_cluster(
    bench: Bench, context: Path, engine: docker.APIClient, tmp_path: Path
) -> None:
    preparation = Preparation(ImageBuild(context))
    store = tmp_path / "store"
    here, there = (
        DockerRuntime(Home(bench.home.cluster, InstanceId(name)), tmp_path / name, store)
        for name in ("i-here", "i-there")
    )
    first = await here.prepare(preparation)
    (archive,) = store.iterdir()
    assert archive.suffix == ".tar"
    engine.remove_image(first.image, force=True)  # another machine: it never had the image
    second = await there.prepare(preparation)
    assert (second.built, second.image) == (False, first.image)
    await here.close()
    await there.close()


async def test_a_failing_build_shows_its_last_lines(bench: Bench, context: Path) -> None:
    with (context / "Dockerfile").open("a") as dockerfile:
        dockerfile.write("RUN echo almost there && exit 5\n")
    with pytest.raises(BuildFailedError) as raised:
        await bench.open().prepare(Preparation(ImageBuild(context)))
    assert "almost there" in raised.value.last_lines
    assert "almost there" in str(raised.value)
    assert "returned a non-zero code: 5" in str(raised.value)
    assert raised.value.exit_code == InputError.exit_code


@pytest.mark.parametrize("dockerfile", ["missing", "../Dockerfile", "/etc/passwd"])
async def test_a_dockerfile_outside_its_context_is_refused(
    bench: Bench, context: Path, dockerfile: str
) -> None:
    with pytest.raises(LaunchRefusedError, match="inside the build context"):
        await bench.open().prepare(Preparation(ImageBuild(context, dockerfile)))


async def test_a_reference_becomes_the_image_it_names_now(
    bench: Bench, engine: docker.APIClient
) -> None:
    prepared = await bench.open().prepare(bench.preparation)
    assert prepared.image == engine.inspect_image(bench.image)["Id"]


async def test_an_image_is_asked_for(bench: Bench) -> None:
    runtime = bench.open()
    with pytest.raises(UnsupportedError, match="name one"):
        await runtime.prepare(Preparation())
    with pytest.raises(ImageNotFoundError):
        await runtime.start(TaskLaunch(bench.ref(), Argv(("true",))))


class EmptyRegistry(BaseHTTPRequestHandler):
    """A registry without images; Docker speaks plain HTTP to registries on loopback."""

    def do_GET(self) -> None:
        empty = self.path == "/v2/"
        body = b"{}" if empty else b'{"errors":[{"code":"MANIFEST_UNKNOWN"}]}'
        self.send_response(200 if empty else 404)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def do_HEAD(self) -> None:
        self.do_GET()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def registry() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), EmptyRegistry) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


async def test_an_image_that_does_not_exist_is_the_users_to_correct(
    bench: Bench, registry: str
) -> None:
    runtime = bench.open()
    for reference in (f"{registry}/no/such:1", "sha256:" + "0" * 64, "Not A Reference"):
        with pytest.raises(ImageNotFoundError) as raised:
            await runtime.prepare(Preparation(ImageReference(reference)))
        assert reference in str(raised.value)


async def test_a_registry_that_is_away_is_worth_another_try(bench: Bench) -> None:
    with pytest.raises(RuntimeUnreachableError, match="registry"):
        await bench.open().prepare(Preparation(ImageReference("127.0.0.1:1/some/image:1")))
