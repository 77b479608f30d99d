"""Somebody's server that is restarted for a study with a file of ours, and without it again at the end."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import loadframe
import somebodys
from loadframe.bench.bench import Bench
from loadframe.bench.checking import check_study
from loadframe.cage import identity
from loadframe.changes import durable
from loadframe.changes.config_file import _silent
from loadframe.errors import ChangeError, StudyError, TargetError, UserError
from loadframe.model import SettingValue, TargetState
from loadframe.runs.folder import RunFolder
from loadframe.study import Study, parse

MANAGER = """
import json, os, signal, subprocess, sys, time
own = json.load(open(sys.argv[1]))
def runs(pid):
    try:
        return "Z" not in open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[0]
    except OSError:
        return False
if os.path.exists(own["pid"]):
    pid = int(open(own["pid"]).read())
    if runs(pid):
        os.kill(pid, own["signal"])
    while runs(pid):
        time.sleep(0.01)
with open(own["log"], "ab") as log:
    started = subprocess.Popen(own["command"], stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=own["folder"],
                               start_new_session=True, user=own["user"])
open(own["pid"], "w").write(str(started.pid))
"""
"""What its owner restarts it with: it ends the process that it has started last, and starts another one."""

Opened = Callable[[Study], RunFolder]
RESTARTED = 'config = "{config}"\nrestart = {restart}\n'
AT_START: dict[str, dict[str, SettingValue]] = {
    "mariadb": {"innodb_log_buffer_size": 33554432},
    "postgres": {"shared_buffers": 67108864},
}
AT_ONCE: dict[str, dict[str, SettingValue]] = {"mariadb": {"max_connections": 77}, "postgres": {"work_mem": 8 << 20}}


@dataclass
class Restartable:
    """config: a file among the server's configuration that is not there."""

    server: somebodys.Server
    study: str
    config: Path

    @property
    def kind(self) -> str:
        return self.server.kind

    def settings(self) -> dict[str, SettingValue]:
        return self.server.settings((*AT_START[self.kind], *AT_ONCE[self.kind]))


def _with_a_manager(theirs: somebodys.Server) -> Restartable:
    """The same server with a configuration of its own, which includes a folder, and a manager of its own."""
    target, folder, server = theirs.target, theirs.folder, theirs.target._server
    included, (program, *options) = folder / "conf.d", server.command
    included.mkdir()
    if theirs.kind == "mariadb":
        (folder / "my.cnf").write_text(f"!includedir {included}\n")
        command = [program, f"--defaults-file={folder}/my.cnf", *options[1:]]
        command = [word for word in command if not word.startswith("--init-file=")]
    else:
        command = [program, *options]
        with server.configuration.open("a") as configuration:
            configuration.write(f"include_dir = '{included}'\n")
    target.stop()
    manager, own = folder / "manager.py", folder / "own.json"
    manager.write_text(MANAGER)
    user = server._user
    told = {"command": command, "pid": f"{folder}/pid", "log": f"{folder}/log", "folder": str(folder), "user": user}
    own.write_text(json.dumps({**told, "signal": int(server.stop_signal)}))
    restart = [sys.executable, "-I", str(manager), str(own)]
    config = included / ("zz-loadframe.cnf" if theirs.kind == "mariadb" else "zz-loadframe.conf")
    subprocess.run(restart, check=True)
    where = {"kind": theirs.kind, "address": theirs.address, "option_file": str(theirs.option_file), "user": ""}
    while _silent(where) is not None:
        assert identity.identify(int((folder / "pid").read_text())) is not None, (folder / "log").read_text()
    study = theirs.study(RESTARTED.format(config=config, restart=json.dumps(restart)))
    return Restartable(theirs, study, config)


@pytest.fixture(scope="module", params=somebodys.KINDS)
def server(request: pytest.FixtureRequest) -> Iterator[Restartable]:
    with somebodys.running(request.param) as theirs:
        try:
            yield _with_a_manager(theirs)
        finally:
            for process in identity.naming(theirs.folder.parent.name):
                identity.end(process, 5.0)


@pytest.mark.server
def test_what_only_a_start_reads_is_there_for_the_run_alone(server: Restartable, opened: Opened) -> None:
    study = parse(server.study)
    check_study(study)
    before, at_start, at_once = server.settings(), AT_START[server.kind], AT_ONCE[server.kind]
    with Bench(study, opened(study)) as bench:
        bench.declare("A", "as given", bench.start_state)
        bench.declare("B", "at the start", TargetState(at_start))
        bench.declare("C", "both", TargetState({**at_start, **at_once}))
        bench.declare("D", "at once", TargetState(at_once))
        states = {"A": before, "B": {**before, **at_start}, "C": {**at_start, **at_once}, "D": {**before, **at_once}}
        for name in "ABCDCA":
            bench.use(name)
            assert server.settings() == states[name], name
            assert server.config.exists() is (name in "BC")
        assert bench.take_step(round_number=1, block=1, treatment="C", level=1).requests > 0
    assert server.settings() == before
    assert not list(server.config.parent.iterdir())
    assert {outcome.what for outcome in bench.put_back} == {"reverted"}
    assert durable.read() == []


