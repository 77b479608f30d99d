"""Totals of each directory, which the database itself keeps current: du of a tree reads a row for each directory, in
place of one for each entry.

Triggers change the totals in the transaction that changes an entry. So a batch that is applied twice, a rename, a kill
or two writers at once leave totals that equal the entries, as the rows of these do. A file with several names is
counted by its number of names alone (`linked`): in which of its directories it is counted depends on what is asked.
Sizes are kept in two parts, so that the sum of those that a file system may tell fits into 64 bits.
"""

from __future__ import annotations

from typing import LiteralString

LOW_BITS = 32
LOW = (1 << LOW_BITS) - 1
ONE_NAME: LiteralString = "({row}.links < 2 OR {row}.type = 'd')"
OF_FILES: LiteralString = "{row}.type IN ('f', 'l')"
SUMS: tuple[LiteralString, ...] = ("entries", "linked", "blocks", "high", "low", "other")
"""Of the table `totals`, beside the directory and the one that has it. linked: files with several names, which all that
follows leaves out. blocks: of 512 bytes. high, low: sizes of files and symbolic links, in units of 2^32 bytes and what
is left. other: the sizes of all others."""


def _of(row: LiteralString) -> tuple[LiteralString, ...]:
    """What one entry adds to each of SUMS."""
    one = ONE_NAME.replace("{row}", row)
    sized = f"{one} AND {OF_FILES.replace('{row}', row)}"
    return (
        "1",
        f"CASE WHEN {one} THEN 0 ELSE 1 END",
        f"CASE WHEN {one} THEN {row}.blocks ELSE 0 END",
        f"CASE WHEN {sized} THEN {row}.size >> {LOW_BITS} ELSE 0 END",
        f"CASE WHEN {sized} THEN {row}.size & {LOW} ELSE 0 END",
        f"CASE WHEN {one} AND NOT {OF_FILES.replace('{row}', row)} THEN {row}.size ELSE 0 END",
    )


ENTRY = _of("entries")
"""Of an entry, in the order of the sums."""
_NEW: LiteralString = ", ".join(_of("NEW"))
_LESS: LiteralString = ", ".join(f"{name} = {name} - ({value})" for name, value in zip(SUMS, _of("OLD"), strict=True))
_OTHERWISE: LiteralString = " OR ".join(f"OLD.{name} <> NEW.{name}" for name in ("type", "links", "blocks", "size"))
"""Of an entry that is written again. Its id is a hash of its path, so its directory stays."""
_SUBTRACT: LiteralString = f"UPDATE totals SET {_LESS} WHERE directory = OLD.parent;"
_EMPTY: LiteralString = "DELETE FROM totals WHERE directory = {id} AND entries = 0 AND above IS NULL;"
_GONE: LiteralString = f"UPDATE totals SET above = NULL WHERE directory = OLD.id; {_EMPTY.replace('{id}', 'OLD.id')}"
_NO_MORE: LiteralString = f"{_SUBTRACT} {_EMPTY.replace('{id}', 'OLD.parent')}"

# --- SQLite -----------------------------------------------------------------------------------------------------------

