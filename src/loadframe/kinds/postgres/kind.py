"""PostgreSQL as a kind of target: one server, or several side by side as shards."""

from loadframe.kinds.kind import Attachable, KindOfTarget, SettingsFile
from loadframe.kinds.postgres.attached import PASSWORD, AttachedPostgres, host_of
from loadframe.kinds.postgres.server import requirements
from loadframe.kinds.postgres.settings import CATALOGUE, TUNABLES
from loadframe.kinds.postgres.shards import PostgresShards
from loadframe.kinds.postgres.target import PostgresTarget

FILE = SettingsFile(
    "tuned.conf", "{name} = {value}", quotes="'", size="B", statement="ALTER SYSTEM SET {name} = {value};"
)
"""Bare numbers are pages or megabytes: bytes get a B (https://www.postgresql.org/docs/current/config-setting.html)."""
KINDS = (
    KindOfTarget(
        PostgresTarget.kind,
        PostgresTarget,
        CATALOGUE,
        PostgresTarget.check_settings,
        requirements,
        make_shards=lambda lease, resources: PostgresShards(lease=lease, resources=list(resources.values())),
        tunables=TUNABLES,
        file=FILE,
        attachable=Attachable(AttachedPostgres, host_of, head="", password=PASSWORD),
    ),
)
