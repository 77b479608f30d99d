"""Completion and the manual: what a real shell completes, and what the formatter of manual pages says of the page."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from loadframe.cli import main
from loadframe.cli.about import manual
from loadframe.cli.main import app, program

BIN = Path(sys.executable).parent
BASH = """
source <(loadframe --show-completion bash)
completed() {
    COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
    _loadframe_completion loadframe
    echo "${COMPREPLY[@]}"
}
completed loadframe inv
completed loadframe export --fo
completed loadframe export --format steps.
completed loadframe case run job-
"""


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    return {**os.environ, "HOME": str(tmp_path), "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}"}


def in_bash(script: str, home: dict[str, str]) -> list[str]:
    done = subprocess.run(["bash", "--norc", "-c", script], env=home, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


@pytest.mark.long
def test_bash_completes_verbs_options_formats_and_cases(home: dict[str, str]) -> None:
    assert in_bash(BASH, home) == ["investigate", "--format", "steps.csv steps.parquet", "job-queue"]


def test_it_is_installed_for_bash(home: dict[str, str]) -> None:
    installed = "loadframe --install-completion bash >/dev/null; source ~/.bashrc; complete -p loadframe"
    assert in_bash(installed, home) == ["complete -o default -F _loadframe_completion loadframe"]
    assert (Path(home["HOME"]) / ".bash_completions/loadframe.sh").exists()


HEAVY = {"jinja2", "loadframe.model", "numpy", "polars", "pydantic", "rich", "scipy"}


@pytest.mark.parametrize(
    "asked",
    ["main.run(['--version'])", "main.run(['--help'])", "[main.program().get_command(None, v) for v in main.VERBS]"],
)
def test_version_help_and_the_options_of_every_verb_need_nothing_heavy(asked: str) -> None:
    """A shell asks for them with every press of the tab key."""
    script = f"import sys; from loadframe.cli import main; {asked}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert not HEAVY & set(done.stdout.split())


@pytest.mark.parametrize("group", ["changes", "case", "fleet", "study"])
def test_a_group_of_verbs_has_the_form_of_the_others(group: str) -> None:
    help_of = CliRunner().invoke(app, [group, "--help"]).stdout
    assert "--install-completion" not in help_of and "\u256d" not in help_of
    line = main.LINES[group].rstrip(".")
    assert line in " ".join(help_of.split())


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_have_their_scripts(shell: str) -> None:
    assert f"complete_{shell}" in CliRunner().invoke(app, ["--show-completion", shell]).stdout
    assert CliRunner().invoke(app, ["--show-completion", "tcsh"]).exit_code == 2


def test_the_manual_has_every_verb_and_no_error() -> None:
    page = manual(program())
    assert ".SS loadframe export" in page
    assert ".SS loadframe changes revert" in page
    assert ".SS loadframe case run" in page
    if shutil.which("mandoc") is None:
        pytest.skip("mandoc is not installed")
    checked = subprocess.run(
        ["mandoc", "-T", "lint", "-W", "warning"], input=page, capture_output=True, text=True, check=False
    )
    assert checked.stdout + checked.stderr == ""


def test_the_manual_is_printed_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """`KEY=VALUE` of --set looks like a secret, and is none; what hides secrets would take the end of the bold type."""
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    page = manual(program())
    assert "\\fB\\-\\-set KEY=VALUE\\fR" in page
    assert CliRunner().invoke(app, ["man"]).stdout == f"{page}\n"
    assert json.loads(CliRunner().invoke(app, ["man", "--json"]).stdout)["page"] == page
