"""Counters that a real service exposes are in its steps and in the ledger, and a source that fails is named."""

from __future__ import annotations

import shutil
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars
import prometheus_client
import pytest

from loadframe import lab
from loadframe.ledger.reading import read_limits
from loadframe.ledger.rules import rules_for
from loadframe.runs.folder import RunFolder
from loadframe.study import Study, validate

SERVICE = Path(__file__).parents[1] / "kinds" / "exposing.py"


@pytest.fixture
def command(own_state: Path) -> Iterator[list[str]]:
    """The service, with what it exposes by, where every user can read it."""
    folder = own_state.parent / "exposing"
    shutil.copytree(Path(prometheus_client.__file__).parent, folder / "prometheus_client")
    shutil.copy(SERVICE, folder)
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    yield ["python3", str(folder / SERVICE.name), "{pool}", "{port}"]
    shutil.rmtree(folder)


@contextmanager
def silent() -> Iterator[int]:
    """A port that accepts connections and never says anything."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        held: list[socket.socket] = []

        def accept() -> None:
            while True:
                try:
                    held.append(server.accept()[0])
                except OSError:
                    return

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        try:
            yield int(server.getsockname()[1])
        finally:
            server.shutdown(socket.SHUT_RDWR)
            thread.join()
            for each in held:
                each.close()


def study_of(command: list[str], *metrics: dict[str, Any]) -> Study:
    return validate(
        {
            "study": {"name": "exposing", "question": "What limits it?"},
            "target": {
                "kind": "service",
                "command": command,
                "settings": {"pool": 2},
                "setting": {"pool": {"values": [2, 8], "apply": "argument"}},
                "metrics": [{"prometheus": "http://127.0.0.1:{port}/metrics", "requests": ["app_requests"]}, *metrics],
                "limit": [
                    {"name": "pool", "use": "app_pool_in_use", "ceiling": "app_pool_size", "raise": "pool"},
                    {"name": "ghost", "use": "app_pool_inuse", "ceiling": 7},
                ],
            },
            "workload": {"kind": "http"},
            "load": {"axis": "concurrency", "levels": [1, 4]},
            "measure": {"window": "1s", "blocks": {"min": 2, "max": 2}, "budget": "30s"},
        }
    )


@pytest.mark.long
@pytest.mark.server
def test_what_a_service_exposes_is_in_its_steps_and_in_the_ledger(command: list[str], tmp_path: Path) -> None:
    with silent() as port:
        found = lab.measure(study_of(command, {"json": f"http://127.0.0.1:{port}/"}), runs=tmp_path)
    run = RunFolder.open(next(tmp_path.iterdir()))
    steps = run.steps()
    for step in steps:
        assert step.metrics["service.app_pool_size"] == 2
        assert step.metrics["target.requests"] == step.metrics["service.app_requests_total"] > 0
        assert step.metrics["service.app_took_seconds_p50"] in (0.05, 0.25)
        assert not [name for name in step.metrics if "_bucket" in name]
        assert not step.blind
    assert {step.metrics["service.app_pool_in_use"] for step in steps if step.level == 4} == {2}
    treatment = next(iter(run.treatments().values()))
    rules = rules_for(run.declared().target.limit, steps)
    limits = {one.limit.id: one.limit for one in read_limits(steps, treatment.state, run.effective()["A"], rules)}
    assert (limits["service.pool"].use, limits["service.pool"].ceiling, limits["service.pool"].configured) == (2, 2, 2)
    assert "service.ghost" not in limits
    told = " ".join(found.warnings)
    assert f"Counters of http://127.0.0.1:{port}/" in told and "no answer ended within 2 s" in told
    assert "target.limit ghost speaks of app_pool_inuse" in told and "did you mean app_pool_in_use?" in told
    table = polars.read_parquet(run.place("metrics.parquet"))
    assert (
        table.filter((polars.col("metric") == "service.app_pool_in_use") & polars.col("at_s").is_not_null()).height > 2
    )


@pytest.mark.long
@pytest.mark.server
def test_counters_of_another_server_are_blind(command: list[str], tmp_path: Path) -> None:
    """The address of a metrics server that counts something else: its requests are not those of the load."""
    program = 'print("http_requests_total 5")'
    study = study_of(command, {"command": ["python3", "-c", program], "counters": ["http_requests_total"]})
    target = study.target.model_copy(update={"metrics": study.target.metrics[1:]})
    lab.measure(study.model_copy(update={"target": target}), runs=tmp_path)
    for step in RunFolder.open(next(tmp_path.iterdir())).steps():
        assert [one.counter for one in step.blind] == ["target.requests"]
        assert "service.http_requests_total" not in step.metrics
