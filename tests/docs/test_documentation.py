"""What the documentation says works: every command is executed, every verb is named, generated parts are up to date."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer.main

import loadframe
import producing
from alone import OF_ALL
from forked import forked
from loadframe.cli.main import app
from sources import EXTENSIONS, modules

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *(extension / "README.md" for extension in EXTENSIONS),
]
LOADFRAME = str(Path(sys.executable).with_name("loadframe"))

TRIED_ELSEWHERE = {
    "case run bulk-ingest --quick": "benchmarks/gains.py",
    "case run oltp-ladder --quick": "benchmarks/gains.py",
    "changes forget ID": "tests/cli/test_changes.py",
    "compare mariadb-mysql.toml": "tests/servers/test_mariadb_beside_mysql.py",
    "ndb config.ini --start --set 'ndbd default.DataMemory=80M'": "extensions/loadframe-ndb/tests/test_verb.py",
    "serve runs": "extensions/loadframe-live/tests",
    "watch shop.toml": "extensions/loadframe-watch/tests/test_for_real.py",
    "watch --import range.json --as load=jobs_active --as 'mariadb.table_open_cache=open_tables / 2560'": (
        "extensions/loadframe-watch/tests/test_import.py"
    ),
    "watch shop.toml --import month.csv --as load=jobs --folder watches/shop": (
        "extensions/loadframe-watch/tests/test_import.py"
    ),
    "investigate pool.toml": "tests/docs/test_service_page.py",
    "measure shop.toml": "tests/docs/test_http_load.py",
    "case run render-farm --quick": "tests/servers",
    "case run render-farm --quick --set target.settings.table_open_cache=400": "benchmarks/gains.py",
}
"""Commands that take minutes or something that a killed command left, and where they are run."""


def commands() -> Iterator[str]:
    """Every `loadframe ...` line in a shell block, in order."""
    for page in PAGES:
        for block in re.findall(r"```sh\n(.*?)```", page.read_text(), re.S):
            for line in block.splitlines():
                command = line.partition("#")[0].strip()
                if command.startswith(".venv/bin/loadframe "):
                    yield command.removeprefix(".venv/bin/loadframe ")


SHORTER = (
    (re.compile(r'^budget = "(15|20)s"$', re.M), 'budget = "6s"'),
    (re.compile(r"^blocks = \{ min = 3, max = [34] \}$", re.M), "blocks = { min = 2, max = 2 }"),
)
"""That commands work is shown with as few blocks as there may be."""


def shorter(study: str) -> str:
    """A study of the documentation that takes less time. AssertionError where nothing of it was shortened."""
    found = study
    for pattern, shorter in SHORTER:
        found = pattern.sub(shorter, found)
    assert found != study, study
    return found


@pytest.fixture(scope="module")
def workplace() -> Iterator[Path]:
    """A folder with the studies of README, docs/comparing.md and docs/ladder.md, two samples, the curves of
    docs/predicting.md, the load of docs/growth.md, the files of docs/ndb.md and docs/observed.md, and a run that was
    recorded."""
    folder = Path(tempfile.mkdtemp(prefix="loadframe-reader-"))
    folder.chmod(0o755)  # a service is run by a user without privileges
    service, study = re.findall(r"```toml\n(.*?)```", (ROOT / "README.md").read_text(), re.S)
    (folder / "app.toml").write_text(f'{service}\n[measure]\nwindow = "300ms"\nbudget = "15s"\nprofile = "off"\n')
    (program,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs/tutorial.md").read_text(), re.S)
    (folder / "app.py").write_text(program)
    (folder / "queue.toml").write_text(shorter(study))
    (fleet, *_) = re.findall(r"```toml\n(.*?)```", (ROOT / "docs/fleet.md").read_text(), re.S)
    (folder / "fleet.toml").write_text(fleet)
    (ladder,) = re.findall(r"```toml\n(.*?)```", (ROOT / "docs/ladder.md").read_text(), re.S)
    (folder / "ladder.toml").write_text(shorter(ladder))
    (alternatives,) = re.findall(r"```toml\n(.*?)```", (ROOT / "docs/comparing.md").read_text(), re.S)
    (folder / "modes.toml").write_text(shorter(alternatives))
    csv = re.findall(r"```csv\n(.*?)```", (ROOT / "docs/predicting.md").read_text(), re.S)
    for name, text in zip(("points.csv", "sdm91.csv"), csv, strict=True):
        (folder / name).write_text(text)
    (load,) = re.findall(r"```csv\n(.*?)```", (ROOT / "docs/growth.md").read_text(), re.S)
    (folder / "load.csv").write_text(load)
    for name, kind in (("config.ini", "ini"), ("my.cnf", "cnf")):
        (text,) = re.findall(rf"```{kind}\n(.*?)```", (ROOT / "docs/ndb.md").read_text(), re.S)
        (folder / name).write_text(text)
    shutil.copytree(ROOT / "tests/data/runs/investigation", folder / "runs/queue")
    for name, level in (("before.csv", 100), ("after.csv", 110)):
        values = [f"{level + i % 5}" for i in range(40)]
        (folder / name).write_text("\n".join(["value", *values]))
    producing.write(folder)
    yield folder
    shutil.rmtree(folder)


PROGRAM = "investigate queue.toml"
"""README's first, by the installed program."""
TUTORIAL = ('init --command "POOL=4 python3 app.py --port 8000" --name shop', "investigate shop.toml")
"""Its commands, one after the other: the second takes the study that the first writes."""
SHORT = ("--set", "measure.window=300ms", "--set", "measure.budget=15s", "--set", "measure.profile=off")