_MORE: LiteralString = ", ".join(f"{name} = totals.{name} + excluded.{name}" for name in SUMS)
_ADD: LiteralString = (
    f"INSERT INTO totals VALUES (NEW.parent, NULL, {_NEW}) ON CONFLICT (directory) DO UPDATE SET {_MORE};"
)
_THERE: LiteralString = (
    "INSERT INTO totals VALUES (NEW.id, NEW.parent, 0, 0, 0, 0, 0, 0)"
    " ON CONFLICT (directory) DO UPDATE SET above = excluded.above;"
)
"""As PostgreSQL understands them, too."""
SQLITE: tuple[LiteralString, ...] = (
    """CREATE TABLE totals (directory BLOB PRIMARY KEY, above BLOB, entries INTEGER NOT NULL, linked INTEGER NOT NULL,
    blocks INTEGER NOT NULL, high INTEGER NOT NULL, low INTEGER NOT NULL, other INTEGER NOT NULL) WITHOUT ROWID""",
    "CREATE INDEX totals_above ON totals (above)",
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

# --- MariaDB ----------------------------------------------------------------------------------------------------------

_MARIADB_MORE: LiteralString = ", ".join(f"{name} = {name} + VALUES({name})" for name in SUMS)
_MARIADB_ADD: LiteralString = (
    f"INSERT INTO totals VALUES (NEW.parent, NULL, {_NEW}) ON DUPLICATE KEY UPDATE {_MARIADB_MORE};"
)
_MARIADB_THERE: LiteralString = (
    "INSERT INTO totals VALUES (NEW.id, NEW.parent, 0, 0, 0, 0, 0, 0) ON DUPLICATE KEY UPDATE above = VALUES(above);"
)
MARIADB: tuple[LiteralString, ...] = (
    """CREATE TABLE totals (directory BINARY(16) PRIMARY KEY, above BINARY(16), entries BIGINT NOT NULL,
    linked BIGINT NOT NULL, blocks BIGINT NOT NULL, high BIGINT NOT NULL, low BIGINT NOT NULL, other BIGINT NOT NULL,
    INDEX totals_above (above)) ENGINE = InnoDB""",
    f"CREATE TRIGGER totals_new AFTER INSERT ON entries FOR EACH ROW BEGIN {_MARIADB_ADD} "
    f"IF NEW.type = 'd' THEN {_MARIADB_THERE} END IF; END",
    f"CREATE TRIGGER totals_other AFTER UPDATE ON entries FOR EACH ROW BEGIN IF {_OTHERWISE} THEN "
    f"{_SUBTRACT} {_MARIADB_ADD} IF OLD.type = 'd' AND NEW.type <> 'd' THEN {_GONE} END IF; "
    f"IF OLD.type <> 'd' AND NEW.type = 'd' THEN {_MARIADB_THERE} END IF; END IF; END",
    f"CREATE TRIGGER totals_less AFTER DELETE ON entries FOR EACH ROW BEGIN {_NO_MORE} "
    f"IF OLD.type = 'd' THEN {_GONE} END IF; END",
)

# --- PostgreSQL -------------------------------------------------------------------------------------------------------

_SUMMED: LiteralString = ", ".join(f"sum({value})" for value in _of("changed"))
_SUMMED_LESS: LiteralString = ", ".join(f"{name} = totals.{name} - less.{name}" for name in SUMS)
_NAMED: LiteralString = ", ".join(f"sum({value}) AS {name}" for name, value in zip(SUMS, _of("changed"), strict=True))
_FUNCTION: LiteralString = (
    "CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$ BEGIN {body} "
    "RETURN NULL; END $$"
)
_FOR_EACH_STATEMENT: LiteralString = "FOR EACH STATEMENT EXECUTE FUNCTION"
FUNCTIONS: tuple[LiteralString, ...] = ("totals_new", "totals_other", "totals_less")
"""Of PostgreSQL: they do not go with the table."""
POSTGRES: tuple[LiteralString, ...] = (
    """CREATE TABLE totals (directory bytea PRIMARY KEY, above bytea, entries bigint NOT NULL, linked bigint NOT NULL,
    blocks bigint NOT NULL, high bigint NOT NULL, low bigint NOT NULL, other bigint NOT NULL)""",
    "CREATE INDEX totals_above ON totals (above)",
    _FUNCTION.replace("{name}", "totals_new").replace(
        "{body}",
        f"INSERT INTO totals SELECT parent, NULL, {_SUMMED} FROM changed GROUP BY parent ORDER BY parent "
        f"ON CONFLICT (directory) DO UPDATE SET {_MORE}; "
        "INSERT INTO totals SELECT id, parent, 0, 0, 0, 0, 0, 0 FROM changed WHERE type = 'd' ORDER BY id "
        "ON CONFLICT (directory) DO UPDATE SET above = excluded.above;",
    ),
    _FUNCTION.replace("{name}", "totals_other").replace(
        "{body}",
        f"{_SUBTRACT} {_ADD} IF OLD.type = 'd' AND NEW.type <> 'd' THEN {_GONE} END IF; "
        f"IF OLD.type <> 'd' AND NEW.type = 'd' THEN {_THERE} END IF;",
    ),
    _FUNCTION.replace("{name}", "totals_less").replace(
        "{body}",
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
"""A new entry and one that goes are counted by statement, one that is otherwise by row: these are few."""
