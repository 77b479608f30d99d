"""A machine with control groups of version 1 or 2 that is only folders and files, and the real one where it lets us."""

from __future__ import annotations

import errno
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from loadframe.cages import groups
from loadframe.host.leases import Lease

V1_FILES = {
    "cpu": {
        "cpu.cfs_quota_us": "-1",
        "cpu.cfs_period_us": "100000",
        "cpu.stat": "nr_periods 40\nnr_throttled 25\nthrottled_time 1500000000\n",
    },
    "cpuacct": {"cpuacct.usage": "2500000000"},
    "memory": {
        "memory.limit_in_bytes": "9223372036854771712",
        "memory.memsw.limit_in_bytes": "9223372036854771712",
        "memory.usage_in_bytes": "5242880",
        "memory.max_usage_in_bytes": "6291456",
        "memory.failcnt": "10",
        "memory.stat": "cache 1\nworkingset_refault_file 5\ntotal_workingset_refault_file 11\n",
        "memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n",
    },
    "blkio": {
        "blkio.throttle.read_bps_device": "",
        "blkio.throttle.write_bps_device": "",
        "blkio.throttle.read_iops_device": "",
        "blkio.throttle.write_iops_device": "",
        "blkio.throttle.io_service_bytes": "254:0 Read 4096\n254:0 Write 8192\n254:0 Total 12288\n8:0 Read 100\n",
        "blkio.throttle.io_serviced": "254:0 Read 1\n254:0 Write 2\n254:0 Total 3\nTotal 3\n",
    },
    "pids": {"pids.max": "max", "pids.current": "4", "pids.events": "max 6\n"},
    "cpuset": {"cpuset.cpus": "", "cpuset.mems": ""},
}
V2_FILES = {
    "cgroup.controllers": "cpuset cpu io memory pids",
    "cgroup.subtree_control": "",
    "cpu.max": "max 100000",
    "cpu.stat": "usage_usec 2500000\nuser_usec 1\nnr_periods 40\nnr_throttled 25\nthrottled_usec 1500000\n",
    "cpuset.cpus": "",
    "memory.max": "max",
    "memory.swap.max": "max",
    "memory.current": "5242880",
    "memory.peak": "6291456",
    "memory.events": "low 0\nhigh 0\nmax 10\noom 2\noom_kill 2\n",
    "memory.stat": "anon 1\nworkingset_refault_file 11\n",
    "io.max": "",
    "io.stat": "254:0 rbytes=4096 wbytes=8192 rios=1 wios=2 dbytes=0 dios=0\n8:0 rbytes=100 wbytes=0 rios=0 wios=0\n",
    "pids.max": "max",
    "pids.current": "4",
    "pids.events": "max 6\n",
}


class Tree:
    """A machine below `root`. busy: groups of version 2 that have processes of their own, so that they can hand no
    controllers down."""

    def __init__(self, root: Path, version: int) -> None:
        self.root = root
        self.version = version
        self.busy: set[Path] = set()
        (root / "proc/self").mkdir(parents=True)
        self.top = root / "sys/fs/cgroup"
        mounts, own = [], []
        if version == 1:
            for number, controller in enumerate(V1_FILES, start=30):
                mounts.append(
                    f"{number} 24 0:{number} / /sys/fs/cgroup/{controller} rw,relatime - cgroup cgroup rw,{controller}"
                )
                own.append(f"{number}:{controller}:/user/me")
                self.make(self.top / controller / "user/me")
        else:
            mounts.append("30 24 0:30 / /sys/fs/cgroup rw,relatime - cgroup2 cgroup2 rw,nsdelegate")
            own.append("0::/user/me")
            self.make(self.top)
            self.make(self.top / "user")
            self.make(self.top / "user/me")
        (root / "proc/self/mountinfo").write_text("\n".join(mounts) + "\n")
        (root / "proc/self/cgroup").write_text("\n".join(own) + "\n")

    def make(self, folder: Path) -> None:
        """What the kernel does on mkdir: the group's files are there."""
        folder.mkdir(parents=True)
        files = V2_FILES if self.version == 2 else V1_FILES[folder.relative_to(self.top).parts[0]]
        for name, content in files.items():
            (folder / name).write_text(content)
        if self.version == 2 and folder != self.top:
            above = (folder.parent / "cgroup.subtree_control").read_text()
            (folder / "cgroup.controllers").write_text(above)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[int], Tree]:
    """A machine of a version, with the kernel's rule that in version 2 a group with processes hands nothing down."""

    def make(version: int) -> Tree:
        tree = Tree(tmp_path / "machine", version)
        write = Path.write_text

        def refusing(path: Path, text: str, **options: Any) -> int:
            if path.name == "cgroup.subtree_control" and path.parent in tree.busy:
                raise OSError(errno.EBUSY, "Device or resource busy")
            if path.name == "cgroup.subtree_control" and path.exists():  # the kernel adds what is written
                text = f"{path.read_text()} {text.removeprefix('+')}"
                for child in path.parent.glob("*/cgroup.controllers"):
                    write(child, text)
            return write(path, text, **options)

        monkeypatch.setattr(Path, "write_text", refusing)
        return tree

    return make


@pytest.fixture(params=[1, 2], ids=["v1", "v2"])
def tree(request: pytest.FixtureRequest, machine: Callable[[int], Tree]) -> Tree:
    """Both versions in turn."""
    return machine(request.param)


@pytest.fixture
def lease(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lease]:
    monkeypatch.setenv("LOADFRAME_STATE", str(tmp_path / "state"))
    monkeypatch.setattr("loadframe.cages.groups.remove", _really_remove)
    with Lease.acquire("a study") as lease:
        yield lease


def _really_remove(folder: Path, patience_s: float = 2.0) -> bool:
    """On a real hierarchy the kernel removes a group's files with it."""
    for file in folder.iterdir() if folder.exists() and not str(folder).startswith("/sys/") else ():
        file.unlink()
    return REMOVE(folder, patience_s)


REMOVE: Callable[[Path, float], bool] = groups.remove


@pytest.fixture
def ctrl_c() -> Iterator[None]:
    """It raises KeyboardInterrupt, also where the tests run in the background of a shell, which has them ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
