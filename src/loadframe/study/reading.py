"""From a TOML file and overrides to a Study, with errors that name the line, the value and what would be right."""

import difflib
import re
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from loadframe.errors import StudyError, UsageError
from loadframe.formats.named_files import read_up_to
from loadframe.formats.toml_text import LONGEST_KEY, TomlError, check_characters, parse_toml
from loadframe.masking import remember, secrets_in
from loadframe.study.declaration import Study
from loadframe.study.fields import Table

LARGEST_BYTES = 100_000

Declared = TypeVar("Declared", bound=Table)
EVERY_KEY = "`loadframe study schema` prints every key with its type."

MOST_PROBLEMS = 20

LONGEST_VALUE = 100
UNION_TAGS = {"list", "spread"}


def load(path: Path, overrides: Iterable[str] = ()) -> Study:
    """overrides: `section.key=value`, in order. StudyError."""
    text = read_text(path)
    return parse(text, overrides, name=str(path))


def load_as(declaration: type[Declared], path: Path, remedy: str) -> Declared:
    """Another TOML file, such as a fleet's. StudyError, with this remedy for wrong keys."""
    text, name = read_text(path, declaration.__name__.lower()), str(path)
    try:
        return declaration.model_validate(read_tables(text, name))
    except ValidationError as error:
        raise _explain(error, text, name, (), declaration, remedy) from error


def read_text(path: Path, what: str = "study") -> str:
    """StudyError where it is missing or not text. what: the kind of file, for messages."""
    try:
        data = read_up_to(path, LARGEST_BYTES)
        if len(data) > LARGEST_BYTES:
            raise StudyError(f"{path} is larger than {LARGEST_BYTES:,} bytes", remedy=f"Give a {what} file.")
        return data.decode("utf-8")
    except FileNotFoundError:
        raise StudyError(f"there is no {what} {path}", remedy=f"Give the path of a TOML {what} file.") from None
    except IsADirectoryError:
        raise StudyError(f"{path} is a folder", remedy=f"Give the path of the {what} file inside it.") from None
    except (OSError, UnicodeDecodeError) as error:
        fact = f"the {what} {path} cannot be read: {error}"
        raise StudyError(fact, remedy="It must be a text file in UTF-8.") from error


def parse(text: str, overrides: Iterable[str] = (), *, name: str = "study") -> Study:
    tables = read_tables(text, name)
    overridden = apply_overrides(tables, overrides)
    remember(secrets_in(tables))
    return validate(tables, text=text, name=name, overridden=overridden)


def read_tables(text: str, name: str) -> dict[str, Any]:
    """StudyError for invalid TOML, and for what no study has."""
    try:
        return parse_toml(text)
    except TomlError as error:
        key = error.key
        fact = f"{_place(key, text, name)}: {key}: {error}" if key else f"{name} is not valid TOML: {error}"
        raise StudyError(fact, remedy="Correct the keys named above.") from error


def validate(
    tables: Mapping[str, Any], *, text: str = "", name: str = "study", overridden: Collection[str] = ()
) -> Study:
    """text: where lines are looked up; overridden: the keys from --set."""
    try:
        return Study.model_validate(tables)
    except ValidationError as error:
        raise _explain(error, text, name, overridden) from error


