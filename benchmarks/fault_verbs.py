"""The commands that faults.py hits: what each has to do with, and a small study for it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import fault_means as means
import foreign
from fault_scene import Scene

BUDGET_S = 20.0
STUDY = """\
[study]
name = "faults"
question = "What becomes of it?"
[target]
kind = "{kind}"
{target}
[workload]
kind = "{workload}"
{options}
[load]
axis = "{axis}"
levels = [1, 2]
[measure]
window = "400ms"
profile = "off"
blocks = {{ min = 2, max = 2 }}
budget = "{budget:.0f}s"
{more}"""
SERVING = Path(__file__).resolve().parents[1] / "tests/kinds/serving.py"
OLTP = "[workload.options]\nrows = 100\ntables = 1"
OBJECTS = "[workload.options]\nobjects = 20"
KINDS = {
    "pgbench": ("pgbench", "[workload.options]\nscale = 1", ""),
    "sqlite": ("job-queue", "", "[target.settings]\njournal_mode = 'delete'"),
    "mariadb": ("oltp", OLTP, "[target.settings]\nmax_connections = 50"),
    "postgres": ("oltp", OLTP, "[target.settings]\nmax_connections = 50"),
    "nginx": ("http", OBJECTS, "[target.settings]\nworker_processes = 1"),
    "service": ("http", "", f'command = ["python3", "{SERVING}", "--port", "{{port}}", "--habit", "supervisor"]'),
}
AXIS = {"pgbench": "clients"}
OTHER = {"mariadb": "max_connections = 77", "sqlite": 'journal_mode = "wal"', "postgres": 'work_mem = "8MB"'}
MORE = """\
[objective.within]
latency_p95_ms = 1000
[[alternative]]
name = "other"
target = {{ settings = {{ {other} }} }}
[[change]]
name = "first"
target = {{ settings = {{ {other} }} }}
[tune]
trials = 2
[tune.settings]
{searched}
"""
SEARCHED = {"mariadb": "thread_cache_size = [0, 16]\ninnodb_flush_log_at_trx_commit = [0, 1, 2]",
            "sqlite": 'synchronous = ["full", "normal"]\njournal_mode = ["delete", "wal"]',
            "postgres": 'work_mem = ["4MB", "8MB"]\nrandom_page_cost = [1.1, 4.0]'}  # fmt: skip
RELAX = '[remedies]\ndurability = "relax"\n'
CAGE = '[cage]\nmemory = "512MiB"\n'


def study(scene: Scene, kind: str, more: str = "") -> str:
    """A study of a server of this kind, in a file; its name."""
    workload, options, target = KINDS[kind]
    axis = AXIS.get(kind, "concurrency")
    kind = "postgres" if kind == "pgbench" else kind
    text = STUDY.format(
        axis=axis, kind=kind, workload=workload, options=options, target=target, budget=BUDGET_S, more=more
    )
    (scene.folder / "study.toml").write_text(text)
    return "study.toml"


def measuring(verb: str, kind: str, *, changing: bool = False, more: str = "") -> Callable[[Scene], list[str]]:
    """A verb that takes a study of a private server. changing: with something to change."""
    changed = RELAX + MORE.format(other=OTHER[kind], searched=SEARCHED[kind]) if changing else ""
    return lambda scene: [verb, study(scene, kind, more + changed), "--runs", "runs", "--json"]


def of_another_user(kind: str) -> Callable[[Scene], list[str]]:
    """`measure` of a server that is somebody else's."""

    def arguments(scene: Scene) -> list[str]:
        scene.owned = scene.stack.enter_context(foreign.restartable(kind))
        scene.server = scene.owned.server
        text = scene.server.study() + f'blocks = {{ min = 2, max = 2 }}\nbudget = "{BUDGET_S:.0f}s"\n'
        (scene.folder / "study.toml").write_text(text.replace("levels = [1]", "levels = [1, 2]"))
        return ["measure", "study.toml", "--runs", "runs", "--json"]

    return arguments


def of_a_site(scene: Scene) -> list[str]:
    """`measure` of a page, by way of a network of ours."""
    scene.site = means.Site()
    scene.stack.callback(scene.site.close)
    scene.network = means.Network(scene.site.port)
    scene.stack.callback(scene.network.close)
    text = STUDY.format(
        axis="concurrency", kind="url", workload="http", options="", budget=BUDGET_S, more="",
        target=f'[target.settings]\nurl = "http://127.0.0.1:{scene.network.port}"',
    )  # fmt: skip
    (scene.folder / "study.toml").write_text(text)
    return ["measure", "study.toml", "--runs", "runs", "--json"]


