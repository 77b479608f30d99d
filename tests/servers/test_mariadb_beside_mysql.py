"""The study of docs/mysql.md: MariaDB and MySQL under the same load, at once."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import loadframe
from loadframe.study import parse

PAGE = Path(__file__).resolve().parents[2] / "docs/mysql.md"


def studies() -> tuple[str, str]:
    """That of the two, and the one of all three."""
    two, third = re.findall(r"```toml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S)
    return two, two + third


def shorter(text: str) -> str:
    for long, short in (
        ("levels = [1, 2, 4, 8]", "levels = [1, 2]"),
        ('window = "2s"', 'window = "1200ms"'),
        ("blocks = { min = 3, max = 6 }", "blocks = { min = 2, max = 2 }"),
        ('budget = "240s"', 'budget = "40s"'),
        ("table_size = 10000", "table_size = 500"),
    ):
        assert long in text
        text = text.replace(long, short)
    return text


def test_the_studies_of_the_manual_are_some() -> None:
    kinds = [[one.target.kind for one in parse(each).alternative] for each in studies()]
    assert kinds == [["mysql", "mysql"], ["mysql", "mysql", "ndb-sql"]]


@pytest.mark.measures
@pytest.mark.server
@pytest.mark.mysql
def test_each_side_is_measured_and_named(tmp_path: Path) -> None:
    found = loadframe.compare(parse(shorter(studies()[0])), tmp_path)
    assert {one.after for one in found} == {"mysql", "mysql-without-binary-log"}
    run = loadframe.open_run(Path(found[0].run))
    assert {one.kind for one in run.treatments().values()} == {"mariadb", "mysql"}
    assert {step.treatment for step in run.steps() if step.counts} == run.treatments().keys()
    assert all("mysql" in loadframe.render_comparison(one) for one in found)


@pytest.mark.measures
@pytest.mark.server
@pytest.mark.mysql
@pytest.mark.ndb
@pytest.mark.sqlnode
def test_a_cluster_is_one_of_three_on_the_page(tmp_path: Path) -> None:
    found = loadframe.investigate(parse(shorter(studies()[1])), tmp_path)
    assert [one.target_kind for one in found.alternatives] == ["mysql", "mysql", "ndb-sql"]
    run = loadframe.open_run(Path(found.run))
    kinds = {one.name: one.kind for one in run.treatments().values()}
    steps = [step for step in run.steps() if step.purpose == "side by side"]
    assert {kinds[step.treatment] for step in steps} == {"mariadb", "mysql", "ndb-sql"}
    for step in steps:
        told = {name.partition(".")[0] for name in step.metrics}
        own = {"mariadb": {"mariadb"}, "mysql": {"mysql"}, "ndb-sql": {"ndb", "management", "sql1", "shard1"}}
        assert told & set().union(*own.values()) == own[kinds[step.treatment]]
        assert step.metrics["target.cpu.cores"] > 0
    page = (run.path / "report.html").read_text(encoding="utf-8")
    assert "cluster" in page
