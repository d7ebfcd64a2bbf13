"""Archives from strangers: what `pack` would not have written is refused, and writes nothing."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest

from eva.adapters import workdir_archive
from eva.model.errors import InputError


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


def member(name: str, kind: bytes = tarfile.REGTYPE, leads_to: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, leads_to
    return info


def archive(*members: tarfile.TarInfo) -> io.BytesIO:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w", format=tarfile.PAX_FORMAT) as out:
        for info in members:
            out.addfile(info)
    return content


def sparse() -> tarfile.TarInfo:
    """Half a kilobyte that would become eight terabytes of zeros in the cluster's storage."""
    info = member("huge")
    info.pax_headers = {
        "GNU.sparse.major": "0",
        "GNU.sparse.minor": "1",
        "GNU.sparse.size": str(8 << 40),
        "GNU.sparse.map": f"{8 << 40},0",
    }
    return info


LINK = tarfile.SYMTYPE


@pytest.mark.parametrize(
    ("members", "said"),
    [
        ([member("../evil")], "leads out"),
        ([member("/etc/evil")], "leads out"),
        ([member("l", LINK, "/etc")], "leads out"),
        ([member("a/l", LINK, "../../etc")], "leads out"),
        ([member("d", LINK, "."), member("l", LINK, "d/d/../../etc")], "down and up again"),
        ([member("d", LINK, "."), member("d/file")], "through a link"),
        ([member("good")], "twice"),
        ([member("hard", tarfile.LNKTYPE, "/etc/passwd")], "neither a plain file"),
        ([member("pipe", tarfile.FIFOTYPE)], "neither a plain file"),
        ([member("disk", tarfile.BLKTYPE)], "neither a plain file"),
        ([sparse()], "neither a plain file"),
    ],
)
def test_what_pack_never_writes_is_refused(
    members: list[tarfile.TarInfo], said: str, tmp_path: Path
) -> None:
    content = archive(member("good"), *members)
    digest = workdir_archive.digest_of(content)
    with pytest.raises(InputError, match=said):
        workdir_archive.unpack(content, digest, tmp_path / "workdir")
    assert not list(tmp_path.iterdir())


def test_what_is_no_tar_is_said() -> None:
    content = io.BytesIO(b"x" * 2_000)
    with pytest.raises(InputError, match="is not a plain tar"):
        workdir_archive.unpack(content, workdir_archive.digest_of(content), Path("nowhere"))


def test_links_within_come_back(tmp_path: Path) -> None:
    content = archive(member("a/b/l", LINK, "../../c/d"), member("c/d"))
    workdir_archive.unpack(content, workdir_archive.digest_of(content), tmp_path / "workdir")
    assert (tmp_path / "workdir" / "a" / "b" / "l").resolve() == tmp_path / "workdir" / "c" / "d"


def test_what_was_packed_comes_out_again(tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    (source / "code").mkdir(parents=True)
    (source / "code" / "train.py").write_text("print('on')\n")
    (source / "code" / "up").symlink_to("../run.sh")
    (source / "run.sh").write_text("#!/bin/sh\n")
    (source / "run.sh").chmod(0o755)
    content = io.BytesIO()
    workdir_archive.unpack(content, workdir_archive.pack(source, content), target)
    assert (target / "code" / "up").read_text() == "#!/bin/sh\n"
    assert (target / "run.sh").stat().st_mode & 0o111
    assert not (target / "code" / "train.py").stat().st_mode & 0o111
