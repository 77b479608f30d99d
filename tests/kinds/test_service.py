"""A service of the reader's own, started privately: what its study declares is what it gets, and what it does wrong is
said."""

from __future__ import annotations

import json
import os
import pwd
import re
import shutil
import socket
import subprocess
import tempfile
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from loadframe.errors import CageError, MissingTool, StudyError, TargetError
from loadframe.host import identity, listening, privilege
from loadframe.host.leases import Lease, mark_of
from loadframe.host.processes import Resources
from loadframe.kinds import registry
from loadframe.kinds.base import Noting, Target
from loadframe.kinds.kind import KindOfTarget
from loadframe.kinds.service.read_back import Readiness
from loadframe.kinds.service.server import MOST_LOG_BYTES
from loadframe.model import TargetState
from loadframe.study import Study, validate
from loadframe.study.service_tables import ReadyTable
from waiting import await_that

from .declaring import COMMAND, GRAIN, POOL, SERVING, THREADS

pytestmark = pytest.mark.server


def study_of(target: Mapping[str, Any], **tables: Any) -> Study:
    return validate(
        {
            "study": {"name": "service", "question": "What gives?"},
            "target": {"kind": "service", **target},
            "workload": {"kind": "http"},
            "load": {"axis": "concurrency", "levels": [1, 2]},
            **tables,
        }
    )


def declared(**target: Any) -> KindOfTarget:
    return registry.of_study(study_of({"command": COMMAND, **target}))


Make = Callable[..., Target]


@pytest.fixture
def make(lease: Lease) -> Iterator[Make]:
    made: list[Target] = []

    def one(**target: Any) -> Target:
        made.append(declared(**target).make(lease, Resources()))
        made[-1].create()
        return made[-1]

    yield one
    for target in made:
        target.destroy()


def config(target: Target) -> dict[str, Any]:
    with urllib.request.urlopen(f"http://{target.endpoint().address}/config", timeout=10) as answer:
        found: dict[str, Any] = json.load(answer)
        return found


def habit(name: str, within: str = "30s") -> dict[str, Any]:
    """within: all of it passes where it is not to become ready; a busy machine may take a second to start a Python."""
    return {"command": [*COMMAND, "--habit", name], "ready": {"tcp": "127.0.0.1:{port}", "within": within}}


def left(lease: Lease) -> tuple[identity.Identity, ...]:
    """What has come from the lease and runs."""
    return identity.marked(mark_of(lease.id))


# --- settings ---


def test_a_value_that_the_service_clamps_is_configured_and_not_effective(make: Make) -> None:
    target = make(setting={"pool": POOL})
    target.start(TargetState({"pool": 32}))
    assert target.effective()["pool"] == 16
    assert config(target)["pool"] == 16
    target.apply(TargetState({"pool": 2}))
    assert target.effective()["pool"] == config(target)["pool"] == 2


def test_it_is_no_root_and_its_data_are_its_own(make: Make) -> None:
    target = make()
    target.start(TargetState())
    assert os.geteuid() != 0 or config(target)["user"] != 0
    assert (os.geteuid() == 0) == (config(target)["user"] != os.geteuid())


ROOT_ALONE = pytest.mark.skipif(os.geteuid() != 0, reason="only root starts a service as another user")


@ROOT_ALONE
def test_it_and_its_helper_run_by_a_user_whom_nothing_else_has_not_even_the_driver(make: Make, lease: Lease) -> None:
    target = make(**{"with": [{"name": "cache", "command": COMMAND}]})
    target.start(TargetState())
    users = {Path(f"/proc/{pid}").stat().st_uid for pids in target.processes().values() for pid in pids}
    assert len(users) == 1
    assert users < set(privilege.FREE) - {lease.user}
    assert config(target)["user"] in users


@ROOT_ALONE
def test_a_user_whom_the_study_names_runs_it(make: Make) -> None:
    target = make(user="nobody")
    target.start(TargetState())
    assert config(target)["user"] == pwd.getpwnam("nobody").pw_uid


