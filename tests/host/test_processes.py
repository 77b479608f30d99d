"""A process gets what it is allowed, no more; and what the machine will not grant is said before anything runs."""

from __future__ import annotations

import contextlib
import os
import pwd
import resource
import select
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadframe.errors import CageError, MissingTool
from loadframe.host import processes
from loadframe.host.privilege import US, NamedUser, free_user
from loadframe.host.processes import Allowance, parse_cpus, spawn, unreachable

POPEN = subprocess.Popen
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can change users")


def output(program: str, allowance: Allowance, **options: object) -> str:
    command = [sys.executable, "-I", "-S", "-c", program]
    process = spawn(command, allowance, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, **options)  # type: ignore[arg-type]
    printed, _ = process.communicate(timeout=30)
    assert process.returncode == 0
    return printed.decode().strip()


@pytest.fixture
def second() -> int:
    number = free_user()
    assert number is not None
    return number


@pytest.fixture
def closed() -> Iterator[Path]:
    """A folder that only root may enter, with one in it that is open, in a place that all may enter."""
    with tempfile.TemporaryDirectory(prefix="closed-", dir="/var/tmp") as name:
        Path(name).chmod(0o755)
        made = Path(name, "closed")
        made.mkdir(mode=0o700)
        (made / "open").mkdir()
        (made / "open" / "file").write_text("root's")
        yield made


def test_limits_hold_soft_and_hard() -> None:
    program = "import resource; print(resource.getrlimit(resource.RLIMIT_NOFILE))"
    assert output(program, Allowance(US, limits={"RLIMIT_NOFILE": 321})) == "(321, 321)"


def test_the_most_open_files_that_are_promised_are_granted() -> None:
    most = processes.most_open_files()
    program = "import resource; print(resource.getrlimit(resource.RLIMIT_NOFILE)[0])"
    assert output(program, Allowance(US, limits={"RLIMIT_NOFILE": most})) == str(most)
    with pytest.raises(CageError):
        spawn(["true"], Allowance(US, limits={"RLIMIT_NOFILE": most + 1}), stdout=None, stderr=None)


def test_without_limits_our_own_are_passed_on() -> None:
    program = "import resource; print(resource.getrlimit(resource.RLIMIT_NOFILE))"
    assert output(program, Allowance(US)) == str(resource.getrlimit(resource.RLIMIT_NOFILE))


@pytest.fixture
def dumps_are_on() -> Iterator[int]:
    """The limit of ours, as high as it may be."""
    soft, hard = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))
    yield hard
    resource.setrlimit(resource.RLIMIT_CORE, (soft, hard))


def test_no_dump_of_its_memory_is_written_where_it_does_not_ask_for_one(dumps_are_on: int) -> None:
    program = "import resource; print(resource.getrlimit(resource.RLIMIT_CORE))"
    assert output(program, Allowance(US)) == str((0, dumps_are_on))
    assert output(program, Allowance(US, limits={"RLIMIT_CORE": 0})) == "(0, 0)"


