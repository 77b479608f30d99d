"""MySQL Cluster (NDB) is no kind of target yet: a config.ini of it is checked, and started for a moment."""

from __future__ import annotations

from loadframe.kinds.kind import OnlyRead
from loadframe.kinds.ndb.programs import PACKAGE

KINDS = (
    OnlyRead(
        "ndb",
        fact="Loadframe loads no MySQL Cluster",
        remedy="`loadframe ndb CONFIG` checks its config.ini, and starts a private cluster with it (docs/ndb.md).",
        requirements=lambda: PACKAGE.requirements("ndb"),
    ),
)
