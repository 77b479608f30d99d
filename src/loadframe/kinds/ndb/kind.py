"""MySQL Cluster (NDB) is no kind of target: of it files alone are read."""

from __future__ import annotations

from loadframe.kinds.kind import OnlyRead
from loadframe.kinds.ndb.programs import PACKAGE

KINDS = (
    OnlyRead(
        "ndb",
        fact="Loadframe starts no MySQL Cluster",
        remedy="`loadframe ndb CONFIG` checks its config.ini (docs/ndb.md).",
        requirements=lambda: PACKAGE.requirements("ndb"),
    ),
)
