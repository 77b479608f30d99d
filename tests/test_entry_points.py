"""What other distributions register is used where it can be, and told of in words where it cannot."""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from loadframe.entry_points import NEEDED_BY, Registry
from loadframe.model import Requirement
from sources import EXTENSIONS

GROUP = "loadframe.numbers"


@dataclass(frozen=True)
class Number:
    kind: str
    value: int = 0


def numbers() -> Registry[Number]:
    return Registry(GROUP, Number, lambda: (Number("one", 1), Number("two", 2)))


def install(folder: Path, name: str, entry_points: str, modules: str = "", *, metadata: bool = True) -> None:
    """A distribution on the path: its dist-info, and a module of its name."""
    info = folder / f"{name}-1.5.dist-info"
    info.mkdir()
    (info / "entry_points.txt").write_text(entry_points)
    if metadata:
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.5\n")
    (folder / f"{name}.py").write_text(modules)


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder on the path; modules from it are forgotten afterwards."""
    known = set(sys.modules)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield tmp_path
    for name in set(sys.modules) - known:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(tmp_path)):
            del sys.modules[name]


THREE = "from test_numbers import Number\nTHREE = Number('three', 3)\n"


@pytest.fixture
def record(monkeypatch: pytest.MonkeyPatch) -> None:
    """The class under the name by which modules of these tests import it."""
    monkeypatch.setitem(sys.modules, "test_numbers", sys.modules[__name__])


def test_our_own_come_first_and_theirs_after_by_name(path: Path, record: None) -> None:
    zero = THREE.replace("THREE", "ZERO").replace("three", "zero")
    install(path, "lf_late", f"[{GROUP}]\nzero = lf_late:ZERO\n", zero)
    install(path, "lf_three", f"[{GROUP}]\nthree = lf_three:THREE\n", THREE)
    found = numbers()
    assert list(found) == ["one", "two", "three", "zero"]
    assert found["three"].value == 3
    assert len(found) == 4
    assert not found.broken()


def test_a_look_at_one_of_ours_loads_nothing_of_theirs(path: Path) -> None:
    install(path, "lf_loud", f"[{GROUP}]\nloud = lf_loud:LOUD\n", "raise SystemExit('loaded')")
    found = numbers()
    assert found["two"].value == 2
    assert found.why_not("two") is None
    assert "lf_loud" not in sys.modules
    assert found.get("nine") is None
    assert found.why_not("nine") is None


@pytest.mark.parametrize(
    ("module", "said"),
    [
        ("import no_such_package", "ModuleNotFoundError: No module named 'no_such_package'"),
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("raise SystemExit(3)", "SystemExit: 3"),
        ("raise RuntimeError('red \\x1b[31m' + 'x' * 5000)", "RuntimeError: red \\x1b[31mx"),
        ("(", "SyntaxError"),
        ("", "has no attribute 'THREE'"),
        ("THREE = 3", "lf_three:THREE is of type int, not Number"),
        (THREE.replace("'three'", "'four'"), "lf_three:THREE calls itself 'four', and its entry point is 'three'"),
    ],
)
def test_one_that_cannot_be_used_says_whose_it_is_what_is_wrong_and_what_to_do(
    path: Path, record: None, module: str, said: str
) -> None:
    install(path, "lf_three", f"[{GROUP}]\nthree = lf_three:THREE\n", module)
    found = numbers()
    assert list(found) == ["one", "two"], "the others go on"
    assert found.get("three") is None
    broken = found.why_not("three")
    assert broken is not None
    error = broken.error("target.kind")
    assert error.fact.startswith("target.kind = 'three' is from lf_three 1.5: ")
    assert said in error.fact
    assert error.fact.isprintable() and len(error.fact) < 500
    assert "uninstall it" in error.remedy
    (row,) = (one.requirement() for one in found.broken())
    assert (row.kind, row.what, row.present) == ("three", "entry point of lf_three 1.5", None)
    assert said in row.how_to_get_it


@pytest.mark.parametrize("entry_points", ["[{group}]\nthree\n", "[{group}]\nthree = \n", "[{group}]\nthree = a b c\n"])
def test_entry_points_that_are_none_are_told_of(path: Path, entry_points: str) -> None:
    install(path, "lf_three", entry_points.format(group=GROUP))
    found = numbers()
    assert list(found) == ["one", "two"]
    (broken,) = found.broken()
    assert broken.distribution == "lf_three 1.5"
    assert "uninstall it" in broken.remedy


def test_a_name_of_ours_stays_ours(path: Path, record: None) -> None:
    install(path, "lf_two", f"[{GROUP}]\ntwo = lf_two:THREE\n", THREE)
    found = numbers()
    assert found["two"].value == 2
    (broken,) = found.broken()
    assert "Loadframe has a two of its own" in broken.fact


def test_a_name_that_two_offer_is_neither_ones(path: Path, record: None) -> None:
    install(path, "lf_three", f"[{GROUP}]\nthree = lf_three:THREE\n", THREE)
    install(path, "lf_other", f"[{GROUP}]\nthree = lf_other:THREE\n", THREE)
    found = numbers()
    assert "three" not in found
    broken = found.why_not("three")
    assert broken is not None
    assert "lf_three 1.5" in broken.distribution and "lf_other 1.5" in broken.distribution
    assert "but one" in broken.remedy


def test_a_distribution_without_a_name_is_used_all_the_same(path: Path, record: None) -> None:
    install(path, "lf_three", f"[{GROUP}]\nthree = lf_three:THREE\n", THREE, metadata=False)
    assert numbers()["three"].value == 3


def test_one_that_fails_when_it_is_asked_what_it_needs_is_missing(path: Path, record: None) -> None:
    install(path, "lf_three", f"[{GROUP}]\nthree = lf_three:THREE\n", THREE)
    found = numbers()

    def ask(number: Number) -> list[Requirement]:
        return [Requirement(number.kind, "a half", str(6 // (number.value - 3)), "")]

    assert found.needs("two", ask)[0].present == "-6"
    (row,) = found.needs("three", ask)
    assert row.present is None
    assert "ZeroDivisionError" in row.how_to_get_it and "lf_three 1.5" in row.what
    with pytest.raises(KeyError):
        found.needs("nine", ask)


def test_the_command_that_installs_an_extension_has_the_others_that_it_declares() -> None:
    projects = [tomllib.loads((folder / "pyproject.toml").read_text())["project"] for folder in EXTENSIONS]
    declared = {
        one["name"]: [each for each in one["dependencies"] if each.startswith("loadframe-")] for one in projects
    }
    assert {name: needs for name, needs in declared.items() if needs} == {
        name: [one] for name, one in NEEDED_BY.items()
    }
