"""Two copies of the package that differ in what a host runs or reads are not the same code."""

import shutil
from pathlib import Path

import pytest

import loadframe
from loadframe_fleet.looking import code_digest

PACKAGE = Path(loadframe.__file__).parent


FILES = ("units.py", "ledger/limits.toml", "kinds/mysql/metrics.txt")


@pytest.mark.parametrize("changed", FILES)
def test_a_changed_row_is_other_code_as_a_changed_module_is(tmp_path: Path, changed: str) -> None:
    for name in ("one", "same", "other"):
        for path in FILES:
            (tmp_path / name / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(PACKAGE / path, tmp_path / name / path)
    (tmp_path / "other" / changed).write_text("# another row\n")
    assert code_digest(tmp_path / "one") == code_digest(tmp_path / "same") != ""
    assert code_digest(tmp_path / "other") != code_digest(tmp_path / "one")