@pytest.mark.long
@pytest.mark.parametrize("command", sorted(set(commands()) - set(TRIED_ELSEWHERE) - {PROGRAM, *TUTORIAL}))
def test_every_command_of_the_documentation_works(
    command: str, workplace: Path, forking: subprocess.Popen[str], tmp_path: Path
) -> None:
    done = forked(forking, shlex.split(command), folder=str(workplace), said=str(tmp_path))
    cannot_tell = {4} if "modes.toml --fail-if-worse" in command else set()  # so few blocks, and a busy machine
    assert done.code in {0, *cannot_tell}, done.err
    assert done.out


@pytest.mark.long
def test_the_first_command_of_readme_works_as_it_is_installed(workplace: Path) -> None:
    assert PROGRAM in set(commands())
    done = subprocess.run(
        [LOADFRAME, *shlex.split(PROGRAM)],
        cwd=workplace,
        env={**os.environ, "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout


@pytest.mark.long
def test_the_tutorial_works_from_its_first_command_to_its_last(
    workplace: Path, forking: subprocess.Popen[str], tmp_path: Path
) -> None:
    page = (ROOT / "docs/tutorial.md").read_text()
    assert tuple(re.findall(r"```sh\n.venv/bin/loadframe (.*?)\n```", page)) == TUTORIAL
    for command, short in zip(TUTORIAL, ((), SHORT), strict=True):
        done = forked(forking, [*shlex.split(command), *short], folder=str(workplace), said=str(tmp_path))
        assert done.code == 0, done.err
        assert done.out


def test_commands_tried_elsewhere_are_documented_still() -> None:
    assert set(TRIED_ELSEWHERE) <= set(commands())


def verbs() -> list[str]:
    """Every verb and sub-verb of the command line."""
    group = typer.main.get_command(app)
    found = []
    for name in group.list_commands(None):  # type: ignore[attr-defined]
        command = group.get_command(None, name)  # type: ignore[attr-defined]
        found += [f"{name} {sub}" for sub in getattr(command, "commands", {})] or [name]
    return found


@pytest.mark.parametrize("verb", verbs())
def test_every_verb_is_documented(verb: str) -> None:
    text = " ".join(page.read_text() for page in [*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "Makefile"])
    assert re.search(rf"loadframe {re.escape(verb)}\b", text), f"no page mentions `loadframe {verb}`"


@pytest.mark.long
def test_the_python_of_the_api_page_works(workplace: Path) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs/api.md").read_text(), re.S)
    code = code.replace('Path("study.toml")', 'Path("queue.toml")').replace("budget=2m", "budget=10s")
    done = subprocess.run([sys.executable, "-c", code], cwd=workplace, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_every_name_of_the_api_is_there_and_documented() -> None:
    text = (ROOT / "docs/api.md").read_text()
    for name in loadframe.__all__:
        assert getattr(loadframe, name) is not None
        if not name.startswith("__"):
            assert f"`{name}" in text or f"{name}(" in text, name


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CONTRIBUTING.md"], ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), target


@pytest.mark.long
def test_what_docs_ndb_shows_is_what_the_command_says(workplace: Path) -> None:
    page = (ROOT / "docs/ndb.md").read_text()
    command, shown = re.findall(r"```sh\n.venv/bin/loadframe (ndb .*?)\n```\n\n((?: {4}.*\n|\n)+)", page)[0]
    done = subprocess.run([LOADFRAME, *shlex.split(command)], cwd=workplace, capture_output=True, text=True, check=True)
    said = [line for line in done.stdout.splitlines() if "whether a cluster starts" not in line]
    assert [line[4:] for line in shown.rstrip().splitlines() if "whether a cluster starts" not in line] == said


@OF_ALL
def test_the_ledger_page_is_generated_from_the_rules() -> None:
    done = subprocess.run([sys.executable, str(ROOT / "scripts/write-docs"), "--check"], check=False)
    assert done.returncode == 0, "run scripts/write-docs"


def test_every_module_says_what_it_is_for() -> None:
    for _, path in modules():
        assert path.read_text().startswith(('"""', "#!")), path
