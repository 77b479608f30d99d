"""Have the kernel count what a group reads and writes.

Version 1 counts a disk's I/O in blk-throttle, which kernels since 6.10 make for a disk with the first throttle rule
that is written for it, in any group (blk-throttle.c, tg_set_conf). Until then every group says 0 (seen: Linux 6.18).
Version 2 counts without (io.stat, blk_cgroup_bio_start).
"""

from __future__ import annotations

import contextlib
from pathlib import Path

from loadframe.cages.groups import put, text

RULES, COUNTS = "blkio.throttle.read_bps_device", "blkio.throttle.io_service_bytes"
NO_RULE = 0
"""Written as a rate it takes a rule away; where there was none it leaves none, and the kernel counts from then on."""


def start_counting(group: Path, root: Path = Path("/")) -> None:
    """Write "no rule" for every disk that is not counted yet, to a group of ours of version 1. No rule is ever in
    force, so that there is nothing to put back, also after a kill; the kernel counts until the disk goes.

    Where that is not permitted, or the kernel has no such disk, nothing happens: a counter that stays 0 is found out by
    what contradicts it (metrics.agreements)."""
    if not (group / RULES).exists():
        return
    counted = {line.split(" ")[0] for line in text(_top(group) / COUNTS).splitlines()}
    for disk in _disks(root):
        if disk not in counted:
            with contextlib.suppress(OSError):
                put(group / RULES, f"{disk} {NO_RULE}")


def _top(group: Path) -> Path:
    """The group highest up that is shown: the hierarchy's own lists every disk that is counted."""
    above = [folder for folder in group.parents if (folder / COUNTS).exists()]
    return above[-1] if above else group


def _disks(root: Path) -> list[str]:
    """Every disk as major:minor; one of no size has nothing to count."""
    folders = sorted((root / "sys/block").glob("*"))
    found = [text(folder / "dev").strip() for folder in folders if text(folder / "size").strip() not in ("", "0")]
    return [number for number in found if number]
