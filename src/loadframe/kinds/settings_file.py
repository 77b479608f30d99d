"""Settings as each target's own file says them, to copy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from loadframe.errors import StudyError
from loadframe.kinds.registry import setting
from loadframe.model import SettingValue


@dataclass(frozen=True, slots=True)
class Form:
    """file: its name. head: its first lines. line: with {name} and {value} in it. quotes: around a word. size: after a
    number of bytes. words: for false and true."""

    file: str
    line: str
    head: str = ""
    quotes: str = ""
    size: str = ""
    words: tuple[str, str] = ("off", "on")


FORMS: Mapping[str, Form] = {
    "mariadb": Form("tuned.cnf", "{name} = {value}", head="[mariadbd]\n", words=("OFF", "ON")),
    "postgres": Form("tuned.conf", "{name} = {value}", quotes="'", size="B"),
    "sqlite": Form("tuned.sql", "PRAGMA {name} = {value};"),
    "nginx": Form("tuned.conf", "{name} {value};"),
    "nginx-cache": Form("tuned.conf", "{name} {value};"),
    "squid": Form("tuned.conf", "{name} {value}"),
    "varnish": Form("tuned.args", "-p {name}={value}"),
}
"""PostgreSQL reads a bare number of shared_buffers in pages, of max_wal_size in megabytes: bytes need their B
(https://www.postgresql.org/docs/current/config-setting.html)."""


def written(kind: str, settings: Mapping[str, SettingValue]) -> tuple[str, str]:
    """The settings as the target's own file has them: its name and its text. StudyError for a kind that has no such
    file, and for a name or a word that would be more than a part of a line."""
    form = FORMS.get(kind)
    if form is None:
        raise StudyError(f"no settings of {kind} are searched", remedy=f"Those of {', '.join(FORMS)} are.")
    for word in (word for setting_ in settings.items() for word in setting_ if isinstance(word, str)):
        if not word.isprintable():
            raise StudyError(
                f"{word!a} does not belong in a line of {form.file}", remedy="Give it without such characters."
            )
    lines = (form.line.format(name=name, value=_word(kind, form, name, value)) for name, value in settings.items())
    return form.file, form.head + "".join(f"{line}\n" for line in lines)


def _word(kind: str, form: Form, name: str, value: SettingValue) -> str:
    if isinstance(value, bool):
        return form.words[value]
    if isinstance(value, str):
        return f"{form.quotes}{value}{form.quotes}"
    spec = setting(kind, name)
    sized = spec is not None and spec.kind == "bytes" and value >= 0
    return f"{form.quotes}{value}{form.size}{form.quotes}" if sized and form.size else str(value)
