"""The fleet file: what it declares, and what is refused before anything is sent."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from loadframe.errors import FleetError, StudyError
from loadframe.host.environment import python
from loadframe_fleet.connection import Agent, command
from loadframe_fleet.declaration import load

FLEET = """
[fleet]
name = "laboratory"
[[host]]
name = "web"
roles = ["target"]
ssh = "web.example"
address = "192.0.2.7"
authorised = true
owner = "the operators"
[[host]]
name = "here"
roles = ["driver", "observer"]
here = true
"""


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "fleet.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_hosts_have_roles_and_a_way(tmp_path: Path) -> None:
    fleet = load(written(tmp_path, FLEET))
    assert [host.name for host in fleet.with_role("driver")] == ["here"]
    assert fleet.host[0].may_change == []
    assert command(fleet.host[0], None)[-3:] == ["--", "web.example", "loadframe fleet agent"]
    assert command(fleet.host[0], Path("/etc/own"))[:3] == ["ssh", "-F", "/etc/own"]
    assert command(fleet.host[1], None) == python("loadframe_fleet.agent")


ROWS = """
[fleet]
name = "laboratory"
ssh_config = "own/ssh_config"
scheduler = "tls://192.0.2.1:8786"
tls = { ca = "ca.pem", certificate = "/etc/node.pem", key = "keys/node.key" }
[[host]]
name = "web"
roles = ["driver"]
by = ["./enter", "lab"]
authorised = true
owner = "the operators"
[[host]]
name = "shell"
roles = ["driver"]
by = ["sh", "prepared", "-c"]
authorised = true
owner = "the operators"
"""


def test_relative_paths_of_a_fleet_file_begin_in_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And what it names works there: the folder of the caller may be a stranger's."""
    inner = tmp_path / "inner"
    inner.mkdir()
    written(inner, ROWS)
    monkeypatch.chdir(tmp_path)
    fleet = load(Path("inner/fleet.toml"))
    assert fleet.fleet.ssh_config == inner / "own/ssh_config"
    assert fleet.fleet.tls is not None
    assert [*dict(fleet.fleet.tls).values()] == [inner / "ca.pem", Path("/etc/node.pem"), inner / "keys/node.key"]
    assert [host.by for host in fleet.host] == [[f"{inner}/enter", "lab"], ["sh", "prepared", "-c"]]
    assert {host.folder for host in fleet.host} == {inner}


def test_what_a_fleet_file_starts_is_found_in_its_folder_and_not_in_the_caller_s(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    row = ROWS.partition("[[host]]")[2].partition("[[host]]")[0].replace('["./enter", "lab"]', '["sh", "enter"]')
    written(inner, f'[fleet]\nname = "laboratory"\n[[host]]\n{row}')
    (inner / "enter").write_text("echo 'the right one' >&2; exit 127")
    (tmp_path / "enter").write_text(f"touch {tmp_path}/ran; exit 127")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FleetError) as error:
        Agent(load(Path("inner/fleet.toml")).host[0])
    assert "the right one" in error.value.details and not (tmp_path / "ran").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="of root")
@pytest.mark.parametrize("name", ["fleet.toml", "own/ssh_config", "keys/node.key", "ca.pem", "enter", "prepared"])
@pytest.mark.parametrize("how", ["owned", "writable", "replaceable"])
def test_root_uses_no_fleet_file_that_another_user_could_change(tmp_path: Path, name: str, how: str) -> None:
    written(tmp_path, ROWS)
    for each in ("own/ssh_config", "keys/node.key", "ca.pem", "enter", "prepared"):
        (tmp_path / each).parent.mkdir(exist_ok=True)
        (tmp_path / each).touch(mode=0o755)
    load(tmp_path / "fleet.toml")
    given = tmp_path / name
    if how == "owned":
        os.chown(given, 61000, 61000)
    else:
        (given if how == "writable" else given.parent).chmod(0o777)
    with pytest.raises(StudyError, match="says what root runs, and another user could change") as refused:
        load(tmp_path / "fleet.toml")
    assert str(given if how != "replaceable" else given.parent) in refused.value.fact


@pytest.mark.skipif(os.geteuid() != 0, reason="of root")
def test_root_starts_nothing_in_a_folder_where_others_may_put_modules_and_scripts(tmp_path: Path) -> None:
    """As in /tmp, where they may not change the fleet file itself."""
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    load(written(shared, '[fleet]\nname = "lab"\n[[host]]\nname = "here"\nroles = ["driver"]\nhere = true\n'))
    with pytest.raises(StudyError, match="could change the folder in which that works"):
        load(written(shared, FLEET))


def test_two_hosts_are_not_one_worker(tmp_path: Path) -> None:
    """It would be compared with itself, and found alike."""
    hosts = "".join(f'[[host]]\nname = "{name}"\nroles = ["trial"]\nworker = "w"\n' for name in ("one", "two"))
    with pytest.raises(StudyError, match="two hosts are the worker 'w'"):
        load(written(tmp_path, f'[fleet]\nname = "two"\n{hosts}'))