KILLED = """
import os, signal, sys
from pathlib import Path
from loadframe.bench.bench import Bench
from loadframe.model import TargetState
from loadframe.runs.folder import RunFolder
from loadframe.study import load
study = load(Path(sys.argv[1]))
run = RunFolder.create(Path(sys.argv[2]), "killed")
with Bench(study, run) as bench:
    bench.declare("A", "as given", bench.start_state)
    bench.use("A")
    os.kill(os.getpid(), signal.SIGKILL)
"""
NEXT = "from loadframe.changes import durable; print(*(outcome.what for outcome in durable.revert()))"


@pytest.mark.server
def test_after_a_kill_the_next_command_restarts_it_as_it_was(server: Restartable, tmp_path: Path) -> None:
    before, lines = server.settings(), {**AT_START[server.kind], **AT_ONCE[server.kind]}
    table = "".join(f"{name} = {value}\n" for name, value in lines.items())
    (tmp_path / "study.toml").write_text(f"{server.study}[target.settings]\n{table}")
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(tmp_path / "study.toml"), str(tmp_path)], capture_output=True, text=True
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert server.settings() == lines
    done = subprocess.run([sys.executable, "-c", NEXT], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) == {"reverted"}
    assert server.settings() == before
    assert durable.read() == []
    assert not list(server.config.parent.iterdir())


SEARCHED: dict[str, dict[str, list[SettingValue]]] = {
    "mariadb": {"innodb_log_buffer_size": [33554432], "innodb_io_capacity": [400]},
    "postgres": {"shared_buffers": [67108864], "random_page_cost": [1.1]},
}


def searching(server: Restartable, *overrides: str) -> Study:
    """Two values of each of these settings."""
    settings = "".join(f"{name} = {values}\n" for name, values in SEARCHED[server.kind].items())
    search = f"[tune]\ntrials = 4\n[tune.settings]\n{settings}"
    return parse(f'{server.study}blocks = {{ min = 2, max = 2 }}\nbudget = "60s"\n{search}', overrides)


@pytest.mark.server
def test_a_search_tries_what_only_a_start_reads_and_leaves_no_trace(server: Restartable, tmp_path: Path) -> None:
    before, (at_start, at_once) = server.settings(), SEARCHED[server.kind]
    found = loadframe.tune(searching(server), tmp_path)
    assert {each.name: each.restart for each in found.settings} == {at_start: True, at_once: False}
    tried = [trial.changes for trial in found.trials]
    assert {at_start, at_once} <= {name for changes in tried for name in changes}
    assert not any(trial.failed for trial in found.trials)
    assert server.settings() == before and durable.read() == []
    assert not list(server.config.parent.iterdir())


@pytest.mark.server
def test_with_what_a_server_does_not_come_up_the_search_goes_on(server: Restartable, tmp_path: Path) -> None:
    """Its owner's command fails as long as our file is there."""
    before, (at_start, at_once) = server.settings(), SEARCHED[server.kind]
    own = parse(server.study).target.restart
    restart = ["sh", "-c", f'test ! -e {server.config} || exit 3; exec "$@"', "sh", *own]
    found = loadframe.tune(searching(server, f"target.restart={json.dumps(restart)}"), tmp_path)
    failed = [trial for trial in found.trials if trial.failed]
    assert failed and all(at_start in trial.changes and "ended with 3" in trial.failed for trial in failed)
    assert any(trial.ratio is not None and at_once in trial.changes for trial in found.trials)
    assert server.settings() == before and durable.read() == []
    assert not list(server.config.parent.iterdir())


@pytest.mark.server
def test_a_file_that_is_not_read_is_noticed(server: Restartable, opened: Opened) -> None:
    study = parse(server.study, [f"target.config={server.config.with_suffix('.off')}"])
    with (
        pytest.raises(TargetError, match="as before its restart"),
        Bench(study, opened(study)) as bench,
    ):
        bench.declare("B", "at the start", TargetState(AT_START[server.kind]))
        bench.use("B")
    assert not list(server.config.parent.iterdir())
    server.config.write_text("")
    with pytest.raises(ChangeError, match="there already"), Bench(parse(server.study), opened(study)):
        pass
    server.config.unlink()


def test_the_file_and_the_command_belong_together() -> None:
    restarted = RESTARTED.format(config="/etc/x.cnf", restart='["true"]')
    text = somebodys.STUDY.format(kind="mariadb", address="/run/x.sock", option_file="", target=restarted)
    text += "[target.settings]\ninnodb_log_buffer_size = 33554432\n"
    check_study(parse(text))
    for wrong, words in (
        ("target.restart=[]", "belong together"),
        ("target.config=x.cnf", "no absolute path"),
        ('target.restart=["no-such-program"]', "there is no program no-such-program"),
        ("cage.open_files=100", "would end with the processes"),
    ):
        with pytest.raises(UserError, match=words):
            check_study(parse(text, [wrong]))
    with pytest.raises(StudyError, match="must be restarted"):
        check_study(parse(text.replace("config", "#").replace("restart =", "#")))
