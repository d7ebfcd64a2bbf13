"""The manifest: written whole or not at all, and believed only as far as the files bear it out."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from eva_iterator import CheckpointError, latest_complete, verify_manifest, write_manifest
from eva_iterator import manifest as module
from eva_iterator.manifest import MANIFEST_NAME, checkpoint_path, read_manifest
from hypothesis import given
from hypothesis import strategies as st

GOOD_SHA = "0" * 64


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "checkpoint"
    (root / "optimizer" / "shards").mkdir(parents=True)
    (root / "model.pt").write_bytes(b"weights" * 1000)
    (root / "empty").write_bytes(b"")
    (root / "optimizer" / "shards" / "0 of 2.bin").write_bytes(b"\x00\xff")
    return root


def test_written_and_verified(folder: Path) -> None:
    written = write_manifest(folder, step=1200)
    assert verify_manifest(folder) == written
    assert written.step == 1200
    assert written.size_bytes == 7002
    assert [entry.path for entry in written.files] == [
        "empty",
        "model.pt",
        "optimizer/shards/0 of 2.bin",
    ]
    assert sorted(path.name for path in folder.iterdir()) == [
        MANIFEST_NAME,
        "empty",
        "model.pt",
        "optimizer",
    ]


def test_everything_wrong_is_listed(folder: Path) -> None:
    write_manifest(folder)
    (folder / "empty").unlink()
    (folder / "model.pt").write_bytes(b"weights")
    (folder / "optimizer" / "shards" / "0 of 2.bin").write_bytes(b"\x00\xfe")
    with pytest.raises(CheckpointError) as caught:
        verify_manifest(folder)
    assert caught.value.problems == (
        "empty is missing",
        "model.pt has 7 bytes instead of 7000",
        "optimizer/shards/0 of 2.bin has other contents than its sha256 says",
    )
    with pytest.raises(CheckpointError) as caught:
        verify_manifest(folder, contents=False)
    assert len(caught.value.problems) == 2


def test_without_manifest_it_is_nothing(folder: Path) -> None:
    with pytest.raises(CheckpointError, match="not complete"):
        verify_manifest(folder)
    assert latest_complete(folder) is None
    assert latest_complete(folder / "missing") is None


@pytest.mark.parametrize("call", ["fsync", "open"])
def test_dying_at_any_write_leaves_no_manifest(
    folder: Path, call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fail the n-th call of the system, for each n until none is left to fail."""
    real = getattr(os, call)
    for survived in range(100):
        calls = 0

        def dying(*arguments: object, limit: int = survived, **named: object) -> object:
            nonlocal calls
            calls += 1
            if calls > limit:
                raise OSError(5, "Input/output error")
            return real(*arguments, **named)

        monkeypatch.setattr(os, call, dying)
        try:
            write_manifest(folder)
        except OSError:
            monkeypatch.setattr(os, call, real)
            if (folder / MANIFEST_NAME).exists():  # after the rename: then it is complete
                verify_manifest(folder)
                (folder / MANIFEST_NAME).unlink()
            else:
                assert latest_complete(folder) is None
        else:
            assert survived > 1, "nothing was made to fail"
            return
    pytest.fail("write_manifest never succeeded")


