"""Every verb, run as root, beside a second user who has prepared its place:
python benchmarks/second_user.py [--verb NAME]... [--planted COLUMN]...

The verbs are those of second_user_verbs.py; COLUMNS says what is planted. A cell passes where the command ended in
time, with a documented exit code and in words; where root's own files are as before, their content stands in no other
file, what the command says included, and nothing that was planted was run. Prints a line for each cell that fails, the
table and the totals; ends with 1 where any fails."""

import argparse
import contextlib
import os
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from fault_scene import DOCUMENTED, Scene, descendants
from loadframe.host.privilege import free_user
from second_user_verbs import BY_NAME, INTERRUPTED, PYTHON, VERBS, recorded

LIMIT_S = 120.0
KILLED_AFTER_S = 4.0
SECRET = b"root-only-0123456789abcdef"
MODULES = ("json", "argparse", "struct", "sqlite3", "sitecustomize", "usercustomize", "loadframe", "multiprocessing",
           "dask", "distributed", "polars", "numpy")  # fmt: skip
PROGRAMS = ("sysbench", "wrk", "perf", "ip", "nginx", "cc", "ps")
WRITTEN = ("out", "made.toml", "watched", "dask-scratch-space", "dask-worker-space")
"""Names that verbs write in the folder where they are called."""
READ = ("study.toml", "fleet.toml", "load.csv", "month.csv", "config.ini", "points.csv", "a.csv")
OF_A_RUN = ("run.json", "steps.jsonl", "study.json")
SWAPPER = """
import ctypes, os, sys
uid, secret, *names = sys.argv[1:]
os.setgroups([]); os.setgid(int(uid)); os.setuid(int(uid))
for name in names:
    os.symlink(secret, name + ".link")
rename = ctypes.CDLL(None).renameat2
print("ready", flush=True)
while True:
    for name in names:
        rename(-100, name.encode(), -100, (name + ".link").encode(), 2)  # AT_FDCWD, RENAME_EXCHANGE
"""


@dataclass(frozen=True)
class Cell:
    verb: str
    planted: str
    wrong: tuple[str, ...]
    skipped: str = ""


@dataclass
class Beside:
    """The place of a cell. user: the second one. vault: root's own folder."""

    scene: Scene
    user: int
    uses: frozenset[str]

    @property
    def vault(self) -> Path:
        return self.scene.folder / "vault"

    @property
    def ran(self) -> Path:
        return self.scene.folder / "ran"

    def give(self, path: Path) -> None:
        os.chown(path, self.user, self.user, follow_symlinks=False)

    def inputs(self) -> list[Path]:
        """Files that the verb reads."""
        found = [self.scene.folder / name for name in READ]
        found += [self.scene.place("runs") / "recorded" / name for name in OF_A_RUN]
        found += [*sorted(self.scene.folder.glob("watched/*.jsonl*")), self.scene.folder / "watched/state.json"]
        return [path for path in found if path.is_file()]


def modules(beside: Beside) -> str:
    for name in MODULES:
        path = beside.scene.folder / f"{name}.py"
        path.write_text(f"open({str(beside.ran)!r}, 'a').write(__name__)\n")
        beside.give(path)
    for name in PROGRAMS:
        path = beside.scene.folder / name
        path.write_text(f"#!/bin/sh\necho $0 >> {beside.ran}\n")
        path.chmod(0o755)
        beside.give(path)
    return ""


def folders(beside: Beside) -> str:
    for top in (beside.scene.folder, beside.scene.place("scratch")):
        for name in WRITTEN:
            with contextlib.suppress(FileExistsError):
                (top / name).mkdir()
                (top / name).chmod(0o777)
                beside.give(top / name)
    return ""


def links(beside: Beside) -> str:
    for top in (beside.scene.folder, beside.scene.place("scratch")):
        for name in WRITTEN:
            with contextlib.suppress(FileExistsError):
                (top / name).symlink_to(beside.vault / "secret" if name in ("out", "made.toml") else beside.vault)
                beside.give(top / name)
    run = beside.scene.place("runs") / "recorded"
    if run.is_dir():
        (run / "report.html").unlink(missing_ok=True)
        (run / "report.html").symlink_to(beside.vault / "secret")
    return ""


def fifos(beside: Beside) -> str:
    inputs = beside.inputs()
    for path in inputs:
        path.unlink()
        os.mkfifo(path)
        beside.give(path)
    return "" if inputs else "it reads no file"