def test_nor_of_a_commands_own(dumps_are_on: int) -> None:
    program = (
        "import resource; from loadframe.cli import entry;"
        "entry._run = lambda: print(resource.getrlimit(resource.RLIMIT_CORE)) or 0; entry.main()"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == f"(0, {dumps_are_on})\n"


def test_cpus_hold() -> None:
    cpu = min(os.sched_getaffinity(0))
    assert output("import os; print(os.sched_getaffinity(0))", Allowance(US, cpus=frozenset({cpu}))) == str({cpu})


def test_a_process_that_runs_is_bound_with_all_its_threads_and_what_they_start() -> None:
    """Its threads say to which CPUs they are bound once they are told to go on; one of them is born afterwards."""
    cpu = min(os.sched_getaffinity(0))
    program = (
        "import os, sys, threading\n"
        "told = threading.Event()\n"
        "def say(): told.wait(); print(sorted(os.sched_getaffinity(0)), flush=True)\n"
        "threads = [threading.Thread(target=say) for _ in range(3)]\n"
        "[thread.start() for thread in threads]\n"
        "print('ready', flush=True); sys.stdin.readline()\n"
        "late = threading.Thread(target=say); late.start(); told.set()\n"
    )
    command = [sys.executable, "-I", "-S", "-c", program]
    with spawn(
        command, Allowance(US), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        processes.bind([process.pid], frozenset({cpu}))
        printed, _ = process.communicate(b"go on\n", timeout=30)
    assert printed.decode().split("\n")[:4] == [str([cpu])] * 4
    processes.bind([process.pid], frozenset({cpu}))  # it has ended: passed over


def test_a_cpu_that_the_kernel_does_not_give_is_told() -> None:
    with spawn(["sleep", "60"], Allowance(US), stdout=None, stderr=None) as process:
        with pytest.raises(CageError, match=f"process {process.pid} cannot be bound to CPU 8000"):
            processes.bind([process.pid], frozenset({8000}))
        process.kill()


def test_it_has_a_session_of_its_own_so_that_ctrl_c_does_not_reach_it() -> None:
    assert output("import os; print(os.getsid(0) == os.getpid())", Allowance(US)) == "True"


def test_signals_that_python_ignores_are_not_ignored_in_what_it_starts() -> None:
    process = spawn(["grep", "SigIgn", "/proc/self/status"], Allowance(US), stdout=subprocess.PIPE, stderr=None)
    ignored = int(process.communicate(timeout=30)[0].split()[1], 16)
    assert not ignored & (1 << (signal.SIGPIPE - 1))


def printed_by(command: list[str], allowance: Allowance) -> str:
    process = spawn(command, allowance, stdout=subprocess.PIPE, stderr=None, cwd=Path("/"))
    printed, _ = process.communicate(timeout=30)
    assert process.returncode == 0
    return printed.decode()


@as_root
def test_root_is_given_up_for_good() -> None:
    nobody = pwd.getpwnam("nobody")
    status = printed_by(["cat", "/proc/self/status"], Allowance(NamedUser("nobody")))
    lines = {name: values.split() for name, _, values in (line.partition(":") for line in status.splitlines())}
    assert lines["Uid"] == [str(nobody.pw_uid)] * 4
    assert lines["Gid"] == [str(nobody.pw_gid)] * 4
    assert lines["Groups"] == [str(nobody.pw_gid)]
    assert int(lines["CapEff"][0], 16) == 0


@pytest.mark.skipif(free_user() is None, reason="root, and a second user")
def test_no_link_of_another_user_brings_it_into_a_folder_that_is_closed_to_it(second: int, closed: Path) -> None:
    way = closed.parent / "way"
    way.symlink_to(closed / "open")

    def said(folder: Path) -> bytes:
        allowance = Allowance(NamedUser(second))
        with spawn(["cat", "file"], allowance, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=folder) as process:
            return process.communicate()[0]

    assert said(way) == b"root's", "where root has led it"
    os.lchown(way, second, second)
    with pytest.raises(CageError, match="way on the way to it is a link of user"):
        said(way)
    (closed / "open").rename(closed.parent / "open")
    way.unlink()
    way.symlink_to(closed.parent / "open")
    os.lchown(way, second, second)
    assert said(way) == b"root's", "where it may come by itself"


@pytest.mark.skipif(free_user() is None or not processes.may_have_mounts(), reason="root, a second user and mounts")
def test_what_it_is_to_see_in_a_common_folder_is_not_looked_up_through_a_link(second: int, closed: Path) -> None:
    (closed.parent / "way").symlink_to(closed)
    os.lchown(closed.parent / "way", second, second)
    seen = str(closed.parent / "way" / "open")
    reading, writing = os.pipe()
    options = [
        "--report",
        str(writing),
        "--own",
        "/var/tmp",
        "--keep",
        seen,
        "--uid",
        str(second),
        "--gid",
        str(second),
    ]
    command = [sys.executable, "-I", "-S", str(processes.LAUNCHER), *options, "--", "cat", f"{seen}/file"]
    done = subprocess.run(command, pass_fds=[writing], capture_output=True, cwd="/", check=False)
    os.close(reading)
    os.close(writing)
    assert b"root's" not in done.stdout
    assert done.returncode != 0


@as_root
@pytest.mark.skipif(not processes.may_raise_limits(), reason="needs CAP_SYS_RESOURCE")
def test_limits_above_our_own_are_set_before_root_is_given_up() -> None:
    more = resource.getrlimit(resource.RLIMIT_NOFILE)[1] + 1
    allowance = Allowance(NamedUser("nobody"), limits={"RLIMIT_NOFILE": more})
    assert printed_by(["sh", "-c", "ulimit -n"], allowance).strip() == str(more)


OWNER = """
import os, subprocess, sys
from loadframe.host.privilege import US, NamedUser
from loadframe.host.processes import Allowance, spawn
allowance = Allowance(NamedUser(sys.argv[1]) if sys.argv[1] else US)
process = spawn(["sleep", "1000"], allowance, stdout=subprocess.DEVNULL, stderr=None)
print(process.pid, flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("user", ["", pytest.param("nobody", marks=as_root)])
def test_it_dies_with_its_parent_even_when_that_is_killed(user: str) -> None:
    owner = subprocess.Popen([sys.executable, "-c", OWNER, user], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert owner.stdin and owner.stdout
    child = os.pidfd_open(int(owner.stdout.readline()))
    owner.kill()
    owner.communicate()
    try:
        assert has_ended(child)
    finally:
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(child, signal.SIGKILL)
        os.close(child)


def has_ended(descriptor: int) -> bool:
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(30_000))


def test_ctrl_c_while_one_is_started_leaves_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the fork and the answer that it runs nobody else knows of it."""
    started: list[subprocess.Popen[bytes]] = []

    def begun(*arguments: object, **options: object) -> subprocess.Popen[bytes]:
        started.append(POPEN(*arguments, **options))  # type: ignore[call-overload]
        return started[0]

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(processes, "Process", begun)
    monkeypatch.setattr(processes.os, "fdopen", interrupted)
    with pytest.raises(KeyboardInterrupt):
        spawn(["sleep", "1000"], Allowance(US), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    assert [process.returncode for process in started] == [-signal.SIGKILL]


def test_a_command_that_is_not_there_is_named() -> None:
    with pytest.raises(MissingTool, match="no-such-program: No such file"):
        spawn(["no-such-program"], Allowance(US), stdout=None, stderr=None)


@pytest.mark.parametrize(
    ("allowance", "fact"),
    [
        (Allowance(US, limits={"RLIMIT_NOFILE": 2**40}), "above the kernel's fs.nr_open"),
        (Allowance(US, limits={"RLIMIT_NOSUCH": 1}), "not a resource limit"),
        (Allowance(US, limits={"RLIMIT_NOFILE": -5}), "-5 is not a limit"),
        (Allowance(US, cpus=frozenset({4095})), "CPU 4095; online are"),
        (Allowance(US, cpus=frozenset()), "none at all"),
        pytest.param(Allowance(NamedUser("no-such-user")), "no user 'no-such-user'", marks=as_root),
    ],
)
def test_what_the_machine_does_not_have_is_refused_with_what_to_do(allowance: Allowance, fact: str) -> None:
    with pytest.raises(CageError, match=fact) as caught:
        spawn(["true"], allowance, stdout=None, stderr=None)
    assert caught.value.remedy


def test_without_the_capability_the_hard_limit_is_the_ceiling(monkeypatch: pytest.MonkeyPatch) -> None:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    monkeypatch.setattr(processes, "may_raise_limits", lambda: False)
    assert processes.most_open_files() == hard
    with pytest.raises(CageError, match=f"above the hard limit {hard}"):
        spawn(["true"], Allowance(US, limits={"RLIMIT_NOFILE": hard + 1}), stdout=None, stderr=None)


def test_without_root_nobody_else_can_be_become(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(CageError, match="Only root"):
        spawn(["true"], Allowance(NamedUser("nobody")), stdout=None, stderr=None)


@as_root
def test_what_only_the_kernel_refuses_is_reported_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "online_cpus", lambda: frozenset(range(8192)))
    with pytest.raises(CageError, match="CPU"):
        spawn(["true"], Allowance(US, cpus=frozenset({0, 1000})), stdout=None, stderr=None)


@as_root
def test_the_folder_that_bars_the_way_is_named(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    (closed / "inside").mkdir()
    assert unreachable(closed / "inside", NamedUser("nobody")) is not None
    assert unreachable(closed / "inside", US) is None
    assert unreachable(Path("/usr/bin"), NamedUser("nobody")) is None


@pytest.mark.parametrize(("text", "cpus"), [("0", {0}), ("0-1,3", {0, 1, 3}), (" 2 - 3 , 2", {2, 3})])
def test_cpu_lists_are_read(text: str, cpus: set[int]) -> None:
    assert parse_cpus(text) == cpus


@pytest.mark.parametrize("text", ["", "a", "1-", "-1", "3-1", "0,,1", "0;1", "0-99999999999", "1.5", "²"])
def test_what_is_no_cpu_list_is_refused_with_the_text(text: str) -> None:
    with pytest.raises(CageError, match="cpus = "):
        parse_cpus(text)


@given(st.frozensets(st.integers(0, 8191), min_size=1, max_size=20))
def test_any_set_of_cpus_can_be_written_and_read(cpus: frozenset[int]) -> None:
    assert parse_cpus(",".join(map(str, cpus))) == cpus


@given(st.text(alphabet="0123456789-, x", max_size=12))
def test_any_text_is_a_set_of_cpus_or_a_clear_error(text: str) -> None:
    try:
        assert parse_cpus(text)
    except CageError as error:
        assert repr(text) in error.fact


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can start a process as another user")
def test_the_folder_that_keeps_a_user_from_a_program_is_named_through_its_links() -> None:
    """The python of a virtual environment is a link, and what it leads to was in a home that is closed to others."""
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        place.chmod(0o755)
        home, link = place / "home", place / "python"
        home.mkdir(mode=0o700)
        shutil.copy("/bin/true", home / "python")
        link.symlink_to(home / "python")
        with pytest.raises(MissingTool) as raised:
            spawn([link], Allowance(NamedUser("nobody")), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    said = f"Cannot run {link}, a link to {home / 'python'}: the user nobody may not enter {home}"
    assert said in str(raised.value)
    assert "target.user" in str(raised.value.remedy)
