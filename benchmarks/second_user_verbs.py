"""Every verb of the command line, each with a small thing to do: for audit.py and second_user.py.

Most of them are those that faults.py breaks (fault_verbs.py); here are the others."""

import os
import socket
import subprocess
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import fault_verbs
from fault_scene import Scene
from fault_verbs import BENCH, EACH, PRIVATE, SERVING, STUDY, Verb, measuring, of_a_run
from loadframe.host.privilege import free_user

PYTHON = "/usr/bin/python3"
"""Which every user may run."""
BUDGET_S = 6.0
ENDS_WITHIN_S = 20.0
WATCHED = """\
[study]
name = "watched"
question = "What will give?"
[target]
kind = "service"
pid = {pid}
listen = "127.0.0.1:{port}"
[workload]
kind = "http"
[load]
axis = "concurrency"
levels = [1]
[watch]
every = "1s"
unit = ["/usr/bin/true"]
"""
DRIVER = """\
import json, os, time
began = time.monotonic()
with open(os.environ["LOADFRAME_OUTPUT"], "w") as out:
    while time.monotonic() - began < float(os.environ["LOADFRAME_DURATION_S"]):
        time.sleep(0.005)
        print(json.dumps({"end": time.monotonic(), "latency_ms": 5.0}), file=out)
"""
CONFIG = "[ndbd default]\nNoOfReplicas=2\nDataMemory=80M\n[ndb_mgmd]\nHostName=127.0.0.1\n" + (
    "[ndbd]\nHostName=127.0.0.1\n" * 2 + "[mysqld]\n"
)
FLEET = '[fleet]\nname = "lab"\n[[host]]\nname = "here"\nroles = ["driver"]\nhere = true\n'
TRIALS = '[fleet]\nname = "lab"\n' + "".join(
    f'[[host]]\nname = "{name}"\nroles = ["trial"]\nworker = "{name}"\ncpus = "{cpu}"\n'
    for cpu, name in enumerate(("one", "two"))
)


def free_port() -> int:
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        return int(taken.getsockname()[1])


def service(scene: Scene) -> tuple[int, int]:
    """A service of another user's that runs: its pid and port. It ends with the scene."""
    port, user = free_port(), free_user()
    own = scene.folder / "service"
    own.mkdir()
    (own / "serving.py").write_bytes(SERVING.read_bytes())
    if user is not None:
        os.chown(own, user, user)
    process = subprocess.Popen(
        [PYTHON, "-P", str(own / "serving.py"), "--port", str(port)], cwd=own, user=user, group=user,
        extra_groups=None if user is None else [], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
    )  # fmt: skip
    scene.stack.callback(lambda: (process.kill(), process.communicate()))
    assert process.stdout is not None
    process.stdout.readline()
    scene.server_pid = process.pid
    return process.pid, port


def watch(scene: Scene) -> list[str]:
    pid, port = service(scene)
    (scene.folder / "study.toml").write_text(WATCHED.format(pid=pid, port=port))
    return ["watch", "study.toml", "--folder", "watched", "--interval", "1s", "--for", "5s", "--json"]


def of_a_service(*words: str) -> Callable[[Scene], list[str]]:
    """A verb that takes a running service. PID and PORT stand for its own."""

    def arguments(scene: Scene) -> list[str]:
        pid, port = service(scene)
        return [*(word.replace("PID", str(pid)).replace("PORT", str(port)) for word in words), "--json"]

    return arguments


def of_a_watch(*words: str) -> Callable[[Scene], list[str]]:
    """A verb that reads the folder of a watch: `watched`."""

    def arguments(scene: Scene) -> list[str]:
        rows = "".join(
            f"2026-11-{day:02d}T{hour:02d}:00:00Z,{day * hour + 1},0.0{hour:02d}\n"
            for day in (1, 2, 3)
            for hour in range(24)
        )
        (scene.folder / "month.csv").write_text(f"time,jobs,took\n{rows}")
        words_before = [
            "watch",
            "--import",
            "month.csv",
            "--as",
            "load=jobs",
            "--as",
            "response=took",
            "--folder",
            "watched",
            "--json",
        ]
        process = scene.command(words_before, (), {}, "before")
        assert process.wait(ENDS_WITHIN_S) == 0, (scene.folder / "before.err").read_text()
        return [*words, "--json"]

    return arguments


def private(kind: str, workload: str, axis: str, options: str, target: str = "") -> Callable[[Scene], list[str]]:
    """`measure` of kinds that faults.py has not."""

    def arguments(scene: Scene) -> list[str]:
        text = STUDY.format(
            kind=kind, target=target, workload=workload, axis=axis, options=f"[workload.options]\n{options}",
            budget=BUDGET_S, more="",
        )  # fmt: skip
        (scene.folder / "study.toml").write_text(text)
        return ["measure", "study.toml", "--runs", "runs", "--json"]

    return arguments


