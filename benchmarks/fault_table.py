"""The faults of faults.py: what each does, to whom, when, and which commands are hit by it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import fault_means as means
from fault_scene import Scene, send
from fault_verbs import BUDGET_S, Verb, study
from loadframe.cages.groups import hierarchies

NOBODY = 65534
OVER_S = 60.0
"""So much later than its budget a command may end."""
MEASURING = (
    "measure",
    "measure-postgres",
    "measure-nginx",
    "measure-service",
    "measure-sqlite",
    "measure-mariadb-attached",
    "measure-url",
)
LOOPS = ("investigate", "capacity", "compare", "ladder", "tune", "case", "demo")
WITH_SERVER = (
    "measure",
    "measure-postgres",
    "measure-nginx",
    "measure-service",
    "measure-mariadb-attached",
    "measure-postgres-attached",
)


def nothing(scene: Scene) -> None:
    """Not this time."""


@dataclass(frozen=True)
class Fault:
    """needs: what a verb must use to be touched by it. when: "before" the command starts, a step is "finished", or the
    next one is "running". verbs: those of the matrix; --verb takes any that it touches. right: the exit codes; of those
    that only measure, fatal leaves nothing but to say so, while others may go on without the step. A target that falls
    is an answer, of those too, once a load below was measured; it has to name the fall. blinds: the counter that every
    finished step must name as blind."""

    name: str
    needs: str
    when: str
    verbs: Sequence[str]
    prepare: Callable[[Scene], None] = nothing
    strike: Callable[[Scene], None] = nothing
    relieve: Callable[[Scene], None] = nothing
    impossible: Callable[[], str] = lambda: ""
    right: tuple[int, ...] = (0, 1)
    fatal: bool = False
    blinds: str = ""

    def leaves_all_tidy(self, verb: Verb) -> bool:
        """Whether a command that it hits, and that ends by itself, has to have put everything away."""
        return self.needs in ("driver", "recorder", "network") or (self.needs == "server" and "private" in verb.uses)

    def codes(self, verb: str) -> frozenset[int]:
        """The right exit codes of a command that it hits."""
        only_measures = self.fatal and verb.startswith("measure")
        return frozenset({1} if only_measures and not self.fells_the_target else self.right)

    @property
    def fells_the_target(self) -> bool:
        return self.fatal and self.needs in ("server", "caged")


def root() -> str:
    return "" if os.geteuid() == 0 else "only root can do this"


def program(*names: str) -> Callable[[], str]:
    return lambda: root() or next((f"no {name} here" for name in names if shutil.which(name) is None), "")


def namespace(*options: str) -> Callable[[], str]:
    def possible() -> str:
        if shutil.which("unshare") is None:
            return "no unshare here"
        done = subprocess.run(["unshare", *options, "true"], capture_output=True, text=True, check=False)
        return done.stderr.strip()

    return possible


def throttled() -> str:
    return root() or ("" if means.throttle_file() is not None else "no throttling of a disk's writes (cgroup v1) here")


def has_cgroup(controller: str) -> Callable[[], str]:
    def possible() -> str:
        found = any(controller in each.controllers for each in hierarchies())
        return root() or ("" if found else f"no control group of {controller} here")

    return possible


def kill(who: Callable[[Scene], list[int]], number: signal.Signals) -> Callable[[Scene], None]:
    def strike(scene: Scene) -> None:
        if not send(who(scene), number):
            raise LookupError("there is no such process")

    return strike


def revive(scene: Scene) -> None:
    """Somebody's server goes on, whatever has become of it."""
    if scene.server is not None:
        send(scene.servers(), signal.SIGCONT)
        if not scene.server.asks.ping():
            scene.bury()
            subprocess.run(scene.owned.restart, check=True)
            scene.server.await_answer()
            scene.spare()


def lie(scene: Scene) -> None:
    """Counters go backwards; a page is another one."""
    if scene.server is None:
        scene.site.honest = False
    elif scene.server.kind == "mariadb":
        scene.server.ask("FLUSH STATUS")
    else:
        scene.server.ask("SELECT pg_stat_reset(), pg_stat_reset_shared('bgwriter'), pg_stat_reset_shared('wal')")


def wrapped(*words: str) -> Callable[[Scene], None]:
    def prepare(scene: Scene) -> None:
        scene.prefix += words

    return prepare


def in_shell(script: str) -> Callable[[Scene], None]:
    """In a mount namespace in which this was done before."""
    return wrapped("unshare", "--mount", "sh", "-c", f'{script} && exec "$@"', "sh")


