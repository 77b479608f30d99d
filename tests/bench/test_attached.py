"""Somebody's server as a study's target: settings are changed while it runs and put back, data never touched."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

import foreign
import loadframe_tune
from loadframe import lab
from loadframe.bench.bench import RealBench
from loadframe.bench.checking import check_study
from loadframe.changes import lists
from loadframe.changes.journal import not_reverted, read
from loadframe.errors import ChangeError, RunError, StudyError, TargetError
from loadframe.experiments.side_by_side import state_of
from loadframe.host.privilege import CAP_SYS_NICE, holds
from loadframe.host.processes import may_raise_limits, threads
from loadframe.model import SettingValue, StepRequest, TargetState
from loadframe.runs.folder import RunFolder
from loadframe.study import Study, parse
from loadframe_tune.trials import trials_in
from waiting import await_that

Opened = Callable[[Study], RunFolder]
KINDS = (*foreign.KINDS, pytest.param("mysql", marks=pytest.mark.mysql))
CHANGES = {
    "mariadb": TargetState({"innodb_flush_log_at_trx_commit": 2, "max_connections": 77}),
    "mysql": TargetState({"innodb_flush_log_at_trx_commit": 2, "max_connections": 77}),
    "postgres": TargetState({"work_mem": 8 << 20, "synchronous_commit": "off"}),
}


@pytest.fixture(scope="module", params=KINDS)
def server(request: pytest.FixtureRequest) -> Iterator[foreign.Server]:
    with foreign.running(request.param) as running:
        yield running


def in_effect(server: foreign.Server) -> dict[str, SettingValue]:
    return server.settings(CHANGES[server.kind].settings)


@pytest.mark.long
@pytest.mark.server
def test_a_study_leaves_the_server_as_it_found_it_and_no_secret_in_the_run(
    server: foreign.Server, opened: Opened
) -> None:
    study = parse(server.study())
    check_study(study)
    before, schemas, run = in_effect(server), server.schemas(), opened(study)
    changed = CHANGES[server.kind].settings
    with RealBench(study, run) as bench:
        bench.declare("A", "as given", bench.start_state)
        bench.declare("B", "other", CHANGES[server.kind])
        for name, settings in (("A", before), ("B", changed), ("A", before), ("B", changed)):
            effective = bench.use(name)
            assert {each: effective[each] for each in settings} == settings
            assert in_effect(server) == settings
        assert bench.free_disk_bytes == math.inf, "nobody can tell where it stores"
        step = bench.take_step(StepRequest("B", 1, 1, 1))
        assert step.requests > 0
        assert server.schemas() == schemas | {"loadframe"}
        (record,) = lists.read()
        assert server.password not in str(record)
    assert in_effect(server) == before
    assert server.schemas() == schemas
    assert server.ask("SELECT id FROM theirs.precious") == [(7,)]
    assert {outcome.status for outcome in bench.put_back} == {"reverted"}
    assert lists.read() == []
    told = read(run.path)
    assert {(entry.setting, entry.after) for entry in told if entry.status == "applied"} >= set(changed.items())
    assert not any(entry.private for entry in told)
    for path in run.path.rglob("*"):
        assert path.is_dir() or server.password.encode() not in path.read_bytes(), path


RELAXED = """\
blocks = { min = 2, max = 2 }
[remedies]
durability = "relax"
"""
LADDER = """\
[[change]]
name = "fewer-flushes"
target = {{ settings = {{ {change} }} }}
[tune]
trials = 2
[tune.settings]
{searched}
"""
TO_SEARCH = {
    "mariadb": ("innodb_flush_log_at_trx_commit", "innodb_log_buffer_size", "[0, 2]", '["16M", "32M"]'),
    "mysql": ("innodb_flush_log_at_trx_commit", "innodb_write_io_threads", "[0, 2]", "[4, 8]"),
    "postgres": ("synchronous_commit", "shared_buffers", '["off"]', '["64MB", "96MB"]'),
}


@pytest.mark.long
@pytest.mark.server
def test_a_ladder_and_a_search_change_what_a_running_server_takes_and_put_it_back(
    server: foreign.Server, tmp_path: Path
) -> None:
    name, restart, values, sizes = TO_SEARCH[server.kind]
    value = CHANGES[server.kind].settings[name]
    change = f'{name} = "{value}"' if isinstance(value, str) else f"{name} = {value}"
    searched = f"{name} = {values}\n{restart} = {sizes}"
    study = parse(server.study() + RELAXED + LADDER.format(change=change, searched=searched))
    before, schemas = in_effect(server), server.schemas()
    climbed = lab.ladder(study, tmp_path)
    assert [rung.refused for rung in climbed.rungs] == [""]
    found = loadframe_tune.tune(study, tmp_path)
    assert [each.name for each in found.settings] == [name]
    assert "restart" in found.left_out[restart]
    assert any(trial.changes and not trial.failed for trial in found.trials)
    for path in (climbed.run, found.run):
        told = read(Path(path))
        assert name in {entry.setting for entry in told if entry.status == "applied"}
        assert not_reverted(told) == []
    assert (in_effect(server), server.schemas(), lists.read()) == (before, schemas, [])


@pytest.mark.parametrize("kind", [*foreign.KINDS, "mysql"])
def test_one_that_does_not_let_us_in_is_told_with_what_a_study_can_say(
    kind: str, opened: Opened, tmp_path: Path
) -> None:
    text = foreign.STUDY.format(kind=kind, address=tmp_path / "none.sock", option_file="", target="")
    study = parse(text)
    with pytest.raises(TargetError, match="Cannot attach to") as caught, RealBench(study, opened(study)):
        pass
    assert "target.option_file" in caught.value.remedy and "--" not in caught.value.remedy


OWNERS: dict[str, tuple[str, SettingValue]] = {
    "mariadb": ("thread_cache_size", 17),
    "mysql": ("thread_cache_size", 17),
    "postgres": ("work_mem", 9 << 20),
}


@pytest.mark.long
@pytest.mark.server
def test_a_search_does_not_go_on_from_a_start_that_its_owner_has_changed(
    server: foreign.Server, tmp_path: Path
) -> None:
    setting, _, values, _ = TO_SEARCH[server.kind]
    study = parse(f"{server.study()}{RELAXED}[tune.settings]\n{setting} = {values}\n")
    first = loadframe_tune.tune(study, tmp_path, trials=1)
    name, value = OWNERS[server.kind]
    with closing(server.attached()) as owner:
        before = owner.read(name)
        owner.write(name, value)
        with pytest.raises(RunError, match=rf"{name} was \d+, is {value}") as caught:
            loadframe_tune.tune(study, tmp_path, trials=2, resume=Path(first.run))
        owner.write(name, before)
    assert "without --resume" in caught.value.remedy
    assert caught.value.fact.count(" was ") == 1, "what nobody has changed is as it was"
    assert not any(run.steps() for run in map(RunFolder.open, tmp_path.iterdir()) if not trials_in(run))
    assert lists.read() == []


SLOW = {
    "mariadb": "SET GLOBAL max_connections = (SELECT 61 + SLEEP(0.5))",
    "mysql": "SET GLOBAL max_connections = (SELECT 61 + SLEEP(0.5))",
    "postgres": "CREATE SCHEMA loadframe; SELECT pg_sleep(0.5)",
}
DOING = {
    "mariadb": "SELECT 1 FROM information_schema.processlist WHERE info LIKE 'SET GLOBAL%'",
    "mysql": "SELECT 1 FROM performance_schema.processlist WHERE info LIKE 'SET GLOBAL%'",
    "postgres": "SELECT 1 FROM pg_stat_activity WHERE state = 'active' AND query LIKE 'CREATE SCHEMA%'",
}


@pytest.mark.server
def test_what_a_killed_command_has_begun_is_waited_for(server: foreign.Server) -> None:
    """Until it is over, everything reads as before."""
    place, killed = server.attached(), server.attached()
    before = in_effect(server), server.schemas()
    with ThreadPoolExecutor(1) as pool:
        begun = pool.submit(killed._control.ask, SLOW[server.kind])  # type: ignore[attr-defined]
        await_that(lambda: server.ask(DOING[server.kind]) or begun.done(), "it has begun")
        assert not begun.done()
        place.settle()
        assert (in_effect(server), server.schemas()) != before
    if server.kind in foreign.FAMILY:
        place.write("max_connections", before[0]["max_connections"])
    else:
        server.ask("DROP SCHEMA loadframe")
    for each in (place, killed):
        each.close()


AT_START = {
    "mariadb": ("innodb_log_buffer_size", 33554432),
    "mysql": ("innodb_write_io_threads", 8),
    "postgres": ("shared_buffers", 67108864),
}


@pytest.mark.server
def test_what_needs_a_restart_is_refused_before_anything_is_changed(server: foreign.Server, opened: Opened) -> None:
    name, value = AT_START[server.kind]
    with pytest.raises(StudyError, match="not Loadframe's own"):
        check_study(parse(f"{server.study()}[target.settings]\n{name} = {value}\n"))
    study, before = parse(server.study()), in_effect(server)
    with RealBench(study, opened(study)) as bench:
        bench.declare("A", "as given", bench.start_state)
        bench.declare("B", "restart", TargetState({**CHANGES[server.kind].settings, name: value}))
        bench.declare("C", "a limit", TargetState({}, {"RLIMIT_NOFILE": 4096}))
        for treatment in ("B", "C"):
            with pytest.raises(TargetError, match="restarted"):
                bench.use(treatment)
            assert in_effect(server) == before
            bench.recover("A")


@pytest.mark.server
def test_a_schema_of_theirs_stops_the_study_before_anything_is_changed(server: foreign.Server, opened: Opened) -> None:
    server.ask("CREATE SCHEMA loadframe")
    try:
        study, before = parse(server.study()), in_effect(server)
        with pytest.raises(TargetError, match="'loadframe' already"), RealBench(study, opened(study)) as bench:
            bench.declare("B", "other", CHANGES[server.kind])
            bench.use("B")
        assert "loadframe" in server.schemas()
        assert in_effect(server) == before
    finally:
        server.ask("DROP SCHEMA loadframe")


THEIRS: dict[str, SettingValue] = {"mariadb": 0, "mysql": 0, "postgres": "9MB"}
ANOTHER: dict[str, SettingValue] = {"mariadb": 1, "mysql": 1, "postgres": 7 << 20}


@pytest.mark.server
def test_who_goes_back_to_what_its_owner_has_changed_is_stopped(server: foreign.Server, opened: Opened) -> None:
    """What is measured next would not be the server as given."""
    study, name = parse(server.study()), next(iter(CHANGES[server.kind].settings))
    place, before = server.attached(), in_effect(server)
    there, theirs = place.read(name), THEIRS[server.kind]
    with pytest.raises(ChangeError, match=f"left at {theirs}"), RealBench(study, opened(study)) as bench:
        bench.declare("A", "as given", bench.start_state)
        bench.declare("B", "other", CHANGES[server.kind])
        bench.use("B")
        place.write(name, theirs)
        bench.use("A")
    assert place.read(name) == theirs
    place.write(name, there)
    place.close()
    assert (in_effect(server), lists.read()) == (before, [])


@pytest.mark.server
def test_what_its_owner_changes_meanwhile_stays(server: foreign.Server, opened: Opened) -> None:
    study, name = parse(server.study()), next(iter(CHANGES[server.kind].settings))
    theirs = THEIRS[server.kind]
    place = server.attached()
    before = place.read(name)
    with pytest.raises(ChangeError, match="another program"), RealBench(study, opened(study)) as bench:
        bench.declare("B", "other", CHANGES[server.kind])
        bench.declare("C", "another", TargetState({name: ANOTHER[server.kind]}))
        bench.use("B")
        place.write(name, theirs)
        bench.use("C")
    assert place.read(name) == theirs
    assert [outcome.setting for outcome in bench.put_back if outcome.status == "left"] == [name]
    place.write(name, before)
    place.close()


ALLOWED = sorted(os.sched_getaffinity(0))
OF_PROCESSES = """
[remedies]
allow = ["target", "process"]
[[alternative]]
name = "bound"
cage = {{ cpus = "{cpu}" }}
"""
MAY_BIND = len(ALLOWED) > 1 and (os.geteuid() != 0 or holds(CAP_SYS_NICE))
MAY_LIMIT = os.geteuid() != 0 or may_raise_limits()
"""Root's servers belong to another user."""