def test_data_is_on_disk_before_the_manifest(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[str] = []
    real = os.fsync

    def noting(descriptor: int) -> None:
        synced.append(Path(f"/proc/self/fd/{descriptor}").readlink().name)
        real(descriptor)

    monkeypatch.setattr(os, "fsync", noting)
    write_manifest(folder)
    assert set(synced[:3]) == {"empty", "model.pt", "0 of 2.bin"}
    assert synced[-2:] == [MANIFEST_NAME + ".tmp", "checkpoint"]


def test_a_mount_without_fsync_will_do(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unsupported(_descriptor: int) -> None:
        raise OSError(22, "Invalid argument")

    monkeypatch.setattr(os, "fsync", unsupported)
    write_manifest(folder)
    verify_manifest(folder)


def test_links_inside_are_contents_and_links_outside_are_refused(
    folder: Path, tmp_path: Path
) -> None:
    (folder / "last.pt").symlink_to("model.pt")
    assert "last.pt" in [entry.path for entry in write_manifest(folder).files]
    (tmp_path / "secret").write_text("x")
    (folder / "stolen").symlink_to(tmp_path / "secret")
    (folder / "dataset").symlink_to(tmp_path)
    os.mkfifo(folder / "pipe")
    with pytest.raises(CheckpointError) as caught:
        write_manifest(folder)
    assert [problem.split()[0] for problem in caught.value.problems] == [
        "dataset",
        "pipe",
        "stolen",
    ]


def test_verifying_follows_no_link_outside(folder: Path, tmp_path: Path) -> None:
    write_manifest(folder)
    outside = tmp_path / "outside"
    (folder / "model.pt").rename(outside)
    (folder / "model.pt").symlink_to(outside)
    with pytest.raises(CheckpointError, match=r"model\.pt is missing"):
        verify_manifest(folder)


def document(**changes: object) -> dict[str, object]:
    return {"format": "eva-checkpoint", "version": 1, "step": 3, "files": [], **changes}


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "not JSON"),
        (b"\xff\xfe", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"[]", "not a manifest"),
        (document(format="other"), "not a manifest"),
        (document(version=2), "version 2 is unknown"),
        (document(step=-1), "step is -1"),
        (document(step=True), "step is True"),
        (document(step="7"), "step is '7'"),
        (document(written_at_ms=1.5), "written_at_ms"),
        (document(files={}), "files must be a list"),
        (document(files=[1]), r"files\[0\]"),
        (document(files=[{"path": "../x", "bytes": 1, "sha256": GOOD_SHA}]), r"files\[0\]"),
        (document(files=[{"path": "/x", "bytes": 1, "sha256": GOOD_SHA}]), r"files\[0\]"),
        (document(files=[{"path": "x", "bytes": -1, "sha256": GOOD_SHA}]), r"files\[0\]"),
        (document(files=[{"path": "x", "bytes": 1, "sha256": "Z" * 64}]), r"files\[0\]"),
    ],
)
def test_bad_manifests_are_refused(folder: Path, content: object, says: str) -> None:
    data = content if isinstance(content, bytes) else json.dumps(content).encode()
    (folder / MANIFEST_NAME).write_bytes(data)
    with pytest.raises(CheckpointError, match=says):
        read_manifest(folder)


def test_a_minimal_manifest_is_enough(folder: Path) -> None:
    (folder / MANIFEST_NAME).write_text(
        json.dumps({"format": "eva-checkpoint", "version": 1, "files": []})
    )
    assert verify_manifest(folder).step is None


def test_a_manifest_that_is_too_long_is_not_read(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_manifest(folder)
    monkeypatch.setattr(module, "MAX_MANIFEST_BYTES", 100)
    with pytest.raises(CheckpointError, match="longer than 100 bytes"):
        read_manifest(folder)


def test_latest_is_the_furthest_that_is_complete(tmp_path: Path) -> None:
    for name, step in (("a", 20), ("b", 100), ("c", 3), ("d", 500)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "state").write_text(name)
        write_manifest(tmp_path / name, step)
    (tmp_path / "d" / "state").write_text("spoilt")
    assert latest_complete(tmp_path) == tmp_path / "b"
    (tmp_path / "d" / "state").write_text("d")
    assert latest_complete(tmp_path) == tmp_path / "d"
    write_manifest(tmp_path, step=1000)
    assert latest_complete(tmp_path) == tmp_path


def test_names_stay_inside(tmp_path: Path) -> None:
    assert checkpoint_path(tmp_path, ".") == tmp_path.resolve()
    assert checkpoint_path(tmp_path, "a/b") == tmp_path.resolve() / "a" / "b"
    (tmp_path / "out").symlink_to("/")
    for name in ("..", "/etc", "a/../..", "out", "out/etc", ""):
        with pytest.raises(CheckpointError, match="leads out"):
            checkpoint_path(tmp_path, name)


@given(contents=st.lists(st.binary(max_size=100), max_size=6), flip=st.data())
def test_any_changed_byte_is_found(
    tmp_path_factory: pytest.TempPathFactory, contents: list[bytes], flip: st.DataObject
) -> None:
    root = tmp_path_factory.mktemp("checkpoint")
    for index, content in enumerate(contents):
        (root / str(index)).write_bytes(content)
    write_manifest(root)
    verify_manifest(root)
    candidates = [index for index, content in enumerate(contents) if content]
    if not candidates:
        return
    index = flip.draw(st.sampled_from(candidates))
    changed = bytearray(contents[index])
    changed[flip.draw(st.integers(0, len(changed) - 1))] ^= 1
    (root / str(index)).write_bytes(changed)
    with pytest.raises(CheckpointError, match="other contents"):
        verify_manifest(root)


def test_a_pipe_by_the_name_of_the_manifest_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "MANIFEST.json")
    with pytest.raises(CheckpointError, match="not JSON"):
        read_manifest(tmp_path)
    writer = os.open(tmp_path / "MANIFEST.json", os.O_RDWR)
    try:
        with pytest.raises(CheckpointError):
            read_manifest(tmp_path)
    finally:
        os.close(writer)