def standing_still(path: str) -> Callable[[Scene], None]:
    """A file of the kernel as it is now, for ever: counters that do not count."""

    def prepare(scene: Scene) -> None:
        still = scene.folder / Path(path).name
        still.write_bytes(Path(path).read_bytes())
        still.chmod(0o644)
        in_shell(f"mount --bind {still} {path}")(scene)

    return prepare


WITHOUT_RIGHTS = (
    ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"),
    ("unshare", "--user", "--map-user=1000", "--map-group=1000"),
)
"""Another user; where that one may not read this checkout, ourselves without any right of root's."""


def as_nobody(scene: Scene) -> None:
    words = next(words for words in WITHOUT_RIGHTS if runs_python(words))
    if words is WITHOUT_RIGHTS[0]:
        for path in (scene.folder, *scene.folder.rglob("*")):
            os.chown(path, NOBODY, NOBODY)
    scene.prefix += words


def runs_python(words: Sequence[str]) -> bool:
    command = [*words, "sh", "-c", 'exec "$@"', "sh", sys.executable, "-c", "import loadframe"]
    return (
        shutil.which(words[0]) is not None and subprocess.run(command, capture_output=True, check=False).returncode == 0
    )


def without_rights() -> str:
    return root() or ("" if any(map(runs_python, WITHOUT_RIGHTS)) else "another user may not read this checkout")


def own_clock(scene: Scene) -> None:
    scene.clock = means.injected_clock(scene)


def short_of_memory(scene: Scene) -> None:
    """The command gets no more address space than it has."""
    size = next(
        int(line.split()[1])
        for line in Path(f"/proc/{scene.process.pid}/status").read_text().splitlines()
        if line.startswith("VmSize:")
    )
    means.run("prlimit", f"--pid={scene.process.pid}", f"--as={size * 1024 + (2 << 20)}")


def beside(*prefix: str) -> Callable[[Scene], None]:
    """Another command of the same user, in a namespace of its own, looks for leftovers meanwhile."""

    def strike(scene: Scene) -> None:
        other = scene.command(["doctor", "--json"], prefix, {}, "other")
        code = other.wait(60)
        if code != 0:
            raise RuntimeError(
                f"the other command ended with {code}: {(scene.folder / 'other.err').read_text()[-300:]}"
            )

    return strike


def another(scene: Scene) -> None:
    """Another command measures at the same time, the same server where it is somebody's."""
    arguments = ["measure", "study.toml", "--runs", "others", "--json"]
    if not (scene.folder / "study.toml").exists():
        arguments = ["measure", study(scene, "sqlite"), "--runs", "others", "--json"]
    scene.other = scene.command(arguments, (), {}, "other")


def another_ended(scene: Scene) -> None:
    code = scene.other.wait(BUDGET_S + OVER_S)
    said = (scene.folder / "other.err").read_text()
    if code not in (0, 1) or "Traceback" in said:
        raise RuntimeError(f"the other command ended with {code}: {said[-300:]}")


def disk(kind: str, place: str) -> Fault:
    """What can become of the disk of a place."""
    mib = {"scratch": 400, "runs": 24, "state": 4}[place]
    touched = {
        "scratch": ("measure", "measure-postgres", "measure-nginx", "measure-sqlite", "tune"),
        "runs": (
            "measure",
            "measure-sqlite",
            "measure-mariadb-attached",
            "tune",
            "investigate",
            "compare",
            "ladder",
            "capacity",
        ),
        "state": ("measure", "measure-mariadb-attached", "tune", "limits", "predict", "changes"),
    }[place]
    if kind == "read-only":
        touched = {
            "scratch": ("measure", "measure-sqlite"),
            "runs": ("measure-sqlite", "report"),
            "state": ("measure", "report", "predict", "limits", "doctor", "changes", "study-check"),
        }[place]
        return Fault(
            f"{place}-read-only",
            place,
            "before",
            touched,
            strike=lambda scene: means.protect(scene, place),
            relieve=lambda scene: means.unprotect(scene, place),
            impossible=program("mount"),
        )
    if kind == "full":
        reading = {"runs": ("report",), "state": (), "scratch": ()}[place]
        return Fault(
            f"{place}-full",
            place,
            "finished",
            (*touched, *reading),
            prepare=lambda scene: means.small_disk(scene, place, mib),
            strike=lambda scene: means.fill(scene, place),
            relieve=lambda scene: means.empty(scene, place),
            impossible=program("mount"),
        )
    if kind == "lost":
        return Fault(
            f"{place}-lost",
            place,
            "running",
            touched[:3],
            prepare=lambda scene: _on_own_disk(scene, place),
            strike=lambda scene: means.lose(scene, place),
            relieve=lambda scene: means.find_again(scene, place),
            impossible=program("mkfs.ext4"),
        )
    return Fault(
        f"{place}-slow",
        place,
        "before",
        touched[:2],
        right=(0,),
        prepare=lambda scene: means.slow_disk(scene, place, _mib(place), 60),
        impossible=throttled,
    )


