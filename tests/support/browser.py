"""A real browser without a screen: what it makes of a page, as a tree and as a picture."""

from __future__ import annotations

import shutil
import subprocess
from collections import Counter
from pathlib import Path

import numpy as np
from PIL import Image

from tests.support.requirements import require

_PROGRAM = shutil.which("chromium")


def page_tree(url: str, profile: Path) -> str:
    """The document after the browser has read it and run what there is to run."""
    return _run(profile, "--dump-dom", url).decode()


def colours_of(url: str, profile: Path, height: int = 4_000) -> Counter[tuple[int, ...]]:
    """How many points of a picture of the page have each colour."""
    picture = profile / "page.png"
    _run(profile, f"--screenshot={picture}", f"--window-size=1200,{height}", url)
    with Image.open(picture) as image:
        points = np.asarray(image.convert("RGB")).reshape(-1, 3)
    colours, counts = np.unique(points, axis=0, return_counts=True)
    return Counter(dict(zip(map(tuple, colours.tolist()), counts.tolist(), strict=True)))


def _run(profile: Path, *words: str) -> bytes:
    require(_PROGRAM is not None, "Chromium (Debian: chromium)")
    assert _PROGRAM is not None
    fixed = [
        _PROGRAM, "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run",
        "--disable-dev-shm-usage", "--disable-background-networking", f"--user-data-dir={profile}",
        "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
    ]  # fmt: skip
    return subprocess.run([*fixed, *words], capture_output=True, check=True, timeout=60).stdout