@pytest.mark.long
@pytest.mark.server
@pytest.mark.skipif(not MAY_BIND, reason="there is one CPU, or we may not bind to it")
def test_its_processes_are_bound_only_for_the_run(server: foreign.Server, opened: Opened) -> None:
    study = parse(server.study() + OF_PROCESSES.format(cpu=ALLOWED[0]))
    check_study(study)
    attached, run = server.attached(), opened(study)
    assert attached.listener() == attached.pids()[0]

    def now() -> set[tuple[int, ...]]:
        each = (task for pid in attached.pids() for task in threads(pid))
        return {tuple(sorted(os.sched_getaffinity(task))) for task in each}

    everywhere = {tuple(ALLOWED)}
    assert now() == everywhere
    with RealBench(study, run) as bench:
        bench.declare("A", "as given", bench.start_state)
        state, kind = state_of(bench, study.alternative[0])
        bench.declare("B", "bound", state, kind)
        for _ in range(2):
            assert bench.use("B")["cage.cpus"] == str(ALLOWED[0])
            assert now() == {(ALLOWED[0],)}
            bench.use("A")
            assert now() == everywhere
        bench.take_step(StepRequest("B", 1, 1, 1))
        assert now() == {(ALLOWED[0],)}, "of connections that the load has made, too"
    assert now() == everywhere
    assert [(outcome.setting, outcome.status) for outcome in bench.put_back if "schema" not in str(outcome)] == [
        ("cage.cpus", "reverted")
    ]
    assert lists.read() == []
    told = [entry for entry in read(run.path) if entry.layer == "process"]
    assert {entry.status for entry in told} == {"intent", "applied", "reverted"}
    assert not not_reverted(told)
    attached.close()


