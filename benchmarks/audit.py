"""Every call by a path that root makes, and every program that it starts, while the verbs run as root:
python benchmarks/audit.py [VERB...]

Each verb (second_user_verbs.py) runs under strace (file_calls.py); path_audit.py and children_audit.py say what a fault
is. Prints for each verb how many paths and programs were audited, how many calls only looked, and every fault; ends
with 1 where there is any, or where a verb did not do what it should.
"""

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path

from children_audit import Children
from fault_scene import LOADFRAME, Scene
from file_calls import traced
from path_audit import Paths, shape
from second_user_verbs import BY_NAME, INTERRUPTED, VERBS, recorded

LIMIT_S = 180.0
ENDED_WELL = (0, 130)
STEPS = "finished steps are kept"
"""Of what ended for want of time or quiet, after its work."""
EXCEPTED = {
    r".*/loadframe-[0-9a-f]{12}/(.*/)?(run|work)/[^/]*(\.sock|\.s\.PGSQL\.\d+)": "the socket of a server in the "
    "folder of that server's account: whoever may swap it is whoever answers there, and nothing is written to its path",
    r"/proc/\d+/exe": "a program that runs: never a pipe, and only looked at for how it was built",
}
AS_CALLER = {"sysbench", "pgbench"}
"""Drivers of a server that is attached run as the caller (docs/security.md, not enforced)."""
"""Paths that root uses though another user may change them, each with a reason."""


@dataclass
class Audit:
    """Of one verb."""

    verb: str
    code: int
    said: str
    paths: Paths
    children: Children

    def faults(self) -> list[str]:
        found = [
            f"{count} x {fault.program}: {fault.call} {fault.flags} {shape(fault.path)}: {shape(fault.why)}"
            for fault, count in self.paths.faults.items()
        ]
        found += [
            f"{count} x {child.program} (user {child.uid}): {child.why}"
            for child, count in self.children.faults.items()
        ]
        if self.code not in ENDED_WELL and STEPS not in self.said:
            found.append(f"it ended with {self.code}: {self.said[-300:]}")
        return found


def audited(verb: str, folder: Path, run: Path | None, *, excepted: dict[str, str] = EXCEPTED) -> Audit:
    """One verb, in a folder of its own that is there and empty."""
    folder.chmod(0o755)
    with Scene(folder, LIMIT_S) as scene:
        scene.recorded = run
        scene.place("scratch").chmod(0o1777)  # as /var/tmp is
        arguments = BY_NAME[verb].arguments(scene)
        env = {**os.environ, "HOME": str(folder), "LOADFRAME_STATE": str(scene.place("state")),
               "LOADFRAME_SCRATCH": str(scene.place("scratch"))}  # fmt: skip
        users = {(scene.folder / "service").stat().st_uid} if (scene.folder / "service").exists() else set()
        paths, children = Paths(dict(excepted)), Children(
            frozenset(env), frozenset({"serving.py", "driver.py"}), frozenset(users),
            frozenset(AS_CALLER if verb.endswith("attached") else ()),
        )  # fmt: skip
        with (
            (folder / "said").open("wb") as said,
            traced([*LOADFRAME, *arguments], cwd=folder, env=env, stdout=said, stderr=said) as (process, calls),
        ):
            timer = threading.Timer(INTERRUPTED.get(verb, LIMIT_S), _interrupt, (process,))
            timer.start()
            try:
                for call in calls:
                    paths.take(call)
                    children.take(call)
            finally:
                timer.cancel()
        return Audit(verb, process.returncode, (folder / "said").read_text(errors="replace"), paths, children)


def _interrupt(process: subprocess.Popen[bytes]) -> None:
    """What strace runs; strace itself waits for it."""
    for pid in map(int, Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()):
        os.kill(pid, signal.SIGINT)


def line(audit: Audit) -> str:
    """What was audited, and with what result."""
    faults, looked = audit.faults(), sum(audit.paths.looked.values())
    excepted, unseen = sum(audit.paths.allowed.values()), sum(audit.paths.unseen.values())
    return (
        f"{audit.verb:26} {audit.paths.audited:7} paths, {looked:4} looked, {excepted:4} excepted, {unseen:3} unseen; "
        f"{audit.children.audited:4} programs, {audit.children.of_others:4} of others: "
        + (f"{len(faults)} faults" if faults else "none")
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verbs", nargs="*", metavar="VERB", help=f"of {', '.join(verb.name for verb in VERBS)}")
    given = parser.parse_args()
    if os.geteuid() != 0:
        print("Only root's calls are audited: run it as root.", file=sys.stderr)
        return 2
    wrong = 0
    with tempfile.TemporaryDirectory(prefix="lf-audit-", dir="/var/tmp") as name:
        top = Path(name)
        top.chmod(0o755)
        run = recorded(top / "recorded")
        for verb in given.verbs or [verb.name for verb in VERBS]:
            folder = top / verb
            folder.mkdir()
            audit = audited(verb, folder, run)
            print(line(audit), flush=True)
            for fault in audit.faults():
                print(f"    {fault}", flush=True)
            wrong += bool(audit.faults())
    print(f"{wrong} verbs with faults")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