def of_a_run(*arguments: str) -> Callable[[Scene], list[str]]:
    """A verb that reads a run that was measured before."""

    def prepared(scene: Scene) -> list[str]:
        shutil.copytree(scene.recorded, scene.place("runs") / "recorded")
        return [*(word.replace("RUN", "runs/recorded") for word in arguments), "--json"]

    return prepared


def case(scene: Scene) -> list[str]:
    """A case, in little time."""
    sets = (f"measure.budget={BUDGET_S:.0f}s", "measure.window=400ms", "workload.options.table_size=1000")
    return [
        "case",
        "run",
        "oltp-ladder",
        "--quick",
        "--runs",
        "runs",
        "--json",
        *(w for s in sets for w in ("--set", s)),
    ]


def demo(scene: Scene) -> list[str]:
    """The demonstration, in little time."""
    sets = (f"measure.budget={BUDGET_S:.0f}s", "measure.window=300ms", "load.levels=[1,2]", "measure.profile=off")
    return ["demo", "--runs", "runs", "--json", *(word for each in sets for word in ("--set", each))]


def points(scene: Scene) -> list[str]:
    (scene.folder / "points.csv").write_text("load,throughput\n1,100\n2,190\n4,340\n8,520\n")
    return ["predict", "points.csv", "--at", "16", "--load-is", "clients", "--json"]


def samples(scene: Scene) -> list[str]:
    for name, first in (("a", 100), ("b", 120)):
        (scene.folder / f"{name}.csv").write_text("value\n" + "".join(f"{first + each % 5}\n" for each in range(20)))
    return ["compare", "a.csv", "b.csv", "--json"]


@dataclass(frozen=True)
class Verb:
    """uses: what it has to do with, of the words in USES. arguments: makes what it needs, and says how it is called."""

    name: str
    uses: frozenset[str]
    arguments: Callable[[Scene], list[str]]


EACH = {"command", "state"}
BENCH = EACH | {"scratch", "runs", "driver", "recorder"}
PRIVATE = BENCH | {"server", "private"}
VERBS = tuple(
    Verb(name, frozenset(uses), arguments)
    for name, uses, arguments in (
        ("measure", PRIVATE, measuring("measure", "mariadb")),
        ("measure-postgres", PRIVATE, measuring("measure", "postgres")),
        ("measure-pgbench", PRIVATE, measuring("measure", "pgbench")),
        ("measure-nginx", PRIVATE, measuring("measure", "nginx")),
        ("measure-service", PRIVATE, measuring("measure", "service")),
        ("measure-sqlite", BENCH, measuring("measure", "sqlite")),
        ("measure-caged", PRIVATE | {"caged"}, measuring("measure", "mariadb", more=CAGE)),
        ("measure-mariadb-attached", BENCH | {"server", "counters"}, of_another_user("mariadb")),
        ("measure-postgres-attached", BENCH | {"server", "counters"}, of_another_user("postgres")),
        ("measure-url", BENCH | {"network"}, of_a_site),
        ("demo", BENCH, demo),
        ("investigate", PRIVATE, measuring("investigate", "mariadb", changing=True)),
        ("capacity", PRIVATE, measuring("capacity", "postgres", changing=True)),
        ("compare", PRIVATE, measuring("compare", "mariadb", changing=True)),
        ("ladder", PRIVATE, measuring("ladder", "mariadb", changing=True)),
        ("tune", PRIVATE, measuring("tune", "mariadb", changing=True)),
        ("case", PRIVATE, case),
        ("report", EACH | {"runs"}, of_a_run("report", "RUN")),
        ("curve", EACH, of_a_run("curve", "RUN")),
        ("predict", EACH, points),
        ("compare-csv", EACH, samples),
        ("limits", EACH, lambda scene: ["limits", "--json"]),
        ("limits-target", EACH | {"scratch", "private"}, lambda scene: [
            "limits", "--target", study(scene, "mariadb"), "--json"]),
        ("doctor", EACH, lambda scene: ["doctor", "--json"]),
        ("changes", EACH, lambda scene: ["changes", "list", "--json"]),
        ("study-check", EACH, lambda scene: ["study", "check", study(scene, "sqlite"), "--json"]),
    )
)  # fmt: skip
USES = {
    "command": "it is a command",
    "state": "it keeps or reads leases and changes",
    "scratch": "it has temporary data",
    "runs": "it writes a run folder",
    "driver": "it starts a load driver",
    "recorder": "it records",
    "server": "it asks a server",
    "private": "it starts a server",
    "caged": "its server is in a cage of memory",
    "counters": "its server can be asked by others",
    "network": "its server is reached by network",
}
