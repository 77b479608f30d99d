"""What crash.py kills commands on: a private target of each kind, or a server that plays somebody else's, each with a
machine whose /proc is a folder; and all that has to stay as it is there."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import foreign
from loadframe.cages.groups import hierarchies
from loadframe.host import identity, shared_memory
from loadframe.host.processes import MARK

ATTACHED = "attached "
"""Before the kind of a server that is somebody else's."""
TARGETS = ("sqlite", "mariadb", "postgres", "nginx", "service", "attached mariadb", "attached postgres")
MACHINE = {"vm/dirty_ratio": "20", "vm/dirty_bytes": "0", "vm/swappiness": "60"}
WORKLOADS = {
    "sqlite": 'kind = "job-queue"\n[workload.options]\nbacklog = 50',
    "mariadb": 'kind = "oltp"\n[workload.options]\nrows = 100\ntables = 1',
    "postgres": 'kind = "oltp"\n[workload.options]\nrows = 100\ntables = 1',
    "nginx": 'kind = "http"',
    "service": 'kind = "http"',
}
SERVING = Path(__file__).resolve().parents[1] / "tests/kinds/serving.py"
DECLARED = {
    "service": f"""\
command = ["python3", "{SERVING}", "--port", "{{port}}", "--data", "{{data}}", "--habit", "supervisor"]
[[target.with]]
name = "database"
command = ["python3", "{SERVING}", "--port", "{{port}}", "--habit", "supervisor", "--data", "{{data}}"]
[target.setting.pool]
values = [2, 4, 8]
apply = "environment"
name = "POOL"
[target.setting.threads]
values = [1, 2]
apply = "environment"
""",
}
"""A worker of a supervisor, and a helper that has one, too."""
STUDY = """\
[study]
name = "ours"
question = "What does a setting give?"
[target]
kind = "{kind}"
{declared}[workload]
{workload}
[load]
axis = "concurrency"
levels = [1]
[measure]
window = "300ms"
profile = "off"
"""
"""Ends within [measure], which goes on."""
CHANGED = {
    "sqlite": 'journal_mode = "wal"',
    "nginx": 'tcp_nopush = "on"',
    "service": "pool = 8",
    "mariadb": "innodb_flush_log_at_trx_commit = 2, max_connections = 77",
    "postgres": 'synchronous_commit = "off", work_mem = "8MB"',
}
SEARCHED = {
    "sqlite": 'journal_mode = ["delete", "wal", "truncate"]\ncache_size = [-2000, -8000]\n',
    "nginx": "listen_reuseport = [false, true]\n",
    "service": "pool = [2, 4, 8]\nthreads = [1, 2]\n",
    "mariadb": """\
innodb_flush_log_at_trx_commit = [0, 1, 2]
innodb_log_file_size = ["96M", "112M", "128M"]
innodb_buffer_pool_size = ["64M", "128M", "160M"]
thread_cache_size = [0, 16, 64]
innodb_log_buffer_size = ["16M", "32M"]
""",
    "postgres": """\
synchronous_commit = ["on", "off"]
work_mem = ["4MB", "8MB", "16MB"]
random_page_cost = [1.1, 2.0, 4.0]
shared_buffers = ["64MB", "128MB"]
""",
}
"""The last one of the databases each needs a restart, and is left out of somebody else's."""
SEARCHED_BY_RESTART = {
    "mariadb": """\
innodb_log_buffer_size = ["16M", "32M"]
innodb_read_io_threads = [4, 8]
innodb_io_capacity = [200, 400]
""",
    "postgres": """\
shared_buffers = ["64MB", "128MB"]
max_wal_senders = [5, 10]
random_page_cost = [2.0, 4.0]
""",
}
"""The last one of each needs none."""
MORE = """\
blocks = {{ min = 2, max = 2 }}
budget = "60s"
[host.settings]
"vm.swappiness" = 10
[remedies]
allow = ["target", "host"]
durability = "relax"
[[alternative]]
name = "changed"
target = {{ settings = {{ {changed} }} }}
host = {{ settings = {{ "vm.dirty_ratio" = 5, "vm.swappiness" = 1 }} }}
[[change]]
name = "server"
target = {{ settings = {{ {changed} }} }}
[[change]]
name = "machine"
host = {{ settings = {{ "vm.dirty_ratio" = 5, "vm.swappiness" = 1 }} }}
[tune]
trials = {trials}
[tune.settings]
{searched}"""
TRIALS = 3
RESTARTING = "tune, restarting"
ANYWHERE = ("measure", "investigate", "capacity", "compare", "ladder", "tune", "limits")
VERBS = {
    "sqlite": (*ANYWHERE, "demo", "case run", "report"),
    "mariadb": (*ANYWHERE, "case run"),
    "postgres": ANYWHERE,
    "nginx": ANYWHERE,
    "service": ANYWHERE,
    "attached mariadb": (*ANYWHERE, RESTARTING),
    "attached postgres": (*ANYWHERE, RESTARTING),
}
CASES = {"sqlite": "job-queue", "mariadb": "render-farm"}
CAPACITY = ["--set", "objective.within.latency_p95_ms=3600000", "--set", "load.levels=[1, 2, 4]"]


