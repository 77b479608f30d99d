"""MariaDB as a kind of target."""

from __future__ import annotations

from loadframe.host.environment import python_package
from loadframe.kinds.kind import Attachable, KindOfTarget, SettingsFile
from loadframe.kinds.mariadb.attached import AttachedMariadb
from loadframe.kinds.mariadb.server import PACKAGE
from loadframe.kinds.mariadb.settings import CATALOGUE, TUNABLES
from loadframe.kinds.mariadb.target import MariadbTarget, check_settings
from loadframe.kinds.mysql_attached import PASSWORD, host_of
from loadframe.model import Requirement


def requirements() -> list[Requirement]:
    return [*PACKAGE.requirements("mariadb"), python_package("mariadb", "pymysql", "mariadb")]


KINDS = (
    KindOfTarget(
        MariadbTarget.kind,
        MariadbTarget,
        CATALOGUE,
        check_settings,
        requirements,
        tunables=TUNABLES,
        file=SettingsFile("tuned.cnf", "{name} = {value}", head="[mariadbd]\n", words=("OFF", "ON")),
        attachable=Attachable(AttachedMariadb, host_of, head="[mysqld]\n", password=PASSWORD),
        worked_out=frozenset({"open_files_limit"}),
    ),
)
