"""Totals of each directory, for du of a tree: triggers change them in the transaction that changes an entry, so they
equal the entries whatever happens. A file with several names only counts in `linked`: in which directory it is counted
depends on the question. Sizes are kept in two parts, whose sums fit into 64 bits."""

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

# --- SQLite ---

_MORE = ", ".join(f"{name} = totals.{name} + excluded.{name}" for name in SUMS)
_ADD = f"INSERT INTO totals VALUES (NEW.parent, NULL, {_NEW}) ON CONFLICT (directory) DO UPDATE SET {_MORE};"
_THERE = (
    "INSERT INTO totals VALUES (NEW.id, NEW.parent, 0, 0, 0, 0, 0, 0)"
    " ON CONFLICT (directory) DO UPDATE SET above = excluded.above;"
)
"""Also valid for PostgreSQL."""
SQLITE = (
    f"CREATE TRIGGER totals_new AFTER INSERT ON entries BEGIN {_ADD} END",
    f"CREATE TRIGGER totals_there AFTER INSERT ON entries WHEN NEW.type = 'd' BEGIN {_THERE} END",
    f"CREATE TRIGGER totals_other AFTER UPDATE OF type, links, blocks, size ON entries WHEN {_OTHERWISE} "
    f"BEGIN {_SUBTRACT} {_ADD} END",
    f"CREATE TRIGGER totals_became AFTER UPDATE OF type ON entries WHEN OLD.type <> 'd' AND NEW.type = 'd' "
    f"BEGIN {_THERE} END",
    f"CREATE TRIGGER totals_was AFTER UPDATE OF type ON entries WHEN OLD.type = 'd' AND NEW.type <> 'd' "
    f"BEGIN {_GONE} END",
    f"CREATE TRIGGER totals_less AFTER DELETE ON entries BEGIN {_NO_MORE} END",
    f"CREATE TRIGGER totals_gone AFTER DELETE ON entries WHEN OLD.type = 'd' BEGIN {_GONE} END",
)

# --- MariaDB ---

_MARIADB_MORE = ", ".join(f"{name} = {name} + VALUES({name})" for name in SUMS)
_MARIADB_ADD = f"INSERT INTO totals VALUES (NEW.parent, NULL, {_NEW}) ON DUPLICATE KEY UPDATE {_MARIADB_MORE};"
_MARIADB_THERE = (
    "INSERT INTO totals VALUES (NEW.id, NEW.parent, 0, 0, 0, 0, 0, 0) ON DUPLICATE KEY UPDATE above = VALUES(above);"
)
MARIADB = (
    f"CREATE TRIGGER totals_new AFTER INSERT ON entries FOR EACH ROW BEGIN {_MARIADB_ADD} "
    f"IF NEW.type = 'd' THEN {_MARIADB_THERE} END IF; END",
    f"CREATE TRIGGER totals_other AFTER UPDATE ON entries FOR EACH ROW BEGIN IF {_OTHERWISE} THEN "
    f"{_SUBTRACT} {_MARIADB_ADD} IF OLD.type = 'd' AND NEW.type <> 'd' THEN {_GONE} END IF; "
    f"IF OLD.type <> 'd' AND NEW.type = 'd' THEN {_MARIADB_THERE} END IF; END IF; END",
    f"CREATE TRIGGER totals_less AFTER DELETE ON entries FOR EACH ROW BEGIN {_NO_MORE} "
    f"IF OLD.type = 'd' THEN {_GONE} END IF; END",
)

# --- PostgreSQL ---

_SUMMED = ", ".join(f"sum({value})" for value in _of("changed"))
_SUMMED_LESS = ", ".join(f"{name} = totals.{name} - less.{name}" for name in SUMS)
_NAMED = ", ".join(f"sum({value}) AS {name}" for name, value in zip(SUMS, _of("changed"), strict=True))
_FUNCTION = (
    "CREATE FUNCTION {}() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$ BEGIN {} "
    "RETURN NULL; END $$"
)
_FOR_EACH_STATEMENT = "FOR EACH STATEMENT EXECUTE FUNCTION"
FUNCTIONS: tuple[str, ...] = ("totals_new", "totals_other", "totals_less")
"""Functions of PostgreSQL: dropping the table does not drop them."""
POSTGRES = (
    _FUNCTION.format(
        "totals_new",
        f"INSERT INTO totals SELECT parent, NULL, {_SUMMED} FROM changed GROUP BY parent ORDER BY parent "
        f"ON CONFLICT (directory) DO UPDATE SET {_MORE}; "
        "INSERT INTO totals SELECT id, parent, 0, 0, 0, 0, 0, 0 FROM changed WHERE type = 'd' ORDER BY id "
        "ON CONFLICT (directory) DO UPDATE SET above = excluded.above;",
    ),
    _FUNCTION.format(
        "totals_other",
        f"{_SUBTRACT} {_ADD} IF OLD.type = 'd' AND NEW.type <> 'd' THEN {_GONE} END IF; "
        f"IF OLD.type <> 'd' AND NEW.type = 'd' THEN {_THERE} END IF;",
    ),
    _FUNCTION.format(
        "totals_less",
        f"UPDATE totals SET {_SUMMED_LESS} FROM (SELECT parent, {_NAMED} FROM changed GROUP BY parent) AS less "
        "WHERE totals.directory = less.parent; "
        "UPDATE totals SET above = NULL FROM changed WHERE changed.type = 'd' AND totals.directory = changed.id; "
        "DELETE FROM totals USING (SELECT id FROM changed WHERE type = 'd' UNION SELECT parent FROM changed) AS seen "
        "WHERE totals.directory = seen.id AND totals.entries = 0 AND totals.above IS NULL;",
    ),
    f"CREATE TRIGGER totals_new AFTER INSERT ON entries REFERENCING NEW TABLE AS changed "
    f"{_FOR_EACH_STATEMENT} totals_new()",
    f"CREATE TRIGGER totals_other AFTER UPDATE OF type, links, blocks, size ON entries FOR EACH ROW "
    f"WHEN ({_OTHERWISE}) EXECUTE FUNCTION totals_other()",
    f"CREATE TRIGGER totals_less AFTER DELETE ON entries REFERENCING OLD TABLE AS changed "
    f"{_FOR_EACH_STATEMENT} totals_less()",
)
"""New and deleted entries are counted by statement, changed ones by row: these are few."""