@ROOT_ALONE
def test_it_is_not_started_as_root_for_want_of_a_user(lease: Lease, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(privilege, "free_user", lambda *_, **__: None)
    with pytest.raises(CageError, match="without root's rights"):
        declared().make(lease, Resources())


@ROOT_ALONE
def test_a_folder_that_its_user_may_not_enter_is_told_with_what_to_do(make: Make, tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    with pytest.raises(TargetError, match="may not enter") as told:
        make(folder=str(tmp_path), command=["python3", "serving.py", "{port}"]).start(TargetState())
    assert "target.user" in told.value.remedy


@ROOT_ALONE
def test_the_study_may_say_who_runs_it(make: Make, tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    target = make(folder=str(tmp_path), user="root")
    target.start(TargetState())
    assert config(target)["user"] == 0


@ROOT_ALONE
def test_a_user_that_is_not_there_is_said(make: Make) -> None:
    with pytest.raises(CageError, match="no user 'nosuch'"):
        make(user="nosuch")


def test_an_argument_stands_where_its_name_is_else_at_the_end(make: Make) -> None:
    target = make(setting={"threads": THREADS})
    target.start(TargetState({"threads": 7}))
    assert config(target)["threads"] == 7
    target.destroy()
    target = make(command=[*COMMAND, "--threads={threads}"], setting={"threads": {**THREADS, "name": ""}})
    target.start(TargetState({"threads": 9}))
    assert config(target)["threads"] == 9


@pytest.mark.parametrize(
    ("name", "before", "key", "after"),
    [
        ("app.ini", "; mine\n[pool]\nsize = 4 \nother=1\n", "pool.size", "; mine\n[pool]\nsize = 9\nother=1\n"),
        ("app.properties", "# mine\npool.size=4\n", "pool.size", "# mine\npool.size=9\n"),
        ("app.json", '{"pool": {"size": 4}}', "pool.size", '{\n  "pool": {\n    "size": 9\n  }\n}\n'),
        ("app.toml", "# mine\n[pool]\nsize = 4 # four\n", "pool.size", "# mine\n[pool]\nsize = 9 # four\n"),
        ("app.yaml", "# mine\npool:\n  size: 4 # four\n", "pool.size", "# mine\npool:\n  size: 9 # four\n"),
        ("app.txt", "size is {pool}, {other}\n", "", "size is 9, {other}\n"),
    ],
)
def test_a_key_of_a_file_is_set_in_a_private_copy(
    make: Make, open_folder: Path, name: str, before: str, key: str, after: str
) -> None:
    file = open_folder / name
    file.write_text(before, encoding="utf-8")
    pool = {"from": 1, "to": 64, "apply": "file", "file": str(file), "key": key}
    target = make(command=[*COMMAND, "--config", "{pool_file}"], setting={"pool": pool})
    target.start(TargetState({"pool": 9}))
    assert config(target)["file"] == after
    assert file.read_text(encoding="utf-8") == before
    target.apply(TargetState({}))
    assert config(target)["file"] == before or not key


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """One that the service's user may read: pytest's own is closed to others."""
    folder = Path(tempfile.mkdtemp(prefix="lf-", dir="/var/tmp"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may read what the service's user may not")
def test_a_file_that_the_user_of_the_service_may_not_read_is_not_copied_for_it(make: Make, open_folder: Path) -> None:
    secret = open_folder / "secret.json"
    secret.write_text("{}", encoding="utf-8")
    secret.chmod(0o600)
    pool = {"from": 1, "to": 64, "apply": "file", "file": str(secret), "key": "pool"}
    with pytest.raises(TargetError, match="cannot be read by the user"):
        make(setting={"pool": pool})


def test_a_command_changes_what_runs_and_is_run_again_after_a_start(make: Make) -> None:
    tell = "import sys, urllib.request; urllib.request.urlopen(sys.argv[1], timeout=10).read()"
    grain = {
        "values": [1, 2, 3],
        "apply": "command",
        "command": ["python3", "-c", tell, "http://127.0.0.1:{port}/set/grain={value}"],
        "read_back": {"json": "http://127.0.0.1:{port}/config", "field": "grain"},
    }
    target = make(setting={"grain": grain, "pool": POOL})
    target.start(TargetState({"grain": 1, "pool": 2}))
    first = target.pids()[0]
    target.apply(TargetState({"grain": 3, "pool": 2}))
    assert (target.effective()["grain"], target.pids()[0]) == (3, first)
    target.apply(TargetState({"grain": 3, "pool": 4}))
    assert target.effective()["grain"] == 3
    assert target.pids()[0] != first


def test_a_value_is_read_back_by_a_command_and_from_a_file(make: Make, open_folder: Path) -> None:
    said = {"values": [1, 2], "apply": "environment", "read_back": {"command": ["sh", "-c", "echo 2"]}}
    target = make(setting={"said": said})
    target.start(TargetState({"said": 1}))
    assert target.effective()["said"] == 2
    target.destroy()
    file = open_folder / "used.now"
    file.write_text('{"pool": {"size": 7}}', encoding="utf-8")
    used = {"from": 1, "to": 9, "apply": "environment", "read_back": {"file": str(file), "key": "pool.size"}}
    target = make(setting={"used": used})
    with pytest.raises(TargetError, match=r"what format used\.now has is not known; give `format`"):
        target.start(TargetState({"used": 1}))
    target.destroy()
    used["read_back"] = {"file": str(file), "key": "pool.size", "format": "json"}
    target = make(setting={"used": used})
    target.start(TargetState({"used": 1}))
    assert target.effective()["used"] == 7


@pytest.mark.parametrize(
    ("where", "why"),
    [
        ({"json": "http://127.0.0.1:{port}/broken", "field": "pool"}, "/broken answers with status 503"),
        ({"json": "http://127.0.0.1:{port}/any", "field": "pool"}, "/any answers with what is no JSON"),
        ({"json": "http://127.0.0.1:9/config", "field": "pool"}, "gave no answer .*refused"),
        ({"command": ["false"]}, "`false` ended with exit status 1"),
        ({"command": ["sh", "-c", "kill -9 $$"]}, "was killed .signal 9"),
        ({"command": ["printf", "4\nhello"]}, "printed '4.nhello'"),
    ],
)
def test_what_cannot_be_read_back_is_told_with_its_setting(where: dict[str, Any], why: str, make: Make) -> None:
    target = make(setting={"pool": {**POOL, "read_back": where}})
    with pytest.raises(TargetError, match=rf"^target\.setting\.pool\.read_back: .*{why}") as caught:
        target.start(TargetState({"pool": 4}))
    assert "orrect" in caught.value.remedy and "last lines" not in caught.value.remedy


def test_a_program_that_is_not_there_is_told_with_its_setting(make: Make) -> None:
    target = make(setting={"pool": {**POOL, "read_back": {"command": ["no-such-program"]}}})
    with pytest.raises(MissingTool, match=r"^target\.setting\.pool\.read_back: .*no-such-program"):
        target.start(TargetState({"pool": 4}))


def test_what_is_not_read_back_is_said() -> None:
    row = declared(settings={"pool": 4, "threads": 2}, setting={"pool": POOL, "threads": {**POOL, "read_back": None}})
    assert [note for note in row.notes if "threads" in note and "pool" not in note]


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ({"command": []}, "no target.command"),
        ({"command": [*COMMAND, "{prot}"]}, "{prot} is not known"),
        ({"setting": {"port": POOL}}, "meaning of its own"),
        ({"setting": {"pool": {**POOL, "name": "LD_PRELOAD"}}}, "not passed on"),
        ({"settings": {"pol": 3}, "setting": {"pool": POOL}}, "no such setting"),
        ({"settings": {"pool": 5}, "setting": {"pool": POOL}}, "does not accept"),
        ({"paths": "about"}, "is not a path"),
        ({"command": ["app"]}, "says at which port"),
        ({"ready": {"http": "https://127.0.0.1:{port}/"}}, r"target.ready: 'https://127.0.0.1:{port}/' is not http://"),
        ({"ready": {"http": "127.0.0.1:{port}"}}, r"target.ready: '127.0.0.1:{port}' is not http://HOST:PORT/PATH"),
        ({"ready": {"tcp": "127.0.0.1"}}, "target.ready: '127.0.0.1' is not HOST:PORT"),
        ({"setting": {"pool": {**POOL, "read_back": {"json": "/config", "field": "pool"}}}}, "read_back: '/config' is"),
        ({"pass_environment": ["LD_PRELOAD"]}, "not passed on"),
        ({"pass_environment": ["A B"]}, "no name of an environment variable"),
    ],
)
def test_what_does_not_fit_together_is_refused(target: dict[str, Any], said: str) -> None:
    with pytest.raises(StudyError, match=said):
        registry.canonical(study_of({"command": COMMAND, **target}))


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"values": []}, "either"),
        ({"from": 1, "to": 2}, "either"),
        ({"restart": False}, "takes a restart"),
        ({"file": "a"}, "belongs to"),
        ({"read_back": {"json": "http://x/"}}, "takes `field`"),
        ({"read_back": {"json": "http://x/", "field": "a", "format": "toml"}}, "`format` is of a file"),
        ({"read_back": {"json": "http://x/", "field": "a..b"}}, "'a..b' has an empty part; put one dot"),
        ({"apply": "file", "name": "", "file": "a", "key": "b", "format": "template"}, "a template has {NAME}"),
    ],
)
def test_a_setting_that_cannot_be_is_refused(table: dict[str, Any], said: str) -> None:
    with pytest.raises(StudyError, match=said):
        study_of({"command": COMMAND, "setting": {"pool": {**POOL, **table}}})


