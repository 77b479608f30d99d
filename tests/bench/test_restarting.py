"""Somebody's server that is restarted for a study with a file of ours, and without it again at the end."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import foreign
import loadframe_tune
from foreign import Restartable
from loadframe.bench.bench import RealBench
from loadframe.bench.checking import check_study
from loadframe.changes import lists
from loadframe.errors import ChangeError, StudyError, TargetError, UserError
from loadframe.host.leases import folder_of_leases
from loadframe.model import SettingValue, StepRequest, TargetState
from loadframe.runs.folder import RunFolder
from loadframe.study import Study, parse

Opened = Callable[[Study], RunFolder]
AT_START: dict[str, dict[str, SettingValue]] = {
    "mariadb": {"innodb_log_buffer_size": 33554432},
    "mysql": {"innodb_write_io_threads": 8},
    "postgres": {"shared_buffers": 67108864},
}
AT_ONCE: dict[str, dict[str, SettingValue]] = {
    "mariadb": {"max_connections": 77},
    "mysql": {"max_connections": 77},
    "postgres": {"work_mem": 8 << 20},
}


def settings(server: Restartable) -> dict[str, SettingValue]:
    return server.server.settings((*AT_START[server.kind], *AT_ONCE[server.kind]))


@pytest.fixture(scope="module", params=[*foreign.KINDS, pytest.param("mysql", marks=pytest.mark.mysql)])
def server(request: pytest.FixtureRequest) -> Iterator[Restartable]:
    with foreign.restartable(request.param) as theirs:
        yield theirs


@pytest.mark.long
@pytest.mark.server
def test_what_only_a_start_reads_is_there_for_the_run_alone(server: Restartable, opened: Opened) -> None:
    study = parse(server.study())
    check_study(study)
    before, at_start, at_once = settings(server), AT_START[server.kind], AT_ONCE[server.kind]
    with RealBench(study, opened(study)) as bench:
        bench.declare("A", "as given", bench.start_state)
        bench.declare("B", "at the start", TargetState(at_start))
        bench.declare("C", "both", TargetState({**at_start, **at_once}))
        bench.declare("D", "at once", TargetState(at_once))
        states = {"A": before, "B": {**before, **at_start}, "C": {**at_start, **at_once}, "D": {**before, **at_once}}
        for name in "ABCDCA":
            bench.use(name)
            assert settings(server) == states[name], name
            assert server.config.exists() is (name in "BC")
        assert bench.take_step(StepRequest("C", 1, 1, 1)).requests > 0
    assert settings(server) == before
    assert not list(server.config.parent.iterdir())
    assert {outcome.status for outcome in bench.put_back} == {"reverted"}
    assert lists.read() == []


KILLED = """
import os, signal, sys
from pathlib import Path
from loadframe.bench.bench import RealBench
from loadframe.model import TargetState
from loadframe.runs.folder import RunFolder
from loadframe.study import load
study = load(Path(sys.argv[1]))
run = RunFolder.create(Path(sys.argv[2]), "killed")
with RealBench(study, run) as bench:
    bench.declare("A", "as given", bench.start_state)
    bench.use("A")
    os.kill(os.getpid(), signal.SIGKILL)
