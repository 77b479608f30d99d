"""Totals of each directory, for du of a tree: triggers change them in the transaction that changes an entry, so they
equal the entries whatever happens. A file with several names only counts in `linked`: where it is counted depends on
the question. Sizes are kept in two parts, whose sums fit into 64 bits."""

LOW_BITS = 32
LOW = (1 << LOW_BITS) - 1
SUMS: tuple[str, ...] = ("entries", "linked", "blocks", "high", "low", "other")
"""Columns of `totals`. linked: files with several names, which all further ones leave out. blocks: of 512 bytes. high,
low: sizes of files and symbolic links, in units of 2^32 bytes and the rest. other: the sizes of all others."""


def _of(row: str) -> tuple[str, ...]:
    one_name, of_files = f"({row}.links < 2 OR {row}.type = 'd')", f"{row}.type IN ('f', 'l')"
    sized = f"{one_name} AND {of_files}"
    return (
        "1",
        f"CASE WHEN {one_name} THEN 0 ELSE 1 END",
        f"CASE WHEN {one_name} THEN {row}.blocks ELSE 0 END",
        f"CASE WHEN {sized} THEN {row}.size >> {LOW_BITS} ELSE 0 END",
        f"CASE WHEN {sized} THEN {row}.size & {LOW} ELSE 0 END",
        f"CASE WHEN {one_name} AND NOT {of_files} THEN {row}.size ELSE 0 END",
    )


ENTRY = _of("entries")
"""What an entry adds to the sums, in their order."""
_NEW = ", ".join(_of("NEW"))
_LESS = ", ".join(f"{name} = {name} - ({value})" for name, value in zip(SUMS, _of("OLD"), strict=True))
_OTHERWISE = " OR ".join(f"OLD.{name} <> NEW.{name}" for name in ("type", "links", "blocks", "size"))
"""Whether an entry that is written again differs. Its id is a hash of its path, so its directory stays."""
_SUBTRACT = f"UPDATE totals SET {_LESS} WHERE directory = OLD.parent;"
_EMPTY = "DELETE FROM totals WHERE directory = {id} AND entries = 0 AND above IS NULL;"
_GONE = f"UPDATE totals SET above = NULL WHERE directory = OLD.id; {_EMPTY.replace('{id}', 'OLD.id')}"
_NO_MORE = f"{_SUBTRACT} {_EMPTY.replace('{id}', 'OLD.parent')}"
_BECAME, _WAS = "OLD.type <> 'd' AND NEW.type = 'd'", "OLD.type = 'd' AND NEW.type <> 'd'"
_NEW_ROW = f"INSERT INTO totals VALUES (NEW.parent, NULL, {_NEW})"
_NEW_DIRECTORY = "INSERT INTO totals VALUES (NEW.id, NEW.parent, 0, 0, 0, 0, 0, 0)"


def _replaced(add: str, there: str) -> str:
    """In the two databases whose triggers know IF."""
    return f"{_SUBTRACT} {add} IF {_WAS} THEN {_GONE} END IF; IF {_BECAME} THEN {there} END IF;"


# --- SQLite ---

_MORE = ", ".join(f"{name} = totals.{name} + excluded.{name}" for name in SUMS)
_ADD = f"{_NEW_ROW} ON CONFLICT (directory) DO UPDATE SET {_MORE};"
_ABOVE = "ON CONFLICT (directory) DO UPDATE SET above = excluded.above;"
_THERE = f"{_NEW_DIRECTORY} {_ABOVE}"
"""Also valid for PostgreSQL."""
SQLITE = tuple(
    f"CREATE TRIGGER totals_{name} AFTER {event} BEGIN {action} END"
    for name, event, action in (
        ("new", "INSERT ON entries", _ADD),
        ("there", "INSERT ON entries WHEN NEW.type = 'd'", _THERE),
        ("other", f"UPDATE OF type, links, blocks, size ON entries WHEN {_OTHERWISE}", f"{_SUBTRACT} {_ADD}"),
        ("became", f"UPDATE OF type ON entries WHEN {_BECAME}", _THERE),
        ("was", f"UPDATE OF type ON entries WHEN {_WAS}", _GONE),
        ("less", "DELETE ON entries", _NO_MORE),
        ("gone", "DELETE ON entries WHEN OLD.type = 'd'", _GONE),
    )
)

# --- MariaDB ---

_MARIADB_MORE = ", ".join(f"{name} = {name} + VALUES({name})" for name in SUMS)
_MARIADB_ADD = f"{_NEW_ROW} ON DUPLICATE KEY UPDATE {_MARIADB_MORE};"
_MARIADB_THERE = f"{_NEW_DIRECTORY} ON DUPLICATE KEY UPDATE above = VALUES(above);"
MARIADB = tuple(
    f"CREATE TRIGGER totals_{name} AFTER {event} ON entries FOR EACH ROW BEGIN {action} END IF; END"
    for name, event, action in (
        ("new", "INSERT", f"{_MARIADB_ADD} IF NEW.type = 'd' THEN {_MARIADB_THERE}"),
        ("other", "UPDATE", f"IF {_OTHERWISE} THEN {_replaced(_MARIADB_ADD, _MARIADB_THERE)}"),
        ("less", "DELETE", f"{_NO_MORE} IF OLD.type = 'd' THEN {_GONE}"),
    )
)

# --- PostgreSQL ---

_SUMMED = ", ".join(f"sum({value})" for value in _of("changed"))
_SUMMED_LESS = ", ".join(f"{name} = totals.{name} - less.{name}" for name in SUMS)
_NAMED = ", ".join(f"sum({value}) AS {name}" for name, value in zip(SUMS, _of("changed"), strict=True))
_ACTIONS = {
    "new": (
        "INSERT ON entries REFERENCING NEW TABLE AS changed FOR EACH STATEMENT",
        f"INSERT INTO totals SELECT parent, NULL, {_SUMMED} FROM changed GROUP BY parent ORDER BY parent "
        f"ON CONFLICT (directory) DO UPDATE SET {_MORE}; "
        f"INSERT INTO totals SELECT id, parent, 0, 0, 0, 0, 0, 0 FROM changed WHERE type = 'd' ORDER BY id {_ABOVE}",
    ),
    "other": (
        f"UPDATE OF type, links, blocks, size ON entries FOR EACH ROW WHEN ({_OTHERWISE})",
        _replaced(_ADD, _THERE),
    ),
    "less": (
        "DELETE ON entries REFERENCING OLD TABLE AS changed FOR EACH STATEMENT",
        f"UPDATE totals SET {_SUMMED_LESS} FROM (SELECT parent, {_NAMED} FROM changed GROUP BY parent) AS less "
        "WHERE totals.directory = less.parent; "
        "UPDATE totals SET above = NULL FROM changed WHERE changed.type = 'd' AND totals.directory = changed.id; "
        "DELETE FROM totals USING (SELECT id FROM changed WHERE type = 'd' UNION SELECT parent FROM changed) AS seen "
        "WHERE totals.directory = seen.id AND totals.entries = 0 AND totals.above IS NULL;",
    ),
}
"""New and deleted entries are counted by statement, changed ones by row: these are few."""
FUNCTIONS = tuple(f"totals_{name}" for name in _ACTIONS)
"""Dropping the table does not drop them."""
POSTGRES = tuple(
    statement
    for name, (event, action) in _ACTIONS.items()
    for statement in (
        f"CREATE FUNCTION totals_{name}() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT "
        f"AS $$ BEGIN {action} RETURN NULL; END $$",
        f"CREATE TRIGGER totals_{name} AFTER {event} EXECUTE FUNCTION totals_{name}()",
    )
)
