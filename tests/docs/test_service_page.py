"""The studies of docs/service.md are carried out, on the service that the page shows."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from forked import Result, forked
from undisturbed import undisturbed

PAGE = Path(__file__).resolve().parents[2] / "docs/service.md"
TEXT = PAGE.read_text(encoding="utf-8")
STUDIES = {re.search(r'name = "(.*?)"', each)[1]: each for each in re.findall(r"```toml\n(.*?)```", TEXT, re.S)}  # type: ignore[index]
(SERVICE,) = re.findall(r"```python\n(.*?)```", TEXT, re.S)

pytestmark = pytest.mark.server


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder with the service, which another user may read: pytest's own is closed to others."""
    folder = Path(tempfile.mkdtemp(prefix="lf-", dir="/var/tmp"))
    folder.chmod(0o755)
    (folder / "pool.py").write_text(SERVICE, encoding="utf-8")
    (folder / "pool.py").chmod(0o644)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def port(place: Path) -> Iterator[int]:
    """Of one that runs."""
    code = SERVICE.replace("ThreadingHTTPServer((", "server = ThreadingHTTPServer((").replace(
        ".serve_forever()", "\nprint(server.server_port, flush=True)\nserver.serve_forever()"
    )
    with subprocess.Popen([sys.executable, "-c", code, "0"], stdout=subprocess.PIPE, text=True) as service:
        assert service.stdout is not None
        yield int(service.stdout.readline())
        service.kill()


def run(forking: subprocess.Popen[str], place: Path, command: str, study: str) -> Result:
    (place / "pool.toml").write_text(study, encoding="utf-8")
    return forked(forking, [*shlex.split(command), "--json"], folder=str(place), said=str(place))


@pytest.mark.measures
def test_the_first_study_names_the_pool_and_confirms_it(forking: subprocess.Popen[str], place: Path) -> None:
    (command,) = re.findall(r"```sh\n\.venv/bin/loadframe (investigate pool\.toml)\n```", TEXT)

    def investigated() -> dict[str, Any]:
        done = run(forking, place, command, STUDIES["pool"])
        assert done.code == 0, done.err
        answer: dict[str, Any] = json.loads(done.out)
        return answer

    first = undisturbed(investigated)["rounds"][0]
    assert first["findings"][0]["id"] == "service.parallelism"
    assert [trial["remedy"]["changes"][0]["after"] for trial in first["tried"]] == [32]
    assert first["findings"][0]["status"] == "confirmed", first["findings"][0]["mechanism"]


@pytest.mark.long
def test_what_tune_finds_is_written_as_a_study_takes_it(forking: subprocess.Popen[str], place: Path) -> None:
    done = run(forking, place, "tune pool.toml --trials 3 --set measure.budget=15s", STUDIES["pool-tuned"])
    assert done.code == 0, done.err
    found = json.loads(done.out)
    assert [each["name"] for each in found["settings"]] == ["pool"], "sync gives something up"
    if found["end"] == "gained":
        assert found["file_text"].startswith("[target.settings]\npool = ")


@pytest.mark.long
def test_a_helper_is_recorded_as_a_component(forking: subprocess.Popen[str], place: Path) -> None:
    done = run(forking, place, "measure pool.toml", STUDIES["pool-with-cache"])
    assert done.code == 0, done.err
    steps = [json.loads(line) for path in place.glob("runs/*/steps.jsonl") for line in path.read_text().splitlines()]
    seen = ["cache.cpu.cores" in step["metrics"] for step in steps if "recorder-late" not in step["flags"]]
    assert sum(seen) > len(seen) / 2, "a busy machine may miss it in one"


@pytest.mark.long
def test_one_that_runs_is_measured(forking: subprocess.Popen[str], place: Path, port: int) -> None:
    done = run(forking, place, "measure pool.toml", STUDIES["pool-running"].replace("8080", str(port)))
    assert done.code == 0, done.err
    steps = [json.loads(line) for path in place.glob("runs/*/steps.jsonl") for line in path.read_text().splitlines()]
    seen = [
        (step["metrics"].get("target.cpu.cores"), step["flags"]) for step in steps if "too-few" not in step["flags"]
    ]
    assert seen and all(cores or "recorder-late" in flags for cores, flags in seen), seen


def test_every_key_that_a_study_of_a_service_has_is_on_the_page() -> None:
    from loadframe.study.service_tables import ReadBackTable, ReadyTable, ServiceKeys, SettingTable

    for table in (ServiceKeys, SettingTable, ReadyTable, ReadBackTable):
        for name, field in table.model_fields.items():
            word = field.alias or name
            assert re.search(rf"`[^`]*\b{word}\b[^`]*`|^\[+target\.{word}\b|^{word} = ", TEXT, re.M), word
