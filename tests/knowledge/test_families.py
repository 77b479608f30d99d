"""A family of metrics that another distribution brings is checked before any of it is used."""

from __future__ import annotations

import pytest

from loadframe.entry_points import Registry
from loadframe.knowledge.families import FAMILIES, Family, flaw_of

ROWS = "toy.{name}.busy   | count | workers of {name} at work\ntoy.{name}.idle_s | s/s | idle seconds of {name}\n"


def test_rows_of_its_own_name_are_used() -> None:
    assert flaw_of(Family("toy", ROWS)) is None


@pytest.mark.parametrize(
    ("family", "why"),
    [
        (Family("mariadb", ROWS.replace("toy", "mariadb")), "cannot begin with 'mariadb'"),
        (Family("a.b", ROWS.replace("toy", "a.b")), "cannot begin with 'a.b'"),
        (
            Family("toy", ROWS + "target.{name}.busy | count | of another"),
            "'target.{name}.busy",
        ),
        (Family("toy", "toy.{stage}.busy | count | of a part that is not known"), "is not `toy.{name}.END"),
        (Family("toy", "toy.{name}.busy | count"), "is not `toy.{name}.END | unit | what`"),
    ],
)
def test_names_of_others_and_rows_without_form_are_refused(family: Family, why: str) -> None:
    flaw = flaw_of(family)
    assert flaw is not None
    assert why in flaw.fact


def test_without_another_distribution_there_is_none() -> None:
    assert list(Registry("loadframe.of_nothing", Family, tuple)) == []
    assert not FAMILIES.broken()