def test_numbers_beside_words_are_words_and_are_taken_as_they_are_declared() -> None:
    for value, values in ((4, ["auto", 4, 8]), (4, [4, "auto"]), (True, [True, "auto"]), ("auto", ["auto", 4])):
        study = study_of(
            {"command": COMMAND, "settings": {"pool": value}, "setting": {"pool": {**POOL, "values": values}}}
        )
        row = registry.of_study(study)
        taken = row.check_settings(study.target.settings)["pool"]
        assert taken in row.knobs[0].values and str(taken) == str(value).replace("T", "t")
    assert registry.of_study(study).knobs[0].above("auto") == ("4",)


def test_a_setting_has_a_name_that_stands_in_braces() -> None:
    with pytest.raises(StudyError, match="'Pool' is no name of a setting"):
        study_of({"command": COMMAND, "setting": {"Pool": POOL}})


def test_the_keys_of_a_service_are_refused_for_another_kind() -> None:
    with pytest.raises(StudyError, match=r"target.command is for a target of kind service"):
        registry.of_study(study_of({"kind": "sqlite", "command": ["app"]}))


def test_a_run_folder_says_what_was_declared_without_the_program() -> None:
    study = study_of({"command": ["/gone/app", "{port}"], "settings": {"pool": 4}, "setting": {"pool": POOL}})
    again = validate(study.resolved())
    assert again.target.setting == study.target.setting
    row = registry.of_study(again)
    spec = row.setting("pool")
    assert spec is not None and spec.choices == (2, 4, 32)
    assert [knob.name for knob in row.knobs] == ["pool"]


