"""A fleet of namespaces, each with addresses of its own; between two of them a real SSH daemon."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import network
import pytest
from daemons import SSHD, ssh_daemon
from network import Network

import loadframe
from loadframe_fleet.connection import command
from loadframe_fleet.declaration import HostTable

LOADFRAME = str(Path(sys.executable).with_name("loadframe"))

pytestmark = pytest.mark.skipif(not network.possible(), reason="no network namespaces may be made here")

HOST = """
[[host]]
name = "{name}"
roles = ["{role}"]
address = "{address}"
loadframe = "{loadframe}"
authorised = true
owner = "this test"
{way}
"""


@pytest.fixture(scope="module")
def lan() -> Iterator[Network]:
    with Network(["coordinator", "driver", "target"]) as made:
        yield made


def row(lan: Network, name: str, role: str, way: str = "", loadframe: str = LOADFRAME) -> str:
    way = way or f"by = {json.dumps(lan.within(name))}"
    return HOST.format(name=name, role=role, address=lan.address(name), loadframe=loadframe, way=way)


def checked(lan: Network, folder: Path, *rows: str, about: str = "", code: int = 0) -> dict[str, Any]:
    file = folder / "fleet.toml"
    file.write_text(f'[fleet]\nname = "laboratory"\n{about}\n' + "".join(rows), encoding="utf-8")
    done = subprocess.run(
        [*lan.within("coordinator"), LOADFRAME, "fleet", "check", str(file), "--json"],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == code, done.stdout + done.stderr
    found = json.loads(done.stdout)
    assert isinstance(found, dict)
    return found


def agent_with(folder: Path, code: str) -> str:
    """A program that starts the agent after this Python code."""
    path = folder / "loadframe"
    main = f"{code}; from loadframe_fleet.agent import main; main()"
    path.write_text(f'#!/bin/sh\nexec {sys.executable} -P -c "{main}"\n', encoding="utf-8")
    path.chmod(0o755)
    return str(path)


@pytest.mark.long
def test_hosts_and_their_links_are_found(lan: Network, tmp_path: Path) -> None:
    found = checked(lan, tmp_path, row(lan, "driver", "driver"), row(lan, "target", "target"))
    assert (found["schema"], found["fit"]) == ("loadframe.fleet/1", True)
    (link,) = found["links"]
    assert (link["driver"], link["target"], link["why_not"]) == ("driver", "target", "")
    assert link["there_bytes_per_s"] > 1e6
    assert [each["about"] for each in found["problems"] if "one kernel" in each["fact"]] == ["driver, target"]


@pytest.mark.long
def test_a_slow_link_carries_what_it_can(lan: Network, tmp_path: Path) -> None:
    with Network(["coordinator", "driver", "target"]) as slow:
        slow.slow_down("driver", "40mbit")
        found = checked(slow, tmp_path, row(slow, "driver", "driver"), row(slow, "target", "target"))
    (link,) = found["links"]
    assert 1e6 < link["there_bytes_per_s"] < 6e6  # 40 Mbit/s are 5 MB/s
    assert link["back_bytes_per_s"] > 3 * link["there_bytes_per_s"]


@pytest.mark.long
def test_another_version_and_a_host_that_is_down_refuse(lan: Network, tmp_path: Path) -> None:
    other = tmp_path / "loadframe"
    code = (
        "import loadframe_fleet.looking as l; l.__version__ = '0.0.1'; from loadframe_fleet.agent import main; main()"
    )
    other.write_text(f'#!/bin/sh\nexec {sys.executable} -P -c "{code}"\n', encoding="utf-8")
    other.chmod(0o755)
    down = row(lan, "target", "target", 'by = ["false"]')
    differs = row(lan, "driver", "driver", loadframe=other)
    found = checked(lan, tmp_path, row(lan, "coordinator", "observer"), differs, down, code=1)
    told = [each["fact"] for each in found["problems"] if each["refuses"]]
    assert any("Loadframe is 0.0.1 there" in fact and "on this machine" in fact for fact in told)
    assert any("'target' cannot be reached" in fact for fact in told)


@pytest.mark.long
def test_other_code_of_the_same_version_refuses(lan: Network, tmp_path: Path) -> None:
    """Two checkouts: of one a file is another one."""
    there = tmp_path / "there"
    shutil.copytree(Path(loadframe.__file__).parent, there / "loadframe", ignore=shutil.ignore_patterns("__pycache__"))
    program = agent_with(tmp_path, f"import sys; sys.path.insert(0, '{there}')")
    same = checked(lan, tmp_path, row(lan, "driver", "driver", loadframe=program))
    assert same["fit"] and len(same["hosts"][0]["facts"]["code"]) == 12
    with (there / "loadframe/units.py").open("a") as file:
        file.write("\nOTHERS = 1\n")
    found = checked(lan, tmp_path, row(lan, "driver", "driver", loadframe=program), code=1)
    (told,) = [each["fact"] for each in found["problems"] if each["refuses"]]
    assert told.startswith("Loadframe has the same version there as on this machine") and told.endswith(
        "but other code"
    )


@pytest.mark.long
def test_a_clock_that_is_off_is_told_with_what_it_is_unsure_by(lan: Network, tmp_path: Path) -> None:
    late = tmp_path / "loadframe"
    code = (
        "import time; real = time.time; time.time = lambda: real() - 3; from loadframe_fleet.agent import main; main()"
    )
    late.write_text(f'#!/bin/sh\nexec {sys.executable} -P -c "{code}"\n', encoding="utf-8")
    late.chmod(0o755)
    found = checked(lan, tmp_path, row(lan, "driver", "driver", loadframe=late))
    (host,) = found["hosts"]
    assert abs(host["clock"]["offset_s"] + 3) <= host["clock"]["uncertainty_s"] + 0.05
    assert any("its wall clock is 3 s behind" in each["fact"] for each in found["problems"])


@pytest.mark.long
def test_a_name_that_the_target_has_for_itself_is_told_as_that(lan: Network, tmp_path: Path) -> None:
    hosts = tmp_path / "hosts"
    hosts.write_text("127.0.1.1 web1\n")
    own = ["unshare", "--mount", "sh", "-c", f'mount --bind {hosts} /etc/hosts && exec "$@"', "sh"]
    if subprocess.run([*own, "true"], capture_output=True, check=False).returncode:
        pytest.skip("no file may be mounted here")
    by = f"by = {json.dumps([*lan.within('target'), *own])}"
    target = HOST.format(name="target", role="target", address="web1", loadframe=LOADFRAME, way=by)
    found = checked(lan, tmp_path, row(lan, "driver", "driver"), target, code=1)
    (link,) = found["links"]
    assert "the address web1 is 127.0.1.1 on that host itself" in link["why_not"], link


@pytest.fixture
def daemon(lan: Network, tmp_path: Path) -> Iterator[Path]:
    """An SSH daemon on the host target; gives the client's configuration."""
    if SSHD is None:
        pytest.skip("no sshd is installed")
    with ssh_daemon(lan, "target", tmp_path) as config:
        yield config


