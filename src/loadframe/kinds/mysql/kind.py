"""MariaDB and MySQL as kinds of target."""

from functools import partial

from loadframe.host.environment import python_package
from loadframe.kinds.catalogue import Tunable
from loadframe.kinds.kind import Attachable, KindOfTarget, SettingsFile
from loadframe.kinds.mysql.attached import PASSWORD, AttachedFamily, AttachedMariadb, AttachedMysql, host_of
from loadframe.kinds.mysql.settings import MARIADB_TUNABLES, MYSQL_TUNABLES
from loadframe.kinds.mysql.target import MariadbTarget, MysqlTarget
from loadframe.kinds.package import Package
from loadframe.model import Requirement


def _requirements(package: Package, kind: str) -> list[Requirement]:
    return [*package.requirements(kind), python_package(kind, "pymysql", "mariadb")]


def _kind(
    target: type[MariadbTarget | MysqlTarget], attached: type[AttachedFamily], tunables: tuple[Tunable, ...], group: str
) -> KindOfTarget:
    assert target.make.package is not None, "it is of a package"
    return KindOfTarget(
        target.kind,
        target,
        target.catalogue,
        target.check_settings,
        partial(_requirements, target.make.package, target.kind),
        tunables=tunables,
        file=SettingsFile("tuned.cnf", "{name} = {value}", head=f"[{group}]\n", words=("OFF", "ON")),
        attachable=Attachable(attached, host_of, head="[mysqld]\n", password=PASSWORD),
        worked_out=frozenset({"open_files_limit"}),
    )


KINDS = (
    _kind(MariadbTarget, AttachedMariadb, MARIADB_TUNABLES, "mariadbd"),
    _kind(MysqlTarget, AttachedMysql, MYSQL_TUNABLES, "mysqld"),
)
