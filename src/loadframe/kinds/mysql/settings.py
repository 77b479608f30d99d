"""MariaDB and MySQL as data: their settings."""

from pathlib import Path

from loadframe.kinds.catalogue import catalogue_in, tunables_in

_BOTH, _MARIADB, _MYSQL = (Path(__file__).with_name(f"{name}settings.toml") for name in ("", "mariadb_", "mysql_"))
MARIADB_CATALOGUE, MARIADB_TUNABLES = catalogue_in(_BOTH, _MARIADB), tunables_in(_MARIADB)
MYSQL_CATALOGUE, MYSQL_TUNABLES = catalogue_in(_BOTH, _MYSQL), tunables_in(_MYSQL)

_RESERVED = """
basedir bind_address bootstrap character_sets_dir chroot datadir defaults_extra_file defaults_file help init_file
initialize initialize_insecure innodb_data_home_dir innodb_log_group_home_dir lc_messages_dir log_bin log_error mysqlx
no_defaults pid_file plugin_dir port print_defaults skip_grant_tables skip_name_resolve skip_networking socket
table_cache tmpdir user validate_config verbose version
"""
RESERVED = frozenset(_RESERVED.split())
"""Options that a private instance decides itself; table_cache is an old name of table_open_cache."""
