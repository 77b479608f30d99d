"""What a command could not put back is in its answer, and ends it with exit 1."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from typer.testing import CliRunner

from loadframe.bench.bench import RealBench
from loadframe.changes import host
from loadframe.changes.host import Host
from loadframe.cli.main import app
from loadframe.errors import ChangeError
from loadframe.model import SettingValue, Step, StepRequest

MORE = """
[host.settings]
"vm.swappiness" = 10
[remedies]
allow = ["target", "host"]
[[alternative]]
name = "less"
target = { settings = { cache_size = -4000 } }
[[change]]
name = "less"
target = { settings = { cache_size = -4000 } }
[tune]
trials = 1
[tune.settings]
cache_size = [-4000]
[objective]
within = { latency_p95_ms = 1000 }
"""
WRITE = Host.write
TUNE = pytest.param("tune", marks=pytest.mark.extension("loadframe_tune"))
VERBS = ("ladder", TUNE, "compare", "investigate")


@pytest.fixture
def swappiness(tmp_path: Path, study: Path, make_step: Callable[..., Step], monkeypatch: pytest.MonkeyPatch) -> Path:
    """Of a made-up machine, and a study that changes it; the kernel does not take its old value again."""
    file = tmp_path / "machine/proc/sys/vm/swappiness"
    file.parent.mkdir(parents=True)
    file.write_text("60\n")
    monkeypatch.setattr(host, "ROOT", tmp_path / "machine")
    monkeypatch.setenv("LOADFRAME_STATE", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    study.write_text(study.read_text() + MORE)

    def refused(self: Host, name: str, value: SettingValue) -> None:
        if value == 60:
            raise ChangeError("the kernel does not take 60.")
        WRITE(self, name, value)

    def taken(self: RealBench, request: StepRequest) -> Step:
        """At once, and always alike: what a step shows is not asked here, nor whether the machine has time for one."""
        self.use(request.treatment)
        step = make_step(
            request.level, 100.0 * request.level, treatment=request.treatment, round=request.round_number,
            block=request.block, purpose=request.purpose,
        )  # fmt: skip
        self.run.append_line("steps.jsonl", "step", step)
        return step

    monkeypatch.setattr(Host, "write", refused)
    monkeypatch.setattr(RealBench, "take_step", taken)
    return file


def run(verb: str, *options: str) -> tuple[int, str, str]:
    arguments: Sequence[str] = (verb, "study.toml", *options)
    done = CliRunner().invoke(app, arguments)
    return done.exit_code, done.stdout, done.stderr


@pytest.mark.parametrize("verb", VERBS)
def test_it_is_in_the_answer_and_the_exit_code(verb: str, swappiness: Path) -> None:
    code, out, err = run(verb, "--json")
    assert code == 1, err
    assert swappiness.read_text().startswith("10\n")
    answer = json.loads(out)
    assert answer["schema"] != "loadframe.error/1"
    for word in ("vm.swappiness", "60"):
        assert word in out
    assert "Not reverted: vm.swappiness. `loadframe changes revert`" in err


@pytest.mark.parametrize("verb", ["ladder", TUNE])
def test_people_read_it_with_what_to_do(verb: str, swappiness: Path) -> None:
    code, out, _ = run(verb)
    assert swappiness.read_text().startswith("10\n")
    told = "vm.swappiness of this machine cannot be put back to 60: the kernel does not take 60; `loadframe changes"
    assert (code, told in " ".join(out.split())) == (1, True), out
    (report,) = Path("runs").glob("*/report.html")
    assert "loadframe changes revert" in report.read_text()


@pytest.fixture
def interrupted(swappiness: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C at the first step."""

    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(RealBench, "take_step", stop)


@pytest.mark.usefixtures("interrupted")
def test_ctrl_c_ends_with_1_where_something_stays() -> None:
    code, out, err = run("measure", "--json")
    assert (code, json.loads(out)["kind"]) == (1, "interrupted"), err
    assert "Not everything could be reverted" in err and "Not reverted: vm.swappiness." in err


@pytest.mark.usefixtures("interrupted")
def test_ctrl_c_ends_with_130_where_all_went_back(swappiness: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Host, "write", WRITE)
    code, out, err = run("measure", "--json")
    assert (code, json.loads(out)["kind"]) == (130, "interrupted"), err
    assert swappiness.read_text().startswith("60\n")


def test_what_went_back_ends_with_0(swappiness: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Host, "write", WRITE)
    code, out, err = run("measure", "--json")
    assert (code, json.loads(out)["conduct"]["standing"]) == (0, []), err
    assert swappiness.read_text().startswith("60\n")
