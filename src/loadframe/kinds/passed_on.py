"""Settings of a private server that no catalogue knows, and that are passed on to it: a study may come from somebody
else, and none of its settings may run a program, load a library, reach another host, or name a file anywhere."""

from __future__ import annotations

import re
from collections.abc import Mapping

from loadframe.errors import StudyError
from loadframe.model import SettingValue

PLAIN = re.compile(r"[\w.,:=+%$\"@* -]*", re.ASCII)
"""Words, numbers, lists: no path, no second line, no quote that ends a value, nothing that a shell reads."""
ZONE = re.compile(r"[A-Za-z_]+(/[A-Za-z0-9_+-]+){0,2}")
NEVER: Mapping[str, re.Pattern[str]] = {
    "mariadb": re.compile(
        r"(plugin|init|ssl|tls|wsrep|feedback|report|master|relay|slave|replicate|rpl|debug)_.*|ssl|debug|log_bin"
        r"|.*(_|^)(file|filename|dir|datadir|tmpdir|path|directory|home_dir|index|socket|command|cmd|library|libraries"
        r"|basename|priv|proxy|url|address|host|port|tc|isam|recovery|error|user|secret|key)"
    ),
    "postgres": re.compile(
        r"(ssl|krb|primary|recovery|restore|archive|synchronous_standby)_.*|ssl|jit_provider|bonjour.*|zero_.*"
        r"|(?!search_path).*(_|^)(file|keyfile|dir|destdir|path|directory|directories|command|library|libraries)"
    ),
}
"""Names, by what they end or begin with: programs, libraries, files and other hosts."""


def check(kind: str, known: frozenset[str], settings: Mapping[str, SettingValue], texts: frozenset[str]) -> None:
    """StudyError for one of the settings that may not be passed on. known: names of the catalogue, which bounds their
    values. texts: those that take any text and are not known to be harmless, where the server tells what they take."""
    for given, value in settings.items():
        name = given.strip().lower().replace("-", "_")
        if name in known:
            continue
        if name in texts or NEVER[kind].fullmatch(name) is not None:
            raise StudyError(
                f"target.settings.{given}: a private instance does not take programs, libraries, files and other hosts "
                "from a study",
                remedy="Omit it, or set up a server of your own with it and attach to it (target.attach).",
            )
        if isinstance(value, str) and not _is_plain(value):
            raise StudyError(
                f"target.settings.{given} = {value!r} contains more than words, numbers and lists",
                remedy="Paths, line breaks and quotes are not passed on.",
            )


def _is_plain(value: str) -> bool:
    """Or the name of a time zone, which has a slash."""
    return (PLAIN.fullmatch(value) is not None and ".." not in value) or ZONE.fullmatch(value) is not None
