"""loadframe man: the manual page, made from the help of every verb."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from typing import Any

from loadframe.cli.common import Json, command
from loadframe.cli.terminal import answer, emit
from loadframe.formats.plain_numbers import whole
from loadframe.version import __version__

EXIT_CODES = {
    "0": "done",
    "1": "action needed, and the message says which",
    "2": "usage error",
    "3": "a verdict that you asked to fail on",
    "4": "cannot tell, where you asked for a verdict",
    "130": "interrupted and reverted",
}
ENVIRONMENT = {
    "LOADFRAME_STATE": "the state directory",
    "LOADFRAME_SCRATCH": "the folder for temporary data of servers",
    "NO_COLOR": "no colours on the terminal",
}


def man(as_json: Json = False) -> None:
    """Print the manual page, for man(1)."""
    from loadframe.cli.main import program

    with command(as_json):
        page = manual(program())
        if as_json:
            emit({"schema": "loadframe.man/1", "page": page})
        else:
            answer(page)


def manual(program: Any) -> str:
    """The page of a command with its verbs, in man(7)."""
    summary = _sentence(program.help)
    lines = [
        f'.TH LOADFRAME 1 "{_date()}" "loadframe {__version__}" "User Commands"',
        ".SH NAME",
        f"loadframe \\- {_text(summary[0].lower() + summary[1:])}",
        ".SH SYNOPSIS",
        ".B loadframe",
        ".I VERB",
        "[\\fIOPTION\\fR ...]",
        ".SH DESCRIPTION",
        _text(program.help),
        "Every verb takes \\fB\\-\\-json\\fR and then prints one JSON object on standard output.",
        ".SH OPTIONS",
        *_options(program, "loadframe"),
        ".SH VERBS",
    ]
    for name, verb in _verbs(program, "loadframe"):
        lines += [f".SS {_text(_usage(verb, name))}", _text(verb.help), *_options(verb, name)]
    for title, rows in (("EXIT STATUS", EXIT_CODES), ("ENVIRONMENT", ENVIRONMENT)):
        lines += [f".SH {title}", *(line for name, what in rows.items() for line in _entry(name, f"{what}."))]
    return "\n".join(lines)


def _date() -> str:
    """Of the page: today, or the one of a build that is to be reproducible (reproducible-builds.org/specs)."""
    given = whole(os.environ.get("SOURCE_DATE_EPOCH", ""))
    return time.strftime("%Y-%m-%d", time.gmtime(given if given is not None and 0 <= given < 1 << 40 else None))


def _verbs(group: Any, above: str) -> Iterator[tuple[str, Any]]:
    for name, verb in group.commands.items():
        if hasattr(verb, "commands"):
            yield from _verbs(verb, f"{above} {name}")
        else:
            yield f"{above} {name}", verb


def _usage(verb: Any, name: str) -> str:
    context = verb.make_context(name, [], resilient_parsing=True)
    return " ".join([name, *verb.collect_usage_pieces(context)])


def _options(verb: Any, name: str) -> Iterator[str]:
    context = verb.make_context(name, [], resilient_parsing=True)
    for parameter in verb.get_params(context):
        if (record := parameter.get_help_record(context)) is not None:
            yield from _entry(*record)


def _entry(term: str, what: str) -> Iterator[str]:
    yield ".TP"
    yield f"\\fB{_text(term)}\\fR"
    yield _text(what)


def _sentence(text: str) -> str:
    return text.split(". ")[0].rstrip(".")


def _text(text: str) -> str:
    """A line of text that troff does not read as anything else."""
    line = re.sub(r"\s+", " ", text).strip().replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{line}" if line.startswith((".", "'")) else line
