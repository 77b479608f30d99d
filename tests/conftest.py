"""What all tests share: server tests are skipped where a program is missing - or fail, where CI asks for all."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")  # how long an example takes says more about the machine than about the code

PROGRAMS = {
    "mariadbd": "mariadb-server",
    "mariadb-install-db": "mariadb-server",
    "initdb": "postgresql",
    "sysbench": "sysbench",
    "nginx": "nginx",
    "squid": "squid",
    "varnishd": "varnish",
    "wrk": "wrk",
}
POSTGRESQL = sorted(str(folder) for folder in Path("/usr/lib/postgresql").glob("*/bin"))
SYSTEM_PATH = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin", *POSTGRESQL])


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("server") is None:
        return
    packages = sorted({package for name, package in PROGRAMS.items() if not shutil.which(name, path=SYSTEM_PATH)})
    if packages and os.environ.get("LOADFRAME_REQUIRE_SERVERS"):
        pytest.fail(f"a server test would be skipped; missing Debian packages: {', '.join(packages)}")
    if packages:
        pytest.skip(f"missing Debian packages: {', '.join(packages)}")


@pytest.fixture(scope="session", autouse=True)
def _own_state() -> Iterator[None]:
    """Leases and temporary data of the tests lie apart from the user's. A server under another user must be able to
    enter, which pytest's own folders do not allow."""
    with tempfile.TemporaryDirectory(prefix="loadframe-tests-", dir="/var/tmp") as name:
        folder = Path(name)
        folder.chmod(0o755)
        for part in ("state", "scratch"):
            (folder / part).mkdir()
            (folder / part).chmod(0o755)
        before = {key: os.environ.get(key) for key in ("LOADFRAME_STATE", "LOADFRAME_SCRATCH")}
        os.environ["LOADFRAME_STATE"] = str(folder / "state")
        os.environ["LOADFRAME_SCRATCH"] = str(folder / "scratch")
        yield
        for key, value in before.items():
            if value is None:
                del os.environ[key]
            else:
                os.environ[key] = value