def test_two_targets_are_not_at_one_address(tmp_path: Path) -> None:
    """What is said of one of them would be recorded on the other."""
    other = FLEET.split("[[host]]")[1].replace('"web"', '"web2"').replace("web.example", "web2.example")
    with pytest.raises(StudyError, match=r"'web' and 'web2' have the address '192\.0\.2\.7'"):
        load(written(tmp_path, f"{FLEET}[[host]]{other}"))


def test_an_address_of_six_is_one(tmp_path: Path) -> None:
    text = FLEET.replace("192.0.2.7", "2001:db8::7").replace("web.example", "me@[2001:db8::7]")
    with pytest.raises(StudyError, match="without brackets"):
        load(written(tmp_path, text))
    fleet = load(written(tmp_path, text.replace("@[2001:db8::7]", "@2001:db8::7")))
    assert fleet.host[0].address == "2001:db8::7"


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("authorised = true\n", "", "'web' is not this machine, and the fleet file does not say"),
        ('owner = "the operators"', 'owner = " "', "does not say that its owner has authorised"),
        ('ssh = "web.example"', 'ssh = "-oProxyCommand=x"', "is not [USER@]HOST"),
        ('ssh = "web.example"', 'ssh = "web.example; x"', "is not [USER@]HOST"),
        ('ssh = "web.example"', "", "reached by one of here, ssh, by and worker; given: none"),
        ("here = true", 'here = true\nby = ["x"]', "given: here and by"),
        ('address = "192.0.2.7"', 'address = "-x"', "is no name or number of a host"),
        ('address = "192.0.2.7"', 'address = "0.0.0.0"', "is every address of a host"),
        ('ssh = "web.example"', 'ssh = "web.example:2222"', "has a port; ports belong into the ssh configuration"),
        ('address = "192.0.2.7"', 'address = "192.0.2.7:80"', "is no name or number of a host, without a port"),
        ('address = "192.0.2.7"', 'address = "web.example:80"', "is no name or number of a host, without a port"),
        ("here = true", 'here = true\naddress = "127.0.0.1:80"', "is no name or number of a host, without a port"),
        ('address = "192.0.2.7"', 'address = "::"', "is every address of a host"),
        ('address = "192.0.2.7"', 'adress = "192.0.2.7"', "did you mean 'address'?"),
        ('name = "here"', 'name = "web"', "two hosts are called 'web'"),
        ('roles = ["target"]', "roles = []", "host.roles"),
        ('roles = ["target"]', 'roles = ["king"]', "host.roles"),
        ('ssh = "web.example"', "here = true", "two hosts are here"),
        ('ssh = "web.example"', 'worker = "w"', 'roles = ["trial"] and worker belong together'),
        ('roles = ["target"]', 'roles = ["trial"]', 'roles = ["trial"] and worker belong together'),
        ('ssh = "web.example"', 'worker = "--w"', "is no name of a worker"),
        ('ssh = "web.example"', 'ssh = "web.example"\ncpus = "0"', "cpus are for a host with a worker"),
        ('name = "laboratory"', 'name = "laboratory"\nscheduler = "tcp://192.0.2.9:8786"', "use tls://"),
        ('name = "laboratory"', 'name = "laboratory"\nscheduler = "tcp://127.example:8786"', "use tls://"),
        ('name = "laboratory"', 'name = "laboratory"\nscheduler = "192.0.2.9:8786"', "is no address of one"),
        ('name = "laboratory"', 'name = "laboratory"\nscheduler = "tls://192.0.2.9:1"', "belong together"),
        ("authorised = true", 'authorised = true\nmay_change = ["processes"]', "Loadframe changes no process that it"),
        ("[fleet]", "[fleet", "is not valid TOML"),
    ],
)
def test_what_is_wrong_is_told(tmp_path: Path, old: str, new: str, told: str) -> None:
    assert old in FLEET
    with pytest.raises(StudyError) as error:
        load(written(tmp_path, FLEET.replace(old, new, 1)))
    assert told in error.value.fact
    assert error.value.remedy


def test_a_program_s_path_is_one_word_of_the_other_side_s_shell(tmp_path: Path) -> None:
    fleet = load(written(tmp_path, FLEET.replace("[[host]]", '[[host]]\nloadframe = "/opt/x; rm y"', 1)))
    assert command(fleet.host[0], None)[-1] == "'/opt/x; rm y' fleet agent"


def test_no_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="there is no fleet"):
        load(tmp_path / "none.toml")


WORKERS = """
[fleet]
name = "laboratory"
{scheduler}
[[host]]
name = "one"
roles = ["trial"]
worker = "one"
{consent}
"""


def test_workers_of_a_scheduler_need_the_word_of_their_owner(tmp_path: Path) -> None:
    """Those that are started here do not."""
    assert load(written(tmp_path, WORKERS.format(scheduler="", consent=""))).with_role("trial")
    there = 'scheduler = "tcp://127.0.0.1:8786"'
    with pytest.raises(StudyError, match="does not say that its owner has authorised"):
        load(written(tmp_path, WORKERS.format(scheduler=there, consent="")))
    assert load(written(tmp_path, WORKERS.format(scheduler=there, consent='authorised = true\nowner = "me"')))
