"""Quick cells of benchmarks/second_user.py: a verb of root's, and a second user who has prepared its place."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import second_user
from loadframe.host.privilege import free_user
from second_user_verbs import recorded

pytestmark = [
    pytest.mark.server,
    pytest.mark.skipif(os.geteuid() != 0 or free_user() is None, reason="root, and a second user"),
]


@pytest.fixture(scope="module")
def run() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="lf-recorded-", dir="/var/tmp") as name:
        Path(name).chmod(0o755)
        yield recorded(Path(name) / "recorded")


@pytest.mark.long
@pytest.mark.parametrize(
    ("verb", "planted"),
    [
        ("study-check", "planted module"),
        ("export", "planted folder"),
        ("export", "planted link"),
        ("ndb", "planted link"),
        ("growth", "FIFO"),
        ("growth", "swapped link"),
        ("report", "FIFO"),
        ("report", "swapped link"),
        ("watch", "killed service"),
        ("measure-command", "user that cannot run"),
    ],
)
def test_a_second_user_has_prepared_the_place(verb: str, planted: str, run: Path) -> None:
    found = second_user.cell(verb, planted, run)
    assert found.skipped == ""
    assert found.wrong == ()


@pytest.mark.long
def test_the_judgement_sees_what_is_wrong(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def planted(beside: second_user.Beside) -> str:
        (beside.vault / "secret").write_bytes(second_user.SECRET + b" changed")
        (beside.scene.folder / "copied").write_bytes(second_user.SECRET)
        beside.ran.write_text("json")
        return ""

    monkeypatch.setitem(second_user.COLUMNS, "planted module", planted)
    wrong = second_user.cell("case-list", "planted module", run).wrong
    assert wrong == (
        "root's own files are not as before",
        "what was planted was run: json",
        "root's secret stands in copied",
    )
