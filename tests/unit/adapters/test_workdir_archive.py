"""Archives that nobody packed: what is unpacked stays inside, also where Python has no filters."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest

from eva.adapters.workdir_archive import digest_of, pack, unpack
from eva.model.errors import InputError

FILE, LINK, HARD_LINK, DEVICE, FOLDER = (
    tarfile.REGTYPE,
    tarfile.SYMTYPE,
    tarfile.LNKTYPE,
    tarfile.CHRTYPE,
    tarfile.DIRTYPE,
)
Member = tuple[str, bytes, str]  # name, type, where it leads


@pytest.fixture(params=["with filters", "without filters"], autouse=True)
def python(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python 3.11 had none before 3.11.4, and its `extractall` takes no `filter` either."""
    if request.param == "with filters":
        return
    whole = tarfile.TarFile.extractall

    def extract_all(archive: tarfile.TarFile, path: Path) -> None:
        archive.extraction_filter = tarfile.fully_trusted_filter
        whole(archive, path)

    monkeypatch.setattr(tarfile.TarFile, "extractall", extract_all)


def archive_of(*members: Member) -> io.BytesIO:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as archive:
        for name, kind, target in members:
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname = kind, target
            archive.addfile(entry)
    return content


@pytest.mark.parametrize(
    ("members", "said"),
    [
        ([("/etc/passwd", FILE, "")], "a name that leads out"),
        ([("../up", FILE, "")], "a name that leads out"),
        ([("a/../../up", FILE, "")], "a name that leads out"),
        ([("l", LINK, "/etc")], "a link that leads out"),
        ([("a/l", LINK, "../../up")], "a link that leads out"),
        ([("l", LINK, "a"), ("l/b", FILE, "")], "a name that leads out"),
        ([("l", LINK, "a"), ("l", FILE, "")], "twice"),
        ([("h", HARD_LINK, "/etc/passwd")], "neither file nor folder"),
        ([("d", DEVICE, "")], "neither file nor folder"),
    ],
)
def test_what_leads_out_is_refused_before_anything_is_written(
    tmp_path: Path, members: list[Member], said: str
) -> None:
    content = archive_of(("fine", FILE, ""), *members)
    with pytest.raises(InputError, match=said):
        unpack(content, digest_of(content), tmp_path / "inside" / "target")
    assert [path for path in tmp_path.rglob("*") if not path.is_dir()] == []


def test_what_is_no_tar_is_refused(tmp_path: Path) -> None:
    content = io.BytesIO(b"not a tar at all" * 100)
    with pytest.raises(InputError, match="is no tar"):
        unpack(content, digest_of(content), tmp_path / "target")


def test_what_was_packed_comes_out_again(tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    (source / "code").mkdir(parents=True)
    (source / "code" / "train.py").write_text("print('on')\n")
    (source / "code" / "up").symlink_to("../run.sh")
    (source / "run.sh").write_text("#!/bin/sh\n")
    (source / "run.sh").chmod(0o755)
    content = io.BytesIO()
    unpack(content, pack(source, content), target)
    assert (target / "code" / "up").read_text() == "#!/bin/sh\n"
    assert (target / "run.sh").stat().st_mode & 0o111
    assert not (target / "code" / "train.py").stat().st_mode & 0o111
