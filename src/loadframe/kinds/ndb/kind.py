"""A private MySQL Cluster (NDB) as a kind of target; a config.ini of one is also checked, and started for a moment."""

from __future__ import annotations

from loadframe.errors import StudyError
from loadframe.host.leases import Lease
from loadframe.host.processes import Allowance
from loadframe.kinds.base import Target
from loadframe.kinds.kind import KindOfTarget
from loadframe.kinds.ndb.metrics import IN_FRONT
from loadframe.kinds.ndb.own_settings import CATALOGUE, checked
from loadframe.kinds.ndb.programs import LOADED
from loadframe.kinds.ndb.target import NdbTarget


def _never_alone(lease: Lease, allowance: Allowance) -> Target:
    raise StudyError(
        "a MySQL Cluster is made of data nodes, and the study does not say how many",
        remedy="Add target.shards: the number of data nodes, a multiple of NoOfReplicas.",
    )


KINDS = (
    KindOfTarget(
        NdbTarget.kind,
        _never_alone,
        CATALOGUE,
        checked,
        lambda: LOADED.requirements(NdbTarget.kind),
        make_shards=NdbTarget,
        before=IN_FRONT,
        loaded_by=frozenset({"command"}),
        one_system=True,
    ),
)
