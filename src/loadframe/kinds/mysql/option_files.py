"""Option files and command lines of MySQL's family (MariaDB documentation, "Configuring MariaDB with Option Files")."""

import re
from collections.abc import Collection, Iterable, Sequence
from itertools import islice
from pathlib import Path

from loadframe.errors import TargetError
from loadframe.formats.named_files import LARGEST_OPTION_FILE, read_text_up_to
from loadframe.host.processes import read_as

CLIENT_GROUPS = ("client", "client-server", "client-mariadb", "mysql", "mariadb-client")
SERVER_GROUPS = ("server", "mysqld", "mariadb", "mariadbd", "client-server")
MOST_FILES = 64
_GROUP = re.compile(r"\[\s*([^\]]+?)\s*\]")
_VERSIONED = re.compile(r"-\d+(\.\d+)*$")


def parse_options(text: str, groups: Collection[str]) -> dict[str, str]:
    """Options of these groups ("mysqld" also means "mysqld-10.11"), names with underscores; later ones win. An option
    without a value is "1". Included files are not read; lines that are not options are skipped."""
    options: dict[str, str] = {}
    wanted = False
    for raw in text.splitlines():
        line = raw.strip()
        if (group := _GROUP.match(line)) is not None:
            wanted = _VERSIONED.sub("", group[1].lower()) in groups
        elif wanted and line and line[0] not in "#;!":
            name, equals, value = line.partition("=")
            options[_name(name)] = _value(value) if equals else "1"
    return options


def read_client_options(path: Path) -> dict[str, str]:
    """TargetError where the file cannot be read."""
    try:
        return parse_options(read_text_up_to(path, LARGEST_OPTION_FILE), CLIENT_GROUPS)
    except OSError as error:
        raise TargetError(
            f"Cannot read the option file {path}: {error.strerror or error}",
            remedy="Name a file with a group [client] and user, password, perhaps socket or host.",
        ) from error


def configured_options(arguments: Sequence[str], files: Iterable[Path], user: int) -> dict[str, str]:
    """Options of the first MOST_FILES option files of a server, then of its command line. The files are read with its
    user's rights; what is not readable, too large or no file is skipped."""
    options: dict[str, str] = {}
    for path in islice(files, MOST_FILES):
        try:
            data = read_as(user, path, LARGEST_OPTION_FILE)
        except (OSError, ValueError):  # it is the server's file, not ours: its options stay unknown
            continue
        if len(data) <= LARGEST_OPTION_FILE:
            options |= parse_options(data.decode("utf-8", "replace"), SERVER_GROUPS)
    given = (word[2:].partition("=") for word in arguments if word.startswith("--"))
    return options | {_name(name): value if equals else "1" for name, equals, value in given if name}


def _name(text: str) -> str:
    return text.strip().lower().replace("-", "_").removeprefix("loose_")


def _value(text: str) -> str:
    text = text.strip()
    if text[:1] in ("'", '"') and (end := text.find(text[0], 1)) > 0:
        return text[1:end]
    return re.split(r"(?:^|\s)#", text, maxsplit=1)[0].strip()
