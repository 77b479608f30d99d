"""The study of docs/mysql.md: MariaDB and MySQL under the same load, at once."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import loadframe
from loadframe.study import parse

PAGE = Path(__file__).resolve().parents[2] / "docs/mysql.md"


def study() -> str:
    (found,) = re.findall(r"```toml\n(.*?)```", PAGE.read_text(), re.S)
    return str(found)


def test_the_study_of_the_manual_is_one() -> None:
    found = parse(study())
    assert [found.target.kind, *(one.target.kind or found.target.kind for one in found.alternative)] == [
        "mariadb", "mysql", "mysql",
    ]  # fmt: skip


@pytest.mark.alone
@pytest.mark.server
@pytest.mark.mysql
def test_each_side_is_measured_and_named(tmp_path: Path) -> None:
    shorter = study()
    for long, short in (
        ("levels = [1, 2, 4, 8]", "levels = [1, 2]"),
        ('window = "2s"', 'window = "400ms"'),
        ("blocks = { min = 3, max = 6 }", "blocks = { min = 2, max = 2 }"),
        ('budget = "240s"', 'budget = "40s"'),
        ("table_size = 10000", "table_size = 500"),
    ):
        assert long in shorter
        shorter = shorter.replace(long, short)
    found = loadframe.compare(parse(shorter), tmp_path)
    assert {one.after for one in found} == {"mysql", "mysql-without-binary-log"}
    run = loadframe.open_run(Path(found[0].run))
    assert {one.kind for one in run.treatments().values()} == {"mariadb", "mysql"}
    assert {step.treatment for step in run.steps() if step.counts} == run.treatments().keys()
    assert all("mysql" in loadframe.render_comparison(one) for one in found)