@pytest.mark.long
def test_a_host_is_reached_by_the_user_s_own_ssh(lan: Network, daemon: Path, tmp_path: Path) -> None:
    target = row(lan, "target", "target", 'ssh = "laboratory-target"')
    found = checked(lan, tmp_path, row(lan, "driver", "driver"), target, about=f'ssh_config = "{daemon}"')
    assert [each["why_not"] for each in found["hosts"]] == ["", ""]
    (link,) = found["links"]
    assert link["pings"] > 0


AS_AT_A_TERMINAL = """
 ControlMaster auto
 ControlPath {folder}/shared
 ControlPersist yes
 RemoteCommand tmux new -A
 RequestTTY yes
 ForwardAgent {folder}/keys
 ForwardX11 yes
 ExitOnForwardFailure yes
 LocalForward 192.0.2.1:8080 127.0.0.1:80
"""


@pytest.mark.long
def test_what_a_user_s_own_ssh_does_at_a_terminal_it_does_not_do_for_a_fleet(
    lan: Network, daemon: Path, tmp_path: Path
) -> None:
    """It forwards nothing, and nothing of it stays."""
    daemon.write_text(daemon.read_text() + AS_AT_A_TERMINAL.format(folder=tmp_path))
    seen = tmp_path / "seen"
    program = agent_with(tmp_path, f"import os; open('{seen}', 'w').write(str(dict(os.environ)))")
    target = row(lan, "target", "driver", 'ssh = "laboratory-target"', loadframe=program)
    with begun("ssh-agent", "-D", "-a", str(tmp_path / "keys")):
        found = checked(lan, tmp_path, target, about=f'ssh_config = "{daemon}"')
    assert [each["why_not"] for each in found["hosts"]] == [""]
    assert "SSH_AUTH_SOCK" not in seen.read_text() and "DISPLAY" not in seen.read_text()
    shared = (tmp_path / "shared").exists()
    if shared:
        subprocess.run(
            [*lan.within("coordinator"), "ssh", "-F", str(daemon), "-O", "exit", "laboratory-target"], check=True
        )
    assert not shared, "a connection for others that nothing ends"