"""
NEXT = """
import loadframe
loadframe.sweep_leftovers()
print(*(outcome.status for outcome in loadframe.revert_changes()))
"""
"""What every command does that measures."""


@pytest.mark.long
@pytest.mark.server
def test_after_a_kill_the_next_command_restarts_it_as_it_was(server: Restartable, tmp_path: Path) -> None:
    before, lines = settings(server), {**AT_START[server.kind], **AT_ONCE[server.kind]}
    table = "".join(f"{name} = {value}\n" for name, value in lines.items())
    (tmp_path / "study.toml").write_text(f"{server.study()}[target.settings]\n{table}")
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(tmp_path / "study.toml"), str(tmp_path)], capture_output=True, text=True
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert settings(server) == lines
    leases = [json.loads(each.read_text()) for each in folder_of_leases().glob("*.json")]
    driven = [Path(group) for lease in leases for group in lease["groups"] if group.endswith("-driver")]
    assert driven
    done = subprocess.run([sys.executable, "-c", NEXT], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) == {"reverted"}
    assert settings(server) == before
    assert lists.read() == []
    assert not list(server.config.parent.iterdir())
    assert not any(group.exists() for group in driven), "the driver's control groups are gone"


SEARCHED: dict[str, dict[str, list[SettingValue]]] = {
    "mariadb": {"innodb_log_buffer_size": [33554432], "innodb_io_capacity": [400]},
    "mysql": {"innodb_write_io_threads": [8], "innodb_io_capacity": [400]},
    "postgres": {"shared_buffers": [67108864], "random_page_cost": [1.1]},
}


def searching(server: Restartable, *overrides: str) -> Study:
    """Two values of each of these settings."""
    settings = "".join(f"{name} = {values}\n" for name, values in SEARCHED[server.kind].items())
    search = f"[tune]\ntrials = 4\n[tune.settings]\n{settings}"
    return parse(f'{server.study()}blocks = {{ min = 2, max = 2 }}\nbudget = "60s"\n{search}', overrides)


@pytest.mark.long
@pytest.mark.server
def test_a_search_tries_what_only_a_start_reads_and_leaves_no_trace(server: Restartable, tmp_path: Path) -> None:
    before, (at_start, at_once) = settings(server), SEARCHED[server.kind]
    found = loadframe_tune.tune(searching(server), tmp_path)
    assert {each.name: each.restart for each in found.settings} == {at_start: True, at_once: False}
    tried = [trial.changes for trial in found.trials]
    assert {at_start, at_once} <= {name for changes in tried for name in changes}
    assert not any(trial.failed for trial in found.trials)
    assert settings(server) == before and lists.read() == []
    assert not list(server.config.parent.iterdir())


@pytest.mark.long
@pytest.mark.server
@pytest.mark.parametrize("server", ["mariadb"], indirect=True)
def test_with_what_a_server_does_not_come_up_the_search_goes_on(server: Restartable, tmp_path: Path) -> None:
    """Its owner's command fails as long as our file is there, whatever kind of server it restarts."""
    before, (at_start, at_once) = settings(server), SEARCHED[server.kind]
    own = parse(server.study()).target.restart
    restart = ["sh", "-c", f'test ! -e {server.config} || exit 3; exec "$@"', "sh", *own]
    found = loadframe_tune.tune(searching(server, f"target.restart={json.dumps(restart)}"), tmp_path)
    failed = [trial for trial in found.trials if trial.failed]
    assert failed and all(at_start in trial.changes and "ended with 3" in trial.failed for trial in failed)
    assert any(trial.ratio is not None and at_once in trial.changes for trial in found.trials)
    assert settings(server) == before and lists.read() == []
    assert not list(server.config.parent.iterdir())


@pytest.mark.long
@pytest.mark.server
def test_a_file_that_is_not_read_is_noticed(server: Restartable, opened: Opened) -> None:
    study = parse(server.study(), [f"target.config={server.config.with_suffix('.off')}"])
    with (
        pytest.raises(TargetError, match="as before its restart"),
        RealBench(study, opened(study)) as bench,
    ):
        bench.declare("B", "at the start", TargetState(AT_START[server.kind]))
        bench.use("B")
    assert not list(server.config.parent.iterdir())
    server.config.write_text("")
    with pytest.raises(ChangeError, match="there already"), RealBench(parse(server.study()), opened(study)):
        pass
    server.config.unlink()


def test_the_file_and_the_command_belong_together() -> None:
    restarted = foreign.RESTARTED.format(config="/etc/x.cnf", restart='["true"]')
    text = foreign.STUDY.format(kind="mariadb", address="/run/x.sock", option_file="", target=restarted)
    text += "[target.settings]\ninnodb_log_buffer_size = 33554432\n"
    check_study(parse(text))
    for wrong, words in (
        ("target.restart=[]", "belong together"),
        ("target.config=x.cnf", "not an absolute path"),
        ('target.restart=["no-such-program"]', "there is no program no-such-program"),
        ("cage.open_files=100", "would end with the processes"),
    ):
        with pytest.raises(UserError, match=words):
            check_study(parse(text, [wrong]))
    with pytest.raises(StudyError, match="must be restarted"):
        check_study(parse(text.replace("config", "#").replace("restart =", "#")))