def swapped(beside: Beside) -> str:
    inputs = beside.inputs()
    if not inputs:
        return "it reads no file"
    for path in inputs:
        beside.give(path)
        if path.parent != beside.scene.folder:
            beside.give(path.parent)
    command = [PYTHON, "-I", "-c", SWAPPER, str(beside.user), str(beside.vault / "secret"), *map(str, inputs)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    beside.scene.stack.callback(lambda: (process.kill(), process.communicate()))
    assert process.stdout is not None
    process.stdout.readline()
    return ""


def killed(beside: Beside) -> str:
    """`hit` kills it, while the command works."""
    uses = beside.uses
    return "" if uses & {"service", "server"} else "it has no service"


def barred(beside: Beside) -> str:
    """A program of the study's that the user who should run it may not read."""
    programs = [path for name in ("driver.py", "serving.py") if (path := beside.scene.folder / name).exists()]
    for path in programs[:1]:
        path.chmod(0o600)
    return "" if programs else "it runs no program of the study's"


COLUMNS: dict[str, Callable[[Beside], str]] = {
    "planted module": modules,
    "planted folder": folders,
    "planted link": links,
    "FIFO": fifos,
    "swapped link": swapped,
    "killed service": killed,
    "user that cannot run": barred,
}
"""Each prepares, and answers why it makes no sense for this verb, or ""."""


def cell(verb: str, planted: str, run: Path) -> Cell:
    user = free_user()
    assert user is not None, "this machine gives no second user"
    with tempfile.TemporaryDirectory(prefix="lf-beside-", dir="/var/tmp") as name:
        folder = Path(name)
        folder.chmod(0o755)
        with Scene(folder, LIMIT_S) as scene:
            scene.recorded = run
            beside = Beside(scene, user, BY_NAME[verb].uses)
            beside.vault.mkdir(mode=0o700)
            (beside.vault / "secret").write_bytes(SECRET)
            (beside.vault / "secret").chmod(0o600)
            arguments = BY_NAME[verb].arguments(scene)
            folder.chmod(0o1777)  # the command is called where every user may write
            scene.place("scratch").chmod(0o1777)
            before = _state(beside.vault)
            if why := COLUMNS[planted](beside):
                return Cell(verb, planted, (), why)
            wrong = [*_hit(beside, verb, planted, arguments), *_judged(beside, before)]
            return Cell(verb, planted, tuple(wrong))


def _hit(beside: Beside, verb: str, planted: str, arguments: list[str]) -> Iterator[str]:
    scene = beside.scene
    scene.start(arguments)
    assert scene.process is not None
    began_s, struck = time.monotonic(), False
    while scene.process.poll() is None:
        passed_s = time.monotonic() - began_s
        if planted == "killed service" and not struck and passed_s > KILLED_AFTER_S:
            struck = True
            for one in scene.servers() if scene.server_pid is None else [scene.server_pid]:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(one, signal.SIGKILL)
        if verb in INTERRUPTED and passed_s > INTERRUPTED[verb]:
            scene.process.send_signal(signal.SIGINT)
        if passed_s > LIMIT_S:
            for one in [scene.process.pid, *descendants(scene.process.pid)]:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(one, signal.SIGKILL)
            scene.process.wait()
            yield f"hangs: it has not ended within {LIMIT_S:.0f} s"
            return
        time.sleep(0.05)
    if scene.process.returncode not in DOCUMENTED:
        yield f"ended with {scene.process.returncode}"
    said = "".join((scene.folder / f"said.{end}").read_text(errors="replace") for end in ("out", "err"))
    if "Traceback (most recent" in said or "Loadframe has a bug" in said:
        yield f"not in words: {' '.join(said.split())[-300:]}"


def _judged(beside: Beside, before: list[tuple[object, ...]]) -> Iterator[str]:
    if _state(beside.vault) != before:
        yield "root's own files are not as before"
    if beside.ran.exists():
        yield f"what was planted was run: {beside.ran.read_text()[:80]}"
    for path in beside.scene.folder.rglob("*"):
        if beside.vault not in path.parents and SECRET in (_regular(path) or b""):
            yield f"root's secret stands in {path.relative_to(beside.scene.folder)}"


def _regular(path: Path) -> bytes | None:
    """What is in a file; None of what is none, or a link."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        status = os.fstat(descriptor)
        return os.read(descriptor, status.st_size) if stat.S_ISREG(status.st_mode) else None
    finally:
        os.close(descriptor)


def _state(vault: Path) -> list[tuple[object, ...]]:
    found = []
    for path in (vault, *sorted(vault.rglob("*"))):
        status = path.lstat()
        content = path.read_bytes() if path.is_file() else b""
        found.append((str(path), status.st_mode, status.st_uid, status.st_mtime_ns, content))
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--verb", action="append", choices=list(BY_NAME), metavar="NAME")
    parser.add_argument("--planted", action="append", choices=list(COLUMNS), metavar="COLUMN")
    given = parser.parse_args()
    if os.geteuid() != 0:
        print("It is about root's commands: run it as root.", file=sys.stderr)
        return 2
    verbs, columns = given.verb or [verb.name for verb in VERBS], given.planted or list(COLUMNS)
    with tempfile.TemporaryDirectory(prefix="lf-recorded-", dir="/var/tmp") as name:
        Path(name).chmod(0o755)
        run = recorded(Path(name) / "recorded")
        cells = [_apart(verb, column, run) for verb in verbs for column in columns]
    return _told(cells, verbs, columns)


def _apart(verb: str, column: str, run: Path) -> Cell:
    found = cell(verb, column, run)
    for words in found.wrong:
        print(f"  {verb}, {column}: {words}", flush=True)
    return found


def _told(cells: list[Cell], verbs: list[str], columns: list[str]) -> int:
    by = {(found.verb, found.planted): found for found in cells}
    print(f"{'':26}" + "".join(f"{column:>22}" for column in columns))
    for verb in verbs:
        row = [by[verb, column] for column in columns]
        print(f"{verb:26}" + "".join(f"{'-' if at.skipped else 'FAIL' if at.wrong else 'ok':>22}" for at in row))
    for why in sorted({found.skipped for found in cells if found.skipped}):
        print(f"-: {why}")
    failed, skipped = sum(bool(found.wrong) for found in cells), sum(bool(found.skipped) for found in cells)
    print(f"{len(cells) - failed - skipped} cells pass, {failed} fail, {skipped} make no sense")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
