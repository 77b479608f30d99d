"""What all tests share: server tests are skipped where a program is missing - or fail, where CI asks for all."""

from __future__ import annotations

import itertools
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from loadframe.model import Latency, Step

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


@pytest.fixture
def make_step() -> Callable[..., Step]:
    """Steps of a second, numbered from 1, at a level, with a throughput and some metrics; other fields by their
    names."""
    numbers = itertools.count(1)

    def make(level: float, throughput: float = 1.0, metrics: Mapping[str, float] | None = None, **others: Any) -> Step:
        plain = Step(
            number=next(numbers),
            round=1,
            block=1,
            treatment="A",
            level=level,
            started_s=0.0,
            ended_s=1.0,
            window_start_s=0.0,
            window_end_s=1.0,
            requests=int(throughput),
            errors=0,
            throughput=throughput,
            batches=(throughput,),
            latency=Latency(1.5, 1.0, 2.0, 3.0, 4.0),
            waiting_share=0.0,
            operations=(),
            metrics=metrics or {},
        )
        return replace(plain, **others)

    return make