@pytest.mark.server
@pytest.mark.skipif(MAY_LIMIT, reason="we may change limits")
def test_what_we_may_not_change_is_known_before_anything_is_changed(server: foreign.Server, opened: Opened) -> None:
    study = parse(server.study(), ["cage.open_files=100"])
    with pytest.raises(ChangeError, match="not permitted"), RealBench(study, opened(study)) as bench:
        bench.declare("A", "as given", bench.start_state)
        bench.use("A")
    assert "loadframe" not in server.schemas()
    assert lists.read() == []


def test_processes_are_changed_only_where_the_study_allows_it() -> None:
    text = foreign.STUDY.format(kind="mariadb", address="/run/none.sock", option_file="", target="")
    with pytest.raises(StudyError, match=r"changes cage\.cpus of a running server") as caught:
        check_study(parse(text + OF_PROCESSES.format(cpu=0), ['remedies.allow=["target"]']))
    assert '"process"' in caught.value.remedy
    with pytest.raises(StudyError, match="over the network"):
        check_study(parse(text, ["target.attach=db.example:3306", "cage.open_files=100"]))
    with pytest.raises(StudyError, match="control groups"):
        check_study(parse(text, ['cage.memory="1GiB"']))
    with pytest.raises(StudyError, match="nice = 5 is for a running server"):
        check_study(parse(text.replace("attach", "#").replace("option_file", "#"), ["cage.nice=5"]))