@ROOT_ALONE
def test_what_a_service_puts_beside_its_settings_file_is_not_written_through(make: Make, tmp_path: Path) -> None:
    """A link at the name under which the next version was written overwrote a file of root's and made it readable."""
    victim = tmp_path / "victim"
    victim.write_text("root's")
    victim.chmod(0o600)
    plant = 'ln -sf "$1" "$2.next"; shift 2; exec "$@"'
    command = ["sh", "-c", plant, "sh", str(victim), "{file}", *COMMAND, "--config", "{file}"]
    target = make(command=command, setting={"grain": GRAIN})
    target.start(TargetState({"grain": 1}))
    target.apply(TargetState({"grain": 3}))
    assert target.effective()["grain"] == 3
    assert (victim.read_text(), victim.stat().st_mode & 0o777) == ("root's", 0o600)


# --- bad habits ---


def test_it_gets_of_our_environment_what_is_named(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DATABASE_PASSWORD", "AWS_SECRET_ACCESS_KEY", "JAVA_HOME"):
        monkeypatch.setenv(name, f"/{name}")
    target = make(pass_environment=["DATABASE_PASSWORD"])
    target.start(TargetState())
    service = target.processes()["target"][0]
    names = {one.partition(b"=")[0].decode() for one in Path(f"/proc/{service}/environ").read_bytes().split(b"\0")}
    assert {"PATH", "JAVA_HOME", "DATABASE_PASSWORD"} <= names
    assert "AWS_SECRET_ACCESS_KEY" not in names
    assert "PYTEST_CURRENT_TEST" not in names, "pytest sets it, and no service has any use for it"


def test_a_variable_that_is_not_set_is_told(make: Make) -> None:
    target = make(pass_environment=["NO_SUCH_VARIABLE"])
    with pytest.raises(TargetError, match=r"pass_environment: NO_SUCH_VARIABLE is not set"):
        target.start(TargetState())


def test_one_that_lacks_a_variable_of_ours_is_told_which(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgres://me:secret@elsewhere/shop")
    code = "import os; os.environ['DATABASE_URL']"
    with pytest.raises(TargetError, match="names DATABASE_URL, which is set here") as told:
        make(command=["python3", "-c", code, "{port}"]).start(TargetState())
    assert 'target.pass_environment = ["DATABASE_URL"]' in told.value.remedy


def test_one_that_ends_at_once_is_told_with_its_last_words(make: Make) -> None:
    with pytest.raises(TargetError, match=r"would not start .exit status 3") as caught:
        make(**habit("exits")).start(TargetState())
    assert "no database at db:5432" in caught.value.details


def test_a_command_that_ends_by_itself_is_told_what_a_service_does(make: Make) -> None:
    with pytest.raises(TargetError, match=r"has ended by itself .exit status 0., and nothing of it goes on") as caught:
        make(command=["sh", "-c", "echo configured {port}"]).start(TargetState())
    assert "stays and serves" in caught.value.remedy and "configured" in caught.value.details


def test_one_that_goes_to_the_background_is_told_and_ended(make: Make, lease: Lease) -> None:
    with pytest.raises(TargetError, match="processes go on") as caught:
        make(**habit("background")).start(TargetState())
    assert "foreground" in caught.value.remedy
    assert left(lease) == ()


@pytest.mark.long
def test_one_that_is_never_ready_is_told_and_ended(make: Make, lease: Lease) -> None:
    with pytest.raises(TargetError, match=r"not ready after 4 s.*it listens on no port") as caught:
        make(**habit("never-ready", "4s")).start(TargetState())
    assert "waiting for a lock" in caught.value.details
    assert left(lease) == ()


@pytest.mark.parametrize(
    ("ready", "said"),
    [
        (
            {"http": "http://127.0.0.1:{port}/broken/{pool}"},
            r"http://127\.0\.0\.1:PORT/broken/7 answers with status 503;",
        ),
        ({"http": "http://127.0.0.1:1/{port}"}, r"http://127\.0\.0\.1:1/PORT gave no answer \(.*refused"),
        ({"tcp": "127.0.0.1:1"}, r"127\.0\.0\.1:1 accepts no connection;"),
        ({"command": ["test", "-e", "{data}/{port}"]}, r"`test -e /[^{}]*/PORT` ended with exit status 1;"),
        ({"log": "ready on {port}"}, r"no line of its output has the words 'ready on PORT';"),
    ],
    ids=["status", "refused", "closed", "command", "log"],
)
def test_what_a_readiness_lacks_is_told_without_braces(make: Make, ready: dict[str, Any], said: str) -> None:
    """Of one that serves already: how long it takes to start is another matter."""
    state = TargetState({"pool": 7})
    target: Any = make(setting={"pool": {"values": [7], "apply": "environment"}})
    target.start(state)
    table, run = ReadyTable.model_validate(ready), lambda command: subprocess.run(command, check=False).returncode
    target.readiness = readiness = Readiness(table, target.values(state), target.log, run)
    assert not readiness.look()
    told = target.late(1.0)
    assert re.search(said.replace("PORT", str(target.port)), told.fact), told.fact
    assert told.fact.endswith(f"; port {target.port} accepts connections")
    assert "{" not in told.fact + told.details


def test_a_log_tells_the_port_that_it_was_given(make: Make) -> None:
    target = make(ready={"log": "listening on {port}", "within": "10s"})
    target.start(TargetState())
    assert target.healthy()


@pytest.mark.long
def test_one_that_listens_on_another_port_is_told_which(make: Make, lease: Lease) -> None:
    with pytest.raises(TargetError, match=r"listens on port \d+, and was given \d+") as caught:
        make(**habit("elsewhere", "4s")).start(TargetState())
    assert "{port}" in caught.value.remedy
    assert left(lease) == ()


def test_what_it_logs_does_not_fill_the_disk(make: Make, lease: Lease) -> None:
    target = make(**habit("logs"))
    target.start(TargetState())
    log = next(lease.folder.glob("*/error.log"))
    await_that(lambda: log.stat().st_size > MOST_LOG_BYTES, "a log that is too large")
    assert target.pids()

    def is_cut() -> bool:
        target.counters()
        return log.stat().st_size < MOST_LOG_BYTES

    await_that(is_cut, "a log that was cut")  # it goes on writing meanwhile
    assert len(target.log_tail()) <= 1 << 16


def test_one_that_ignores_its_end_is_killed(make: Make, lease: Lease) -> None:
    target = make(**habit("stubborn"), stop_within="0.2s")
    target.start(TargetState())
    target.stop()
    assert target.pids() == ()
    assert left(lease) == ()
    assert isinstance(target, Noting)
    assert [note for note in target.notes() if "did not end within 0.2 s" in note]


def test_one_that_becomes_another_program_is_followed(make: Make) -> None:
    target = make(**habit("again"))
    target.start(TargetState())
    assert len(target.pids()) == 1
    assert config(target)["pool"] == 4


def test_workers_of_a_supervisor_are_found_as_they_come_and_go(make: Make, lease: Lease) -> None:
    target = make(**habit("supervisor"))
    target.start(TargetState())
    first, worker = target.pids()
    os.kill(worker, 9)
    await_that(lambda: target.pids()[1:] not in ((), (worker,)), "another worker")
    assert target.pids()[0] == first
    target.stop()
    assert left(lease) == ()


def test_one_that_takes_a_port_of_its_own_is_started_where_that_is_free(make: Make) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    command = ["python3", str(SERVING), "--port", str(port)]
    target = make(command=command, listen=port)
    target.start(TargetState())
    assert target.endpoint().address == f"127.0.0.1:{port}"
    with Lease.acquire("a second one") as lease, pytest.raises(TargetError, match=f"Port {port} cannot be used"):
        second = declared(command=command, listen=port).make(lease, Resources())
        second.create()
        second.start(TargetState())


def test_one_that_dies_is_told_by_whatever_is_asked_next(make: Make) -> None:
    target = make()
    target.start(TargetState())
    os.kill(target.pids()[0], 9)
    await_that(lambda: not target.pids(), "it has ended")
    with pytest.raises(TargetError, match=r"died .SIGKILL"):
        target.counters()


def test_a_program_that_is_not_there_is_said(make: Make) -> None:
    with pytest.raises(MissingTool, match="Cannot run"):
        make(command=["/gone/app", "{port}"]).start(TargetState())


def test_a_readiness_by_its_log_and_by_a_command(make: Make) -> None:
    target = make(ready={"log": "listening on", "within": "10s"})
    target.start(TargetState())
    target.stop()
    target.start(TargetState())
    assert target.healthy()
    target.destroy()
    target = make(ready={"command": ["test", "-d", "{data}"], "within": "10s"})
    target.start(TargetState())
    assert target.healthy()


def test_a_readiness_command_has_no_more_than_the_time_of_the_readiness(make: Make, lease: Lease) -> None:
    """It would be ready 3 s later, and no command that is still asked for is left running."""
    target = make(ready={"command": ["sh", "-c", "sleep 3"], "within": "300ms"})
    with pytest.raises(TargetError, match=r"not ready after 0\.3 s: `sh -c sleep 3` has not ended with 0;"):
        target.start(TargetState())
    assert left(lease) == ()


def test_what_a_command_that_reads_a_value_back_leaves_behind_ends_with_the_service(make: Make, lease: Lease) -> None:
    said = {"values": [1, 2], "apply": "environment", "read_back": {"command": ["sh", "-c", "sleep 20 & echo 2"]}}
    target = make(setting={"said": said})
    target.start(TargetState({"said": 1}))
    assert target.effective()["said"] == 2
    target.destroy()
    lease.release()
    assert left(lease) == ()


# --- helpers ---

DATABASE = {"name": "database", "command": COMMAND}


def test_a_helper_begins_before_the_service_and_ends_after_it(make: Make, lease: Lease) -> None:
    target = make(environment={"DATABASE": "127.0.0.1:{database_port}"}, **{"with": [DATABASE]})
    target.start(TargetState())
    processes = target.processes()
    assert list(processes) == ["target", "database"]
    assert len(processes["database"]) == 1
    service, (helper,) = processes["target"][0], processes["database"]
    assert f"DATABASE=127.0.0.1:{port_of(helper)}".encode() in Path(f"/proc/{service}/environ").read_bytes()
    target.stop()
    assert target.processes() == {"target": (), "database": (helper,)}
    target.start(TargetState())
    assert target.processes()["database"] == (helper,), "its data stay"
    target.destroy()
    assert left(lease) == ()


def test_a_setting_in_the_command_of_a_helper_starts_that_again(make: Make, lease: Lease) -> None:
    helper = {**DATABASE, "command": [*COMMAND, "--threads={threads}"]}
    target = make(setting={"threads": {**THREADS, "read_back": None}}, **{"with": [helper]})
    target.start(TargetState({"threads": 7}))

    def threads_of_helper() -> Any:
        (pid,) = target.processes()["database"]
        with urllib.request.urlopen(f"http://127.0.0.1:{port_of(pid)}/config", timeout=10) as answer:
            return json.load(answer)["threads"]

    first = target.processes()["database"]
    assert threads_of_helper() == 7
    assert config(target)["threads"] != 7, "the command of the service has no place for it, and gets none"
    target.stop()
    target.start(TargetState({"threads": 9}))
    assert threads_of_helper() == 9 and target.processes()["database"] != first
    target.destroy()
    assert left(lease) == ()


def test_what_stands_in_braces_of_a_helper_must_be_known() -> None:
    with pytest.raises(StudyError, match=r"target.with.database: \{desks\} is not known"):
        registry.canonical(study_of({"command": COMMAND, "with": [{**DATABASE, "command": [*COMMAND, "{desks}"]}]}))


def port_of(pid: int) -> int:
    (port,) = listening.ports_of([pid])
    return port


def test_a_helper_that_dies_is_told(make: Make) -> None:
    target = make(**{"with": [DATABASE]})
    target.start(TargetState())
    os.kill(target.processes()["database"][0], 9)
    await_that(lambda: not target.processes()["database"], "the helper has ended")
    with pytest.raises(TargetError, match="The helper database died"):
        target.counters()


def test_a_helper_that_does_not_start_keeps_the_service_from_its_start(make: Make, lease: Lease) -> None:
    target = make(**{"with": [{**DATABASE, **habit("exits")}]})
    with pytest.raises(TargetError, match="The helper database would not start"):
        target.start(TargetState())
    target.destroy()
    assert left(lease) == ()


@pytest.mark.parametrize(
    ("helper", "said"),
    [
        ({**DATABASE, "name": "target"}, "names no other component"),
        ({"name": "database"}, "takes either"),
    ],
)
def test_a_helper_has_a_name_of_its_own_and_is_one(helper: dict[str, Any], said: str) -> None:
    with pytest.raises(StudyError, match=said):
        study_of({"command": COMMAND, "with": [helper]})
