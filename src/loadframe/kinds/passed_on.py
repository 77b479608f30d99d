"""Settings of a private server that are not in the catalogue: a study may come from a stranger, and none of its
settings may run a program, load a library, reach another host, or name a file anywhere."""

import re
from collections.abc import Callable, Collection, Mapping

from loadframe.errors import StudyError
from loadframe.kinds.catalogue import Catalogue, plain
from loadframe.model import SettingValue

PLAIN = re.compile(r"[\w.,:=+%$\"@* -]*", re.ASCII)
"""Words, numbers, lists: no path, no second line, no quote that ends a value, nothing special to a shell."""
ZONE = re.compile(r"[A-Za-z_]+(/[A-Za-z0-9_+-]+){0,2}")
OF_MYSQL = (
    r"|.*(_|^)(file|filename|dir|datadir|tmpdir|path|directory|home_dir|index|socket|command|cmd|library|libraries"
    r"|basename|priv|proxy|url|address|host|port|tc|isam|recovery|error|user|secret|key)"
)
NEVER: Mapping[str, re.Pattern[str]] = {
    "mariadb": re.compile(
        r"(plugin|init|ssl|tls|wsrep|feedback|report|master|relay|slave|replicate|rpl|debug)_.*|ssl|debug|log_bin"
        + OF_MYSQL
    ),
    "mysql": re.compile(
        r"(plugin|init|ssl|tls|admin|mysqlx|report|master|relay|slave|source|replica|replicate|rpl|group_replication|ndb"
        r"|authentication|early|loose|log_error|telemetry|keyring|component|external)_.*|ssl|debug|daemonize|gdb|upgrade"
        r"|archive|blackhole|federated|ndbcluster|.*_(dirs|directories|keys|monitor)" + OF_MYSQL
    ),
    "postgres": re.compile(
        r"(ssl|krb|primary|recovery|restore|archive|synchronous_standby)_.*|ssl|jit_provider|bonjour.*|zero_.*"
        r"|(?!search_path).*(_|^)(file|keyfile|dir|destdir|path|directory|directories|command|library|libraries)"
    ),
}
"""Names, by what they begin or end with: programs, libraries, files and other hosts."""


def check(
    catalogue: Catalogue,
    settings: Mapping[str, SettingValue],
    *,
    reserved: frozenset[str],
    known: Callable[[], Collection[str]],
    texts: Callable[[], Collection[str]] = frozenset,
) -> dict[str, SettingValue]:
    """In canonical form. StudyError, also for one that may not be passed on. reserved: what a private instance
    decides itself. known: asks the installed server for the settings it knows besides the catalogue; it checks their
    bounds itself. texts: which of these accept any text and are not known to be harmless. Neither is called where
    the catalogue has all of them."""
    for given in settings:
        if plain(given) in reserved:
            raise StudyError(
                f"target.settings.{given}: a private instance sets this itself",
                remedy="Omit it; table_cache is called table_open_cache." if "cache" in given else "Omit it.",
            )
    others = {given: value for given, value in settings.items() if catalogue.get(plain(given)) is None}
    if not others:
        return catalogue.check(settings)
    free = texts()
    for given, value in others.items():
        if plain(given) in free or NEVER[catalogue.kind].fullmatch(plain(given)) is not None:
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
    return catalogue.check(settings, known())


def _is_plain(value: str) -> bool:
    """Also true for the name of a time zone, which has a slash."""
    return (PLAIN.fullmatch(value) is not None and ".." not in value) or ZONE.fullmatch(value) is not None
