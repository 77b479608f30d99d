"""MySQL as a kind of target."""

from __future__ import annotations

from loadframe.host.environment import python_package
from loadframe.kinds.kind import Attachable, KindOfTarget, SettingsFile
from loadframe.kinds.mysql.attached import AttachedMysql
from loadframe.kinds.mysql.server import PACKAGE
from loadframe.kinds.mysql.settings import CATALOGUE, TUNABLES
from loadframe.kinds.mysql.target import MysqlTarget, check_settings
from loadframe.kinds.mysql_attached import PASSWORD, host_of
from loadframe.model import Requirement


def requirements() -> list[Requirement]:
    return [*PACKAGE.requirements("mysql"), python_package("mysql", "pymysql", "mariadb")]


KINDS = (
    KindOfTarget(
        MysqlTarget.kind,
        MysqlTarget,
        CATALOGUE,
        check_settings,
        requirements,
        tunables=TUNABLES,
        file=SettingsFile("tuned.cnf", "{name} = {value}", head="[mysqld]\n", words=("OFF", "ON")),
        attachable=Attachable(AttachedMysql, host_of, head="[mysqld]\n", password=PASSWORD),
        worked_out=frozenset({"open_files_limit"}),
    ),
)
