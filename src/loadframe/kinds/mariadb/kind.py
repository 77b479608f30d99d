"""MariaDB as a kind of target."""

from __future__ import annotations

import importlib.util

from loadframe.kinds.kind import Attachable, KindOfTarget, SettingsFile
from loadframe.kinds.mariadb.attached import PASSWORD, AttachedMariadb, host_of
from loadframe.kinds.mariadb.server import INSTALL, program
from loadframe.kinds.mariadb.settings import CATALOGUE
from loadframe.kinds.mariadb.target import MariadbTarget, check_settings
from loadframe.kinds.mariadb.tunables import TUNABLES
from loadframe.model import Requirement


def requirements() -> list[Requirement]:
    programs = [Requirement("mariadb", name, program(name), INSTALL) for name in ("mariadbd", "mariadb-install-db")]
    package = "importable" if importlib.util.find_spec("pymysql") else None
    return [*programs, Requirement("mariadb", "Python package pymysql", package, "pip install 'loadframe[mariadb]'")]


KINDS = (
    KindOfTarget(
        MariadbTarget.kind,
        lambda lease, allowance: MariadbTarget(lease=lease, allowance=allowance),
        CATALOGUE,
        check_settings,
        requirements,
        embedded=MariadbTarget.embedded,
        tunables=TUNABLES,
        file=SettingsFile("tuned.cnf", "{name} = {value}", head="[mariadbd]\n", words=("OFF", "ON")),
        attachable=Attachable(AttachedMariadb, host_of, head="[mysqld]\n", password=PASSWORD),
        worked_out=frozenset({"open_files_limit"}),
    ),
)
