"""The installer of Debian packages starts none of their services, and stops none of others - also once it was killed.

Each run has an apt-get of the test's and a /usr/sbin of its own, in a mount namespace that ends with it."""

import os
import select
import signal
import subprocess
from pathlib import Path

import pytest

from loadframe.host.privilege import free_user

SCRIPT = Path(__file__).parents[2] / "scripts" / "system-packages"
MOUNTED = 'mount --bind "$1" /usr/sbin && shift && exec "$@"'
pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or subprocess.run(["unshare", "--mount", "true"], check=False).returncode != 0,
    reason="a /usr/sbin of its own takes root, and a mount namespace",
)
APT_GET = """#!/bin/sh
[ "$1" = install ] || exit 0
/usr/sbin/policy-rc.d a-service start
echo "its services: $?" >> {said}
{then}
"""


class Machine:
    """What a run sees as /usr/sbin stays from one run to the next."""

    def __init__(self, folder: Path) -> None:
        self.sbin, self._bin, self.said = folder / "sbin", folder / "bin", folder / "said"
        self.sbin.mkdir()
        self._bin.mkdir()
        self.policy = self.sbin / "policy-rc.d"

    def install(self, then: str = "") -> int:
        """The exit status of a run whose apt-get does this at its end; its apt-get has ended, too."""
        self.program("apt-get", APT_GET.format(said=self.said, then=then))
        command = ["unshare", "--mount", "bash", "-c", MOUNTED, "bash", str(self.sbin), str(SCRIPT), "no-such-package"]
        environment = {**os.environ, "PATH": f"{self._bin}:/usr/bin:/bin"}
        held, holds = os.pipe()  # apt-get has it as well, and goes on where only the script is killed
        with os.fdopen(held), subprocess.Popen(command, env=environment, pass_fds=(holds,)) as script:
            os.close(holds)
            assert select.select([held], [], [], 60)[0] == [held]
        return script.returncode

    def program(self, name: str, text: str) -> None:
        """One of its own."""
        (self._bin / name).write_text(text)
        (self._bin / name).chmod(0o755)

    def asked_by_others(self) -> int:
        """What the policy says to a package that another program installs: 0, start it; 101, do not."""
        return subprocess.run([self.policy, "another", "start"], check=False).returncode if self.policy.exists() else 0


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_services_of_its_packages_are_not_started_and_the_policy_is_removed(machine: Machine) -> None:
    assert machine.install() == 0
    assert machine.said.read_text() == "its services: 101\n"
    assert not machine.policy.exists()


def test_a_killed_installer_stops_no_service_of_later_packages_and_the_next_one_cleans_up(machine: Machine) -> None:
    asks_again = f'/usr/sbin/policy-rc.d a-service start; echo "without it: $?" >> {machine.said}'
    assert machine.install(then=f'kill -9 "$PPID"; {asks_again}') == -signal.SIGKILL
    assert machine.said.read_text() == "its services: 101\nwithout it: 101\n"
    assert machine.policy.exists(), "it was killed before its end"
    assert machine.asked_by_others() == 0
    assert machine.install() == 0
    assert not machine.policy.exists()


def test_the_policy_of_another_stays(machine: Machine) -> None:
    machine.policy.write_text("#!/bin/sh\nexit 101\n")
    machine.policy.chmod(0o755)
    assert machine.install() == 0
    assert machine.policy.read_text() == "#!/bin/sh\nexit 101\n"


def test_the_lock_of_another_user_is_not_waited_for(machine: Machine) -> None:
    """Whoever can read a file can lock it."""
    uid = free_user()
    assert uid is not None
    read, write = os.pipe()
    command = ["flock", "--close", str(SCRIPT), "sh", "-c", "echo locked; exec cat"]
    with subprocess.Popen(
        command, stdin=read, stdout=subprocess.PIPE, user=uid, group=uid, extra_groups=[], cwd="/"
    ) as holder:
        os.close(read)
        try:
            assert holder.stdout is not None and holder.stdout.readline() == b"locked\n"
            assert machine.install() == 0
        finally:
            os.close(write)


def test_a_lock_that_is_not_given_back_is_said(machine: Machine) -> None:
    machine.program("flock", f'#!/bin/sh\necho "$@" >> {machine.said}\nexit 1\n')
    assert machine.install() == 1
    assert machine.said.read_text() == "--wait 600 9\n", "and nothing was installed"
