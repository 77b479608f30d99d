"""A server of another distribution has a limit, a signature and a remedy of its own, which are used like ours; its
faults are told as its own."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from outside_toy import LOADFRAME, OUR_OWN, STUDY, toy_installed
from undisturbed import undisturbed


@pytest.fixture(scope="module")
def installed() -> Iterator[Path]:
    with toy_installed() as folder:
        yield folder


def run(arguments: Sequence[str], where: Path, *path: Path) -> subprocess.CompletedProcess[str]:
    """Loadframe in a folder, with these folders on its path."""
    whole = ":".join(filter(None, [*map(str, path), os.environ.get("PYTHONPATH", "")]))
    environment = {**os.environ, "PYTHONPATH": whole, "NO_COLOR": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [LOADFRAME, *arguments], cwd=where, env=environment, capture_output=True, text=True, timeout=240
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done


Call = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def call(installed: Path, tmp_path: Path) -> Call:
    """Run Loadframe with the toy on its path."""
    (tmp_path / "study.toml").write_text(STUDY)
    (tmp_path / "own.toml").write_text(OUR_OWN)
    return lambda *arguments: run(arguments, tmp_path, installed)


OF_SLOTS = (
    "target.settings.slots=1",
    "load.levels=[4,8]",
    "measure.blocks.max=3",
    "measure.budget=30s",
)
"""One slot for four and eight clients: more slots give several times the throughput, and no request waits."""


@pytest.fixture(scope="module")
def investigated(installed: Path) -> Iterator[tuple[dict[str, Any], Path]]:
    """The answer of `investigate`, and its run folder."""
    folder = Path(tempfile.mkdtemp(prefix="lf-", dir="/var/tmp"))
    (folder / "study.toml").write_text(STUDY)
    sets = [word for one in OF_SLOTS for word in ("--set", one)]

    def once() -> dict[str, Any]:
        done = run(["investigate", "study.toml", "--json", *sets], folder, installed)
        assert done.returncode == 0, done.stderr
        answer: dict[str, Any] = json.loads(done.stdout)
        return answer

    answer = undisturbed(once)
    yield answer, folder / answer["run"]
    shutil.rmtree(folder)


@pytest.mark.measures
def test_its_own_limit_is_named_and_confirmed_by_its_own_remedy(investigated: tuple[dict[str, Any], Path]) -> None:
    answer, _ = investigated
    first = answer["rounds"][0]
    assert (first["findings"][0]["id"], first["findings"][0]["status"]) == ("toy.slots", "confirmed")
    assert first["findings"][0]["evidence"][0]["metric"].startswith("toy.")
    (tried,) = first["tried"]
    assert (tried["remedy"]["id"], tried["kept"]) == ("toy.slots.raise", True)
    assert tried["remedy"]["changes"][0]["setting"] == "slots"
    assert answer["gain"]["decision"] == "better"


@pytest.mark.measures
def test_a_run_of_it_is_read_where_it_is_not_installed(
    investigated: tuple[dict[str, Any], Path], tmp_path: Path
) -> None:
    """Also one that was killed, whose answer is worked out again; what is missing is said."""
    _, folder = investigated
    shutil.copytree(folder, tmp_path / "killed")
    (tmp_path / "killed/investigation.json").unlink()
    for words in (["report", str(folder)], ["report", "killed"], ["curve", "killed"], ["predict", "killed"]):
        done = run(words, tmp_path)
        assert done.returncode == 0, (words, done.stderr)
        said = " ".join(done.stderr.split())
        assert "Not available here: the kind of target 'toy' and the workload 'toy-load'" in said
        assert "measured with loadframe_toy 1.5" in said
    assert "the number of clients served at once is full at 1" in " ".join(
        run(["report", "killed"], tmp_path).stdout.split()
    )


@pytest.mark.long
def test_its_settings_are_tuned_and_read_where_it_is_not_installed(call: Call, tmp_path: Path) -> None:
    sets = ("target.settings.slots=1", "load.levels=[4]", "measure.budget=20s")
    done = call("tune", "study.toml", "--json", "--trials", "2", *(word for one in sets for word in ("--set", one)))
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert [each["name"] for each in answer["settings"]] == ["slots"]
    elsewhere = run(["report", answer["run"], "--details"], tmp_path)
    assert elsewhere.returncode == 0, elsewhere.stderr
    assert re.search(r"slots; needs a restart +1 +(\d|stays)", elsewhere.stdout) and "toy.conf" not in elsewhere.stdout


@pytest.mark.long
def test_its_limits_are_in_the_ledger_of_this_moment(call: Call) -> None:
    done = call("limits", "--target", "study.toml", "--json")
    assert done.returncode == 0, done.stderr
    rows = {row["id"]: row for row in json.loads(done.stdout)["limits"]}
    assert rows["toy.slots"]["ceiling"] == 1
    assert "toy.waiting" in rows


def changed(installed: Path, folder: Path, page: str, old: str, new: str) -> Path:
    """The toy with other words in one of its modules, in a folder of its own."""
    shutil.copytree(installed, folder)
    file = folder / "loadframe_toy" / f"{page}.py"
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))
    return folder


@pytest.mark.long
def test_a_row_that_cannot_be_used_is_told_of_and_ends_no_other_command(
    installed: Path, call: Call, tmp_path: Path
) -> None:
    toy = changed(
        installed, tmp_path / "site", "limits", '"toy.slots",\n        title', '"process.open_files",\n        title'
    )
    refused = run(["study", "check", "study.toml"], tmp_path, toy)
    assert refused.returncode == 1
    said = "target.kind = 'toy' is from loadframe_toy 1.5: its limits.py: LIMITS (process.open_files)"
    assert said in refused.stderr and "must begin with 'toy.'" in refused.stderr
    assert "uninstall it" in refused.stderr
    checks = json.loads(run(["doctor", "--json"], tmp_path, toy).stdout)["checks"]
    (row,) = (one for one in checks if one["part"] == "toy")
    assert row["found"] is None and "process.open_files" in row["how_to_get_it"]
    assert run(["study", "check", "own.toml"], tmp_path, toy).returncode == 0
    toy = changed(installed, tmp_path / "other", "settings", 'Tunable("slots"', 'Tunable("slot"')
    refused = run(["study", "check", "study.toml"], tmp_path, toy)
    assert refused.returncode == 1 and "its tunables name 'slot', which is not in its catalogue" in refused.stderr


@pytest.fixture
def entered_by_all() -> Iterator[Path]:
    """The driver of the toy is another user, who may not enter the folders of pytest."""
    with tempfile.TemporaryDirectory(prefix="lf-", dir="/var/tmp") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.mark.long
def test_an_exception_of_its_code_is_told_as_its_fault(
    installed: Path, call: Call, tmp_path: Path, entered_by_all: Path
) -> None:
    """Not as one of ours; also where a library that it calls raises it."""
    wrong = 'raise ValueError("no such thing")'
    toy = changed(installed, entered_by_all / "site", "kind", '"""As the server itself says."""', wrong)
    done = run(["measure", "study.toml", "--json"], tmp_path, toy)
    answer = json.loads(done.stdout)
    assert (done.returncode, answer["kind"]) == (1, "OutsideFault")
    assert "The kind 'toy' of loadframe_toy 1.5 raised ValueError: no such thing (kind.py, line" in answer["message"]
    assert "report it with the command you ran, to the authors of loadframe_toy 1.5" in answer["remedy"]
    assert "Loadframe has a bug" not in done.stderr
    toy = changed(installed, entered_by_all / "other", "load", "self.options = ", "self.options = json.loads('{') or ")
    file = toy / "loadframe_toy/load.py"
    file.write_text(file.read_text().replace("from pathlib", "import json\nfrom pathlib", 1))
    done = run(["measure", "study.toml"], tmp_path, toy)
    assert "The workload 'toy-load' of loadframe_toy 1.5 raised JSONDecodeError" in done.stderr
