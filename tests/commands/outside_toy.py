"""The made-up distribution of tests/data/outside, installed for a while, and the studies that use it."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from loadframe.host import identity

SOURCES = Path(__file__).parents[1] / "data" / "outside"
LOADFRAME = str(Path(sys.executable).with_name("loadframe"))
STUDY = """
[study]
name = "toy"
question = "How many requests does the toy serve?"
[target]
kind = "toy"
[target.settings]
delay_ms = 20
[workload]
kind = "toy-load"
[load]
axis = "concurrency"
levels = [1, 4]
[measure]
warmup = "150ms"
window = "300ms"
blocks = { min = 2, max = 2 }
budget = "30s"
profile = "off"
"""
OUR_OWN = """
[study]
name = "queue"
question = "?"
[target]
kind = "sqlite"
[workload]
kind = "job-queue"
[load]
axis = "concurrency"
levels = [1]
"""


def install(folder: Path, name: str, entry_points: str) -> None:
    info = folder / f"{name}-1.5.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.5\n")
    (info / "entry_points.txt").write_text(entry_points)


@contextmanager
def toy_installed() -> Iterator[Path]:
    """Where the toy is installed: a folder that other users may read, as the load driver is one."""
    folder = Path(tempfile.mkdtemp(prefix="lf-", dir="/var/tmp"))
    folder.chmod(0o755)
    shutil.copytree(SOURCES / "loadframe_toy", folder / "loadframe_toy")
    install(
        folder,
        "loadframe_toy",
        "[loadframe.kinds]\ntoy = loadframe_toy.kind:KIND\n[loadframe.workloads]\ntoy-load = loadframe_toy.load:KIND\n",
    )
    try:
        yield folder
    finally:
        for process in identity.naming(str(folder)):
            identity.end_all([process], 0.5)
        shutil.rmtree(folder)