def _mib(place: str) -> int:
    return 1024 if place == "scratch" else 64


def _on_own_disk(scene: Scene, place: str) -> None:
    means.own_disk(scene, place, _mib(place))


SERVERS, DRIVERS, RECORDERS = Scene.servers, Scene.drivers, Scene.recorders
FAULTS = (
    Fault(
        "server-killed",
        "server",
        "running",
        (*WITH_SERVER, *LOOPS[:-1]),
        strike=kill(SERVERS, signal.SIGKILL),
        relieve=revive,
        fatal=True,
    ),
    Fault(
        "server-stopped",
        "server",
        "running",
        (*WITH_SERVER, "investigate", "tune", "compare"),
        strike=kill(SERVERS, signal.SIGSTOP),
        relieve=revive,
        fatal=True,
    ),
    Fault(
        "server-oom",
        "caged",
        "running",
        ("measure-caged",),
        strike=means.exhaust,
        impossible=has_cgroup("memory"),
        fatal=True,
    ),
    Fault(
        "server-slow",
        "server",
        "finished",
        ("measure", "measure-postgres", "measure-nginx", "measure-service", "measure-mariadb-attached"),
        strike=lambda scene: means.stutter(scene, scene.servers, 0.3, 0.05),
        relieve=revive,
    ),
    Fault(
        "server-lying",
        "counters",
        "running",
        ("measure-mariadb-attached", "measure-postgres-attached"),
        strike=lie,
        right=(0,),
    ),
    Fault("answers-lying", "network", "running", ("measure-url",), strike=lie),
    Fault(
        "network-cut",
        "network",
        "running",
        ("measure-url",),
        strike=lambda scene: scene.network.cut(),
        fatal=True,
    ),
    Fault(
        "network-broken",
        "network",
        "running",
        ("measure-url",),
        strike=lambda scene: scene.network.broken(),
        fatal=True,
    ),
    Fault(
        "network-slow", "network", "running", ("measure-url",), strike=lambda scene: scene.network.slow(), right=(0,)
    ),
    Fault(
        "driver-killed",
        "driver",
        "running",
        (*MEASURING, *LOOPS),
        strike=kill(DRIVERS, signal.SIGKILL),
        fatal=True,
    ),
    Fault(
        "driver-stopped",
        "driver",
        "running",
        (*MEASURING, "investigate", "tune", "demo"),
        strike=kill(DRIVERS, signal.SIGSTOP),
        fatal=True,
    ),
    Fault(
        "recorder-killed",
        "recorder",
        "running",
        ("measure", "measure-sqlite", "measure-mariadb-attached", *LOOPS),
        strike=kill(RECORDERS, signal.SIGKILL),
        fatal=True,
    ),
    Fault(
        "recorder-stopped",
        "recorder",
        "running",
        ("measure", "measure-mariadb-attached", "tune", "demo"),
        strike=kill(RECORDERS, signal.SIGSTOP),
        fatal=True,
    ),
    *(disk(kind, place) for kind in ("full", "read-only", "lost", "slow") for place in ("scratch", "runs", "state")),
    Fault(
        "clock-jumps-back",
        "command",
        "running",
        ("measure", "measure-postgres", "measure-pgbench", "tune", "doctor"),
        prepare=own_clock,
        strike=lambda scene: scene.clock(-7200.0, 0.0),
        impossible=program("cc"),
        right=(0,),
    ),
    Fault(
        "clock-jumps-ahead",
        "command",
        "running",
        ("measure-sqlite", "capacity"),
        prepare=own_clock,
        strike=lambda scene: scene.clock(1e6, 0.0),
        impossible=program("cc"),
        right=(0,),
    ),
    Fault(
        "clock-drifts",
        "command",
        "running",
        ("measure-sqlite", "investigate"),
        prepare=own_clock,
        strike=lambda scene: scene.clock(0.0, 0.05),
        impossible=program("cc"),
        right=(0,),
    ),
    Fault(
        "time-namespace",
        "command",
        "before",
        ("measure", "measure-postgres", "limits", "doctor"),
        prepare=wrapped("unshare", "--time", "--fork", "--monotonic", "9000000", "--boottime", "9000000"),
        impossible=namespace("--time", "--fork"),
        right=(0,),
    ),
    Fault(
        "descriptors-short",
        "command",
        "before",
        ("measure", "measure-postgres", "measure-nginx", "measure-sqlite", "limits", "predict", "report", "doctor"),
        prepare=wrapped("prlimit", "--nofile=40:40"),
        impossible=program("prlimit"),
    ),
    Fault(
        "descriptors-very-short",
        "command",
        "before",
        ("measure", "measure-sqlite", "limits", "report"),
        prepare=wrapped("prlimit", "--nofile=16:16"),
        impossible=program("prlimit"),
    ),
    Fault(
        "processes-short",
        "command",
        "before",
        ("measure", "measure-postgres", "measure-sqlite", "limits", "report"),
        prepare=lambda scene: means.few_processes(scene, 12),
        impossible=has_cgroup("pids"),
    ),
    Fault(
        "memory-short",
        "runs",
        "finished",
        ("measure", "measure-sqlite", "tune"),
        strike=short_of_memory,
        impossible=program("prlimit"),
    ),
    Fault(
        "pid-namespace",
        "command",
        "before",
        ("measure", "measure-postgres", "measure-nginx", "measure-service", "limits"),
        prepare=wrapped("unshare", "--pid", "--fork", "--kill-child", "--mount-proc"),
        impossible=namespace("--pid", "--fork"),
        right=(0,),
    ),
    Fault(
        "user-namespace",
        "command",
        "before",
        ("measure", "measure-sqlite", "limits", "doctor"),
        prepare=wrapped("unshare", "--user", "--map-root-user"),
        impossible=namespace("--user", "--map-root-user"),
    ),
    Fault(
        "network-namespace",
        "command",
        "before",
        ("measure", "measure-nginx", "limits", "doctor"),
        prepare=wrapped("unshare", "--net"),
        impossible=namespace("--net"),
    ),
    Fault(
        "no-cgroups",
        "command",
        "before",
        ("measure", "measure-sqlite", "limits", "doctor"),
        prepare=in_shell("umount --lazy --recursive /sys/fs/cgroup"),
        impossible=namespace("--mount"),
        right=(0,),
    ),
    Fault(
        "no-cgroups-for-a-cage",
        "caged",
        "before",
        ("measure-caged",),
        prepare=in_shell("umount --lazy --recursive /sys/fs/cgroup"),
        impossible=namespace("--mount"),
        right=(1,),
    ),
    Fault(
        "disk-counters-still",
        "driver",
        "before",
        ("measure-sqlite",),
        prepare=standing_still("/proc/diskstats"),
        impossible=namespace("--mount"),
        right=(0,),
        blinds="system.disk.write_bytes",
    ),
    Fault(
        "no-perf",
        "command",
        "before",
        ("demo", "doctor"),
        prepare=in_shell("mount --bind /dev/null $(command -v perf)"),
        impossible=program("unshare", "perf"),
        right=(0,),
    ),
    Fault(
        "not-root",
        "command",
        "before",
        ("measure", "measure-postgres", "measure-nginx", "measure-sqlite", "limits", "doctor"),
        prepare=as_nobody,
        impossible=without_rights,
        right=(0,),
    ),
    Fault(
        "another-loadframe",
        "driver",
        "running",
        ("measure", "measure-mariadb-attached", "measure-postgres-attached", "tune"),
        strike=another,
        relieve=another_ended,
    ),
    Fault(
        "other-pid-namespace",
        "driver",
        "running",
        ("measure", "measure-mariadb-attached"),
        strike=beside("unshare", "--pid", "--fork", "--kill-child", "--mount-proc"),
        impossible=namespace("--pid", "--fork"),
        right=(0,),
    ),
    Fault(
        "other-time-namespace",
        "driver",
        "running",
        ("measure", "measure-mariadb-attached"),
        strike=beside("unshare", "--time", "--fork", "--monotonic", "9000000", "--boottime", "9000000"),
        impossible=namespace("--time", "--fork"),
        right=(0,),
    ),
    Fault(
        "command-killed",
        "driver",
        "running",
        ("measure", "measure-postgres", "measure-nginx", "measure-sqlite", "measure-mariadb-attached", "tune"),
        strike=lambda scene: scene.process.send_signal(signal.SIGKILL),
        right=(-9,),
    ),
    Fault(
        "interrupted",
        "driver",
        "running",
        ("measure", "measure-mariadb-attached", "tune"),
        strike=lambda scene: scene.process.send_signal(signal.SIGINT),
        right=(130,),
    ),
)
BY_NAME = {fault.name: fault for fault in FAULTS}