def by_a_command(scene: Scene) -> list[str]:
    """`measure` with a load driver of the study's own, which other users can read."""
    (scene.folder / "driver.py").write_text(DRIVER)
    declared = f'kind = "command"\ncommand = ["{PYTHON}", "-P", "{scene.folder}/driver.py"]\n'
    text = STUDY.format(
        kind="sqlite", target="", workload="command", axis="users", options='[workload.options]\nloop = "closed"',
        budget=BUDGET_S, more="",
    )  # fmt: skip
    service_text = f'command = ["{PYTHON}", "-P", "{_copied(scene)}", "--port", "{{port}}"]'
    text = text.replace('kind = "command"\n', declared).replace(
        'kind = "sqlite"\n', f'kind = "service"\n{service_text}\n'
    )
    (scene.folder / "study.toml").write_text(text)
    return ["measure", "study.toml", "--runs", "runs", "--json"]


def _copied(scene: Scene) -> Path:
    """The study's program, in a folder where every user may write. It is run with -P: the modules that a Python of the
    user's own takes from there are the user's to mind (docs/security.md)."""
    path = scene.folder / "serving.py"
    path.write_bytes(SERVING.read_bytes())
    path.chmod(0o644)
    return path


def _written(name: str, text: str, *words: str) -> Callable[[Scene], list[str]]:
    def arguments(scene: Scene) -> list[str]:
        (scene.folder / name).write_text(text)
        return [*words, "--json"]

    return arguments


def fleet_measure(scene: Scene) -> list[str]:
    (scene.folder / "fleet.toml").write_text(FLEET)
    return [*fault_verbs.of_a_site(scene), "--fleet", "fleet.toml"]


def fleet_tune(scene: Scene) -> list[str]:
    (scene.folder / "fleet.toml").write_text(TRIALS)
    return [*measuring("tune", "sqlite", changing=True)(scene), "--fleet", "fleet.toml", "--set", "measure.budget=60s"]


def init(scene: Scene) -> list[str]:
    command = f"{PYTHON} -P {_copied(scene)} --port {free_port()}"
    return ["init", "--command", command, "--name", "made", "--runs", "runs", "--json"]


INTERRUPTED = {"serve": 12.0}
"""Verbs that end with Ctrl-C: seconds until then."""
MORE = tuple(
    Verb(name, frozenset(uses), arguments)
    for name, uses, arguments in (
        ("measure-varnish", PRIVATE, private("varnish", "http", "concurrency", "objects = 10")),
        ("measure-squid", PRIVATE, private("squid", "http", "concurrency", "objects = 10")),
        ("measure-bulk", PRIVATE, private(
            "bulk-loader", "bulk-ingest", "pipelines", "file_size_kb = 64", "shards = 1")),
        ("measure-tree", PRIVATE, private("sqlite", "metadata-index", "scan_threads", "entries = 2000")),
        ("measure-command", PRIVATE, by_a_command),
        ("measure-fleet", BENCH, fleet_measure),
        ("tune-fleet", BENCH, fleet_tune),
        ("fleet-check", EACH, _written("fleet.toml", FLEET, "fleet", "check", "fleet.toml")),
        ("init", PRIVATE, init),
        ("init-port", EACH | {"service"}, of_a_service("init", "--port", "PORT", "--name", "made")),
        ("watch", EACH | {"service"}, watch),
        ("watch-import", EACH, of_a_watch(
            "watch", "--import", "month.csv", "--as", "load=jobs", "--as", "response=took")),
        ("limits-pid", EACH | {"service"}, of_a_service("limits", "--pid", "PID")),
        ("export", EACH | {"runs"}, of_a_run("export", "RUN", "--format", "openmetrics", "--to", "out")),
        ("export-csv", EACH | {"runs"}, of_a_run("export", "RUN", "--format", "steps.csv", "--to", "out")),
        ("export-watch", EACH, of_a_watch("export", "watched", "--format", "samples.csv", "--to", "out")),
        ("figures", EACH | {"runs"}, of_a_run("report", "RUN", "--figures", "out")),
        ("compare-runs", EACH | {"runs"}, of_a_run("compare", "RUN", "RUN", "--junit", "out")),
        ("growth", EACH, _written("load.csv", "".join(["entries,seconds\n", *(
            f"{n * 10000},{n * 1.5 + n * n / 50}\n" for n in range(1, 30))]), "growth", "load.csv", "--at", "1M")),
        ("ndb", EACH, _written("config.ini", CONFIG, "ndb", "config.ini", "--cpus", "4", "--memory", "4GiB",
                               "--set", "ndbd default.DataMemory=90M", "--write", "out")),
        ("serve", EACH | {"runs"}, of_a_run("serve", "runs")),
        ("case-list", EACH, lambda scene: ["case", "list", "--json"]),
        ("case-show", EACH, lambda scene: ["case", "show", "render-farm"]),
        ("study-schema", EACH, lambda scene: ["study", "schema"]),
        ("changes-revert", EACH, lambda scene: ["changes", "revert", "--json"]),
        ("man", EACH, lambda scene: ["man"]),
    )
)  # fmt: skip
VERBS = (*fault_verbs.VERBS, *MORE)
BY_NAME = {verb.name: verb for verb in VERBS}


def recorded(folder: Path) -> Path:
    """A run, for verbs that read one."""
    folder.mkdir()
    with Scene(folder, 60.0) as scene:
        process = scene.command(
            [*measuring("measure", "sqlite")(scene), "--set", f"measure.budget={BUDGET_S:.0f}s"], (), {}, "said"
        )
        assert process.wait(60.0) == 0, (folder / "said.err").read_text()
    return next((folder / "runs").iterdir())
