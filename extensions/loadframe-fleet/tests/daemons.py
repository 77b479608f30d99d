"""A real SSH daemon on a host of a test's network."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from network import Network

from waiting import await_that

SSHD = shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin")
CONFINED = Path("/run/sshd")
"""Where sshd wants to be confined before it knows who logs in."""


@contextmanager
def ssh_daemon(lan: Network, host: str, folder: Path) -> Iterator[Path]:
    """As long as it runs: the configuration with which ssh reaches it as laboratory-HOST."""
    assert SSHD is not None
    for name in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)], check=True)
    (folder / "authorized").write_text((folder / "user.pub").read_text())
    (folder / "authorized").chmod(0o600)
    (folder / "sshd").write_text(
        f"ListenAddress {lan.address(host)}:2222\nHostKey {folder}/host\n"
        f"AuthorizedKeysFile {folder}/authorized\nPasswordAuthentication no\n"
        "KbdInteractiveAuthentication no\nUsePAM no\nPidFile none\nStrictModes no\n"
        "ClientAliveInterval 2\nClientAliveCountMax 3\n"
    )
    (folder / "known").write_text(f"[{lan.address(host)}]:2222 {(folder / 'host.pub').read_text()}")
    config = folder / "config"
    config.write_text(
        f"Host laboratory-{host}\n HostName {lan.address(host)}\n Port 2222\n IdentityFile {folder}/user\n"
        f" IdentitiesOnly yes\n UserKnownHostsFile {folder}/known\n"
    )
    CONFINED.mkdir(exist_ok=True)
    words = [*lan.within(host), SSHD, "-D", "-e", "-f", str(folder / "sshd")]
    process = subprocess.Popen(words, stderr=subprocess.PIPE)
    assert process.stderr is not None
    try:
        said = process.stderr.readline
        await_that(lambda: b"Server listening" in said(), "the daemon listens", of=process, pause_s=0.0)
        yield config
    finally:
        process.terminate()
        process.wait()
        process.stderr.close()
