"""The names of the package are real, typed names: a type checker sees what users and the command line call, and the
package stays light to import."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import loadframe
from loadframe.host.environment import python

ROOT = Path(__file__).parent.parent
DOOR = ROOT / "src/loadframe/__init__.py"
RIGHT = """
from pathlib import Path

import loadframe

study: loadframe.Study = loadframe.load_study(Path("study.toml"), ["measure.budget=2m"])
runs = Path("runs")

investigation = loadframe.investigate(study, runs)
for finding in investigation.rounds[0].findings:
    print(finding.id.upper(), finding.status, finding.reached_at.load if finding.reached_at is not None else "")
print(loadframe.render_text(investigation).upper())

measurement = loadframe.measure(study, runs)
print(measurement.curve.axis.upper(), measurement.run.name)

for comparison in loadframe.compare(study, runs):
    print(loadframe.render_comparison(comparison).upper())

for limit in loadframe.limits(pid=1, over_s=2.0).limits:
    print(limit.id.upper(), limit.use / limit.ceiling)

forecast = loadframe.predict(loadframe.read_observations("curve.csv"), [100.0, 200.0])
scored, folder = loadframe.verify(forecast, study, runs)
print((scored.refused or "").upper(), folder.name)

run = loadframe.open_run(Path("runs/a"))
found = loadframe.conclude(run)
print({name: state.curve.shape.upper() for name, state in found.states.items()}, found.name.upper())
loadframe.write_answer(run, found)
print([case.name.upper() for case in loadframe.cases()], loadframe.__version__.upper())
"""
WRONG = """
from pathlib import Path

import loadframe

loadframe.load_study("study.toml")  # incompatible type "str"; expected "Path"
study = loadframe.case("render-farm").study()
loadframe.investigate(study)  # Missing positional argument "runs"
loadframe.measure(study, Path("runs")).knees  # has no attribute "knees"
loadframe.compare(study, Path("runs"), enough=3)  # incompatible type "int"
loadframe.limits(pids=1)  # Unexpected keyword argument "pids"
loadframe.predict(study)  # incompatible type "Study"; expected "Observations"
loadframe.investigat(study, Path("runs"))  # Module has no attribute "investigat"
text: int = loadframe.render_text(loadframe.investigate(study, Path("runs")))  # incompatible types in assignment
"""
"""Each line that is wrong says how."""


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[int, str]]:
    """What mypy --strict says of the two programs, and of each name: by program and line."""
    folder = tmp_path_factory.mktemp("programs")
    names = "".join(f"reveal_type(loadframe.{name})\n" for name in loadframe.__all__)
    for name, text in (("right", RIGHT), ("wrong", WRONG), ("names", f"import loadframe\n{names}")):
        (folder / f"{name}.py").write_text(text)
    programs = [str(path) for path in sorted(folder.iterdir())]
    # with the project's own options, which are strict, so that what was checked before is not checked again
    options = ["--config-file", str(ROOT / "pyproject.toml"), "--cache-dir", str(ROOT / ".mypy_cache")]
    command = python("mypy", "--strict", "--no-pretty", *options, *programs)
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    found: dict[str, dict[int, str]] = {"right": {}, "wrong": {}, "names": {}, "elsewhere": {}}
    for line in done.stdout.splitlines():
        if match := re.match(r"(.*?)([^/]*)\.pyi?:(\d+): (.*)", line):
            place = match[2] if match[2] in found and "programs" in match[1] else "elsewhere"
            found[place][int(match[3])] = found[place].get(int(match[3]), "") + match[4] + "\n"
    return found


def test_a_right_program_is_right(told: dict[str, dict[int, str]]) -> None:
    assert told["right"] == {}
    assert told["elsewhere"] == {}


def test_each_mistake_of_a_wrong_program_is_found_at_its_line(told: dict[str, dict[int, str]]) -> None:
    lines = enumerate(WRONG.splitlines(), 1)
    expected = {number: line.partition("  # ")[2] for number, line in lines if "  # " in line}
    assert told["wrong"].keys() == expected.keys()
    for number, words in expected.items():
        assert words.lower() in told["wrong"][number].lower(), (number, told["wrong"][number])


def test_no_name_is_of_any_type(told: dict[str, dict[int, str]]) -> None:
    revealed = {name: told["names"][number] for number, name in enumerate(loadframe.__all__, 2)}
    assert not {name: words for name, words in revealed.items() if 'type is "Any"' in words or "error" in words}
    assert not {name: words for name, words in revealed.items() if "-> Any" in words}


def test_every_name_that_a_type_checker_reads_is_there() -> None:
    for name in loadframe.__all__:
        assert getattr(loadframe, name) is not None
    assert loadframe.fit_curve.__module__ == "loadframe.analysis.curve"


def test_importing_the_package_imports_nothing_else() -> None:
    """Worker processes and the recorder start from it."""
    code = "import sys; before = {*sys.modules}; import loadframe; print(*sorted({*sys.modules} - before))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    foreign = {name for name in done.stdout.split() if name.partition(".")[0] not in sys.stdlib_module_names}
    assert foreign == {"loadframe", "loadframe.version"}


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'investigat'"):
        getattr(loadframe, "investigat")  # noqa: B009