@contextmanager
def begun(*words: str) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(words, stdout=subprocess.PIPE)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


@pytest.mark.long
@pytest.mark.parametrize("of_the_user", ["", "StrictHostKeyChecking no", "StrictHostKeyChecking accept-new"])
def test_a_host_that_ssh_does_not_know_is_told_and_never_accepted(
    lan: Network, daemon: Path, tmp_path: Path, of_the_user: str
) -> None:
    """Whatever the user's own configuration says of it."""
    known = tmp_path / "known"
    known.write_text("")
    daemon.write_text(f"{daemon.read_text()} {of_the_user}\n")
    target = row(lan, "target", "target", 'ssh = "laboratory-target"')
    found = checked(lan, tmp_path, target, about=f'ssh_config = "{daemon}"', code=1)
    (host,) = found["hosts"]
    assert "cannot be reached: ssh refuses its key" in host["why_not"]
    assert f"Log in once by hand, `ssh -F {daemon} laboratory-target`" in host["why_not"]
    assert "Host key verification failed" in host["why_not"] and known.read_text() == ""


@pytest.mark.long
def test_a_host_whose_key_is_another_one_is_told(lan: Network, daemon: Path, tmp_path: Path) -> None:
    known = tmp_path / "known"
    known.write_text(f"[{lan.address('target')}]:2222 {(tmp_path / 'user.pub').read_text()}")
    target = row(lan, "target", "target", 'ssh = "laboratory-target"')
    found = checked(lan, tmp_path, target, about=f'ssh_config = "{daemon}"', code=1)
    (host,) = found["hosts"]
    assert "Go no further until the owner of laboratory-target says why its key is another one" in host["why_not"]


@pytest.mark.long
@pytest.mark.skipif(SSHD is None, reason="no sshd is installed")
def test_where_the_link_is_gone_ssh_ends_by_itself(tmp_path: Path) -> None:
    """It outlives a coordinator that was killed; TCP alone would wait for a quarter of an hour."""
    with Network(["coordinator", "target"]) as lan, ssh_daemon(lan, "target", tmp_path) as config:
        host = HostTable(name="target", roles=["target"], ssh="laboratory-target", loadframe=LOADFRAME)
        words = [*lan.within("coordinator"), *command(host, config)]
        with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as session:
            assert session.stdin is not None and session.stdout is not None
            assert session.stdout.readline(), "its agent greets"
            lan.cut("target")
            session.stdin.close()
            try:
                assert session.wait(timeout=60) == 255, "ssh has given the connection up"
            finally:
                session.kill()