@dataclass
class Left:
    """What the leases of a killed command name."""

    names: list[str] = field(default_factory=list)
    processes: list[identity.Identity] = field(default_factory=list)
    groups: list[Path] = field(default_factory=list)


@dataclass
class Scene:
    """A target and the machine. owned: where it is somebody else's. folder: of the studies and the runs. first: all
    that has to stay as it is, as it was in the beginning. go_on: killed searches with trials, by verb. reported: a run
    that is kept, to be reported."""

    target: str
    owned: foreign.Restartable | None
    folder: Path
    first: dict[str, Any] = field(default_factory=dict)
    go_on: dict[str, Path] = field(default_factory=dict)
    reported: Path | None = None

    @property
    def kind(self) -> str:
        return self.target.removeprefix(ATTACHED)

    @property
    def password(self) -> str | None:
        """Of the server's owner."""
        return None if self.owned is None else self.owned.server.password

    def tells_password(self, words: str) -> bool:
        """Whether the owner's password is in them."""
        return self.password is not None and self.password in words

    @property
    def environment(self) -> dict[str, str]:
        """Of the commands."""
        return {"LOADFRAME_STATE": str(self.folder / "state"), "LOADFRAME_SCRATCH": str(self.folder / "scratch")}

    def prepare(self) -> None:
        """The machine, the studies."""
        for name, value in MACHINE.items():
            path = self.folder / "machine/proc/sys" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"{value}\n")
        self.folder.chmod(0o755)  # a server under another user works below it
        (self.folder / "scratch").mkdir(mode=0o755)
        if self.owned is None:
            declared = DECLARED.get(self.kind, "")
            study = STUDY.format(kind=self.kind, workload=WORKLOADS[self.kind], declared=declared)
            self._write("study.toml", study, SEARCHED)
        else:
            self._write("study.toml", self.owned.server.study(), SEARCHED)
            self._write("restarting.toml", self.owned.study(), SEARCHED_BY_RESTART)
        self.first = self.seen()

    def _write(self, name: str, study: str, searched: Mapping[str, str]) -> None:
        more = MORE.format(changed=CHANGED[self.kind], searched=searched[self.kind], trials=TRIALS)
        (self.folder / name).write_text(study + more)

    def arguments(self, verb: str) -> list[str]:
        """Of the command that is killed."""
        if verb == "demo":
            return ["demo", "--runs", "runs"]
        if verb == "case run":
            return ["case", "run", CASES[self.kind], "--quick", "--runs", "runs"]
        if verb == "report":
            assert self.reported is not None, "a run was made for it"
            return ["report", str(self.reported)]
        if verb == "limits" and self.owned is not None:
            server = self.owned.server
            return ["limits", "--attach", f"{self.kind}:{server.address}", "--option-file", str(server.option_file)]
        if verb == "limits":
            return ["limits", "--target", "study.toml"]
        study = "restarting.toml" if verb == RESTARTING else "study.toml"
        resume = ["--resume", str(self.go_on[verb])] if verb in self.go_on else []
        more = CAPACITY if verb == "capacity" else []
        return [verb.partition(",")[0], study, "--runs", "runs", *resume, *more]

    def differences(self) -> list[str]:
        """What is not as it was in the beginning, in words."""
        now, told = self.seen(), list[str]()
        for name, value in self.first.items():
            if isinstance(value, dict):
                told += [
                    f"{key} was {value.get(key)}, is {now[name].get(key)}"
                    for key in sorted({*value, *now[name]})
                    if value.get(key) != now[name].get(key)
                ]
            elif now[name] != value:
                told.append(f"{name}: was {value}, is {now[name]}")
        return told

    def seen(self) -> dict[str, Any]:
        """All that has to stay as it is, once the server answers."""
        machine = {name: (self.folder / "machine/proc/sys" / name).read_text().split()[0] for name in MACHINE}
        state = [path.name for path in self.folder.glob("state/*/*") if not path.name.endswith("lock")]
        scratch = sorted(path.name for path in (self.folder / "scratch").iterdir())
        return {"machine": machine, "state": sorted(state), "scratch": scratch, **self._of_the_server()}

    def _of_the_server(self) -> dict[str, Any]:
        if self.owned is None:
            return {}
        server = self.owned.server
        server.await_answer()
        if self.kind == "mariadb":
            settings = server.ask("SHOW GLOBAL VARIABLES")
        else:
            server.ask("SELECT pg_sleep(0.2)")  # each connection reads the configuration when it comes to it
            files = "SELECT 'in the files: ' || name, setting FROM pg_file_settings"
            settings = server.ask(f"SELECT name, setting FROM pg_settings UNION ALL {files}")
        return {
            "settings": {str(name): str(value) for name, value in settings},
            "schemas": sorted(server.schemas()),
            "data": server.ask("SELECT id FROM theirs.precious"),
            "configuration": sorted(path.name for path in self.owned.config.parent.iterdir()),
        }

    def not_reverted(self) -> set[str]:
        """The settings that a killed command has left on its list."""
        lists = [json.loads(path.read_text()) for path in self.folder.glob("state/changes/*.json")]
        return {change["setting"] for each in lists for change in each["changes"]}

    def left(self) -> Left:
        """What a killed command's leases name."""
        found = Left()
        for path in self.folder.glob("state/leases/*.json"):
            lease = json.loads(path.read_text())
            found.names.append(lease["id"])
            found.processes += [identity.Identity(**each) for each in lease["processes"]]
            found.groups += map(Path, lease["groups"])
        return found

    def remains(self, left: Left) -> list[str]:
        """What is still there of it, in words."""
        running = [*left.processes, *(each for name in left.names for each in identity.marked(f"{MARK}={name}"))]
        running += identity.naming(str(self.folder / "scratch"))
        told = [f"process {each.pid} still runs" for each in dict.fromkeys(running) if identity.alive(each)]
        made = {
            group for name in left.names for each in hierarchies() for group in each.top.rglob(f"loadframe-{name}*")
        }
        told += [f"control group {group} is still there" for group in {*left.groups, *made} if group.exists()]
        shared = [path for name in left.names for path in shared_memory.FOLDER.glob(f"{shared_memory.name_of(name)}*")]
        return told + [f"shared memory {path} is still there" for path in shared]

    def runs(self) -> list[Path]:
        """The run folders; a kill may come before there is one."""
        return sorted(path for path in self.folder.glob("runs/*") if (path / "run.json").exists())


@contextmanager
def prepared(target: str) -> Iterator[Scene]:
    """A scene, with a folder that is gone afterwards."""
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="lf-crash-", dir="/var/tmp"))
        attached = target.startswith(ATTACHED)
        kind = target.removeprefix(ATTACHED)
        owned = stack.enter_context(foreign.restartable(kind)) if attached else None
        scene = Scene(target, owned, Path(folder))
        scene.prepare()
        yield scene
