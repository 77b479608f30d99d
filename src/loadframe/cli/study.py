"""loadframe study schema|check: the study file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import loadframe
from loadframe.bench.checking import check_study
from loadframe.cli.common import Json, Sets, command
from loadframe.cli.terminal import answer, emit
from loadframe.formats.json_text import write_json

app = typer.Typer(no_args_is_help=True, help="Print the schema of study files, or check one.")


@app.command()
def schema(as_json: Json = False) -> None:
    """Print the JSON schema of a study."""
    with command(as_json):
        document = loadframe.Study.model_json_schema(by_alias=True)
        if as_json:
            emit({"schema": "loadframe.study-schema/1", "json_schema": document})
        else:
            answer(write_json(document, indent=2))


@app.command()
def check(
    study: Annotated[Path, typer.Argument(help="A study file (TOML).")], overrides: Sets = None, as_json: Json = False
) -> None:
    """Check a study and print it with all defaults filled in."""
    with command(as_json):
        declared = loadframe.load_study(study, overrides or [])
        check_study(declared)
        resolved = declared.resolved()
        if as_json:
            emit({"schema": "loadframe.study/1", **resolved})
        else:
            answer(write_json(resolved, indent=2))
