"""A private MySQL Cluster (NDB) as two kinds of target, without and with SQL nodes."""

from loadframe.errors import StudyError
from loadframe.host.environment import python_package
from loadframe.host.leases import Lease
from loadframe.host.processes import Resources
from loadframe.kinds.base import Target
from loadframe.kinds.kind import OF_STUDY, Attachable, KindOfTarget
from loadframe.kinds.mysql.attached import PASSWORD
from loadframe_ndb import own_settings as own
from loadframe_ndb.attached import NO_CHANGE, AttachedCluster, host_of
from loadframe_ndb.metrics import SQL_NODES
from loadframe_ndb.nodes import LOADED
from loadframe_ndb.private_cluster import MANAGER
from loadframe_ndb.sql_node import PACKAGE
from loadframe_ndb.target import NdbSqlTarget, NdbTarget


def _never_alone(lease: Lease, resources: Resources) -> Target:
    raise StudyError(
        "a MySQL Cluster is made of data nodes, and the study does not say how many",
        remedy="Add target.shards: the number of data nodes, a multiple of NoOfReplicas.",
    )


NDB = KindOfTarget(
    NdbTarget.kind,
    _never_alone,
    own.CATALOGUE,
    own.checked,
    lambda: LOADED.requirements(NdbTarget.kind),
    make_shards=NdbTarget,
    tunables=own.TUNABLES,
    file=OF_STUDY,
    before=(MANAGER,),
    loaded_by=frozenset({"command"}),
    one_system=True,
)
NDB_SQL = KindOfTarget(
    own.SQL_KIND,
    _never_alone,
    own.SQL_CATALOGUE,
    own.checked_with_sql,
    lambda: [
        *LOADED.requirements(NdbTarget.kind),
        *PACKAGE.requirements(own.SQL_KIND),
        python_package(own.SQL_KIND, "pymysql", "mariadb"),
    ],
    make_shards=NdbSqlTarget,
    tunables=own.SQL_TUNABLES,
    file=OF_STUDY,
    before=(MANAGER, SQL_NODES[0]),
    more_before=SQL_NODES[1:],
    attachable=Attachable(AttachedCluster, host_of, head="", password=PASSWORD, read_only=NO_CHANGE),
    ruled_as=NdbTarget.kind,
    loaded_by=frozenset({"sysbench"}),
    one_system=True,
)