def merge(tables: dict[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """changes: by dotted keys, {"load.levels": [1, 2]}."""
    for dotted, value in changes.items():
        _put(tables, dotted, value)
    return tables


def apply_overrides(tables: dict[str, Any], overrides: Iterable[str]) -> set[str]:
    """Returns the keys. UsageError for other forms."""
    keys = set()
    for override in overrides:
        key, separator, value = map(str.strip, override.partition("="))
        if not separator or not re.fullmatch(rf"[A-Za-z_][\w-]*(\.[A-Za-z_][\w-]*){{0,{LONGEST_KEY - 1}}}", key):
            raise UsageError(
                f"--set {quoted(override)} is not of the form section.key=value",
                remedy="For example --set target.settings.table_open_cache=400 or --set 'load.levels=[1, 2, 4]'.",
            )
        try:
            _put(tables, key, _value(value))
        except TomlError as error:
            raise UsageError(f"--set {key}: {error}", remedy="Give another value.") from error
        keys.add(key)
    return keys


def _value(text: str) -> Any:
    """Else the text itself (`--set measure.window=2s` needs no quotes). TomlError."""
    check_characters("", text)
    try:
        table = parse_toml(f"value = {text}")
    except TomlError as error:
        if error.key:
            raise
        return text
    return table["value"] if len(table) == 1 else text


def _put(tables: dict[str, Any], dotted: str, value: Any) -> None:
    *path, last = dotted.split(".")
    table: Any = tables
    for part in path:
        table = table.setdefault(part, {})
        if not isinstance(table, dict):
            raise StudyError(
                f"{dotted!r} cannot be set: {part!r} is a value, not a table", remedy="Check the key's path."
            )
    table[last] = value


def _explain(
    error: ValidationError,
    text: str,
    name: str,
    overridden: Collection[str],
    declaration: type[BaseModel] = Study,
    remedy: str = EVERY_KEY,
) -> StudyError:
    problems = list(dict.fromkeys(_sentence(item, declaration) for item in error.errors()))
    lines = [f"{_place(key, text, name, overridden)}: {sentence}" for key, sentence in problems[:MOST_PROBLEMS]]
    if len(problems) > MOST_PROBLEMS:
        lines.append(f"... and {len(problems) - MOST_PROBLEMS:,} more")
    return StudyError("\n".join(lines), remedy=remedy)


def _sentence(item: Any, declaration: type[BaseModel]) -> tuple[str, str]:
    parts = [part for part in item["loc"] if isinstance(part, str) and part not in UNION_TAGS]
    key = ".".join(parts) or declaration.__name__.lower()
    value = item.get("input")
    match item["type"]:
        case "extra_forbidden" | "model_type" if parts[-1] not in (known := _known_keys(parts[:-1], declaration)):
            close = difflib.get_close_matches(parts[-1], known, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"known here: {', '.join(known)}"
            return key, f"unknown key {key!r}; {hint}"
        case "missing":
            return key, f"{key!r} is missing"
        case "value_error":
            return key, str(item["ctx"]["error"])
        case "string_pattern_mismatch":
            return key, f"{key} = {quoted(value)} may have lower-case letters, digits and dashes only"
        case _:
            return key, f"{key} = {quoted(value)}: {item['msg'][:1].lower() + item['msg'][1:]}"


def quoted(value: object) -> str:
    text = repr(value)
    return text if len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]}..."


def _known_keys(path: list[str], declaration: type[BaseModel]) -> list[str]:
    model: type[BaseModel] | None = declaration
    for part in path:
        field = model.model_fields.get(part) if model is not None else None
        model = None if field is None else _table_of(field.annotation)
    return [] if model is None else [field.alias or name for name, field in model.model_fields.items()]


def _table_of(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next(filter(None, map(_table_of, getattr(annotation, "__args__", ()))), None)


def _place(key: str, text: str, name: str, overridden: Collection[str] = ()) -> str:
    if any(key == other or key.startswith(other + ".") or other.startswith(key + ".") for other in overridden):
        return f"--set {key}"
    line = find_line(text, key)
    return f"{name}, line {line}" if line else name


def find_line(text: str, dotted: str) -> int | None:
    """From 1; of the key, else of the nearest table above it."""
    table: list[str] = []
    lines: dict[tuple[str, ...], int] = {}
    for number, line in enumerate(map(str.strip, text.split("\n")), start=1):
        if header := re.match(r"^\[\[?\s*([^\]]+?)\s*\]\]?", line):
            table = [part.strip().strip("\"'") for part in header[1].split(".")]
            lines.setdefault(tuple(table), number)
        elif assignment := re.match(r"^([\w.\"'-]+)\s*=", line):
            here = (*table, *(part.strip("\"'") for part in assignment[1].split(".")))
            lines.setdefault(here, number)
            for inline in re.findall(r"[{,]\s*([^\s{},=]+)\s*=", line):
                lines.setdefault((*here, inline), number)
    parts = dotted.split(".")
    known = (lines.get(tuple(parts[:depth])) for depth in range(len(parts), 0, -1))
    return next(filter(None, known), None)
