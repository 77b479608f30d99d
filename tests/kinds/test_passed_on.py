"""A study may come from a stranger: no setting of it runs a program, loads a library or names a file anywhere."""

from __future__ import annotations

import pytest

from loadframe.errors import StudyError
from loadframe.kinds import registry
from loadframe.model import SettingValue

MARIADB = (
    "general_log_file", "slow_query_log_file", "log_slow_query_file", "aria_log_dir_path",
    "innodb_undo_directory", "innodb_tmpdir", "innodb_data_file_path", "innodb_temp_data_file_path",
    "innodb_buffer_pool_filename", "init_connect", "init_slave", "init_file", "plugin_load", "plugin_load_add",
    "plugin_dir", "log_error", "log_bin_index", "log_basename", "log_tc", "log_isam", "relay_log",
    "master_info_file", "secure_file_priv", "slave_load_tmpdir", "tmpdir", "datadir", "basedir", "ssl_ca",
    "ssl_key", "tls_version", "wsrep_notify_cmd", "wsrep_provider", "wsrep_sst_method", "wsrep_on",
    "feedback_url", "feedback_http_proxy", "ft_stopword_file", "des_key_file", "lc_messages_dir",
    "character_sets_dir", "extra_port", "socket", "debug", "core_file", "ignore_db_dirs_path",
)  # fmt: skip
MYSQL = (
    "general_log_file", "slow_query_log_file", "innodb_undo_directory", "innodb_directories", "innodb_tmpdir",
    "innodb_data_file_path", "innodb_redo_log_archive_dirs", "innodb_doublewrite_dir", "init_connect", "init_replica",
    "init_file", "plugin_load", "plugin_load_add", "plugin_dir", "early_plugin_load", "log_error", "log_error_services",
    "log_bin_index", "log_tc", "log_isam", "relay_log", "report_host", "secure_file_priv", "replica_load_tmpdir",
    "tmpdir", "datadir", "basedir", "ssl_ca", "admin_address", "admin_ssl_key", "tls_version", "ft_stopword_file",
    "caching_sha2_password_private_key_path", "mysqlx", "mysqlx_bind_address", "mysqlx_socket", "ndb_connectstring",
    "ndb_mgmd_host", "keyring_migration_host", "keyring_migration_to_component", "authentication_policy", "daemonize",
    "initialize", "upgrade", "socket", "port", "bind_address", "lc_messages_dir", "character_sets_dir", "chroot",
)  # fmt: skip
POSTGRES = (
    "archive_command", "restore_command", "archive_cleanup_command", "recovery_end_command",
    "ssl_passphrase_command", "shared_preload_libraries", "session_preload_libraries", "local_preload_libraries",
    "archive_library", "jit_provider", "dynamic_library_path", "data_directory", "log_directory",
    "stats_temp_directory", "unix_socket_directories", "external_pid_file", "hba_file", "ident_file",
    "config_file", "ssl_cert_file", "ssl_key_file", "ssl_ca_file", "ssl_crl_dir", "krb_server_keyfile",
    "promote_trigger_file", "primary_conninfo", "temp_tablespaces", "log_filename",
)  # fmt: skip


@pytest.mark.server
@pytest.mark.parametrize(
    ("kind", "name"),
    [("mariadb", name) for name in MARIADB]
    + [pytest.param("mysql", name, marks=pytest.mark.mysql) for name in MYSQL]
    + [("postgres", name) for name in POSTGRES],
)
@pytest.mark.parametrize("value", ["/tmp/x", "x"])
def test_programs_libraries_files_and_hosts_are_refused(kind: str, name: str, value: str) -> None:
    with pytest.raises(StudyError, match=f"target.settings.{name}"):
        registry.kind_named(kind).check_settings({name: value})


@pytest.mark.server
@pytest.mark.parametrize("kind", ["mariadb", pytest.param("mysql", marks=pytest.mark.mysql), "postgres"])
@pytest.mark.parametrize(
    "value", ["x\ny = 1", "/tmp/x", "../x", "a'b", "a;b", "`id`", "$(id)", "a\\b", "a\0b", "a\u2028b"]
)
def test_a_value_is_one_plain_line(kind: str, value: str) -> None:
    name = {"postgres": "cluster_name"}.get(kind, "sql_mode")
    with pytest.raises(StudyError, match=f"target.settings.{name}"):
        registry.kind_named(kind).check_settings({name: value})


@pytest.mark.server
@pytest.mark.parametrize(
    ("kind", "name", "value"),
    [
        ("mariadb", "sql_mode", "STRICT_TRANS_TABLES,NO_ZERO_DATE"),
        ("mariadb", "optimizer_switch", "mrr=on,index_merge=off"),
        ("mariadb", "default_time_zone", "+00:00"),
        ("mariadb", "general_log", False),
        ("mariadb", "innodb_fast_shutdown", 0),
        ("mariadb", "long_query_time", 0.5),
        ("mariadb", "character_set_server", "utf8mb4"),
        pytest.param("mysql", "sql_mode", "STRICT_TRANS_TABLES,NO_ZERO_DATE", marks=pytest.mark.mysql),
        pytest.param("mysql", "innodb_stats_on_metadata", False, marks=pytest.mark.mysql),
        pytest.param("mysql", "lock_wait_timeout", 77, marks=pytest.mark.mysql),
        ("postgres", "search_path", '"$user", public'),
        ("postgres", "timezone", "Europe/Berlin"),
        ("postgres", "log_min_duration_statement", "250ms"),
        ("postgres", "log_statement", "none"),
        ("postgres", "geqo_threshold", 14),
        ("postgres", "enable_seqscan", False),
    ],
)
def test_what_is_harmless_is_passed_on(kind: str, name: str, value: SettingValue) -> None:
    assert registry.kind_named(kind).check_settings({name: value}) == {name: value}


def test_no_catalogue_takes_any_text() -> None:
    """What nginx, Squid, Varnish, SQLite and a running server are given comes from catalogues alone: numbers, and words
    of a list. So no line of a configuration file has more in it than one value. url has addresses and paths, which are
    written into no file of a server's; ndb has a list of CPUs and one of threads, which are read before."""
    texts_of = {
        "url": ["url", "paths"],
        "ndb": (cpus := ["LockExecuteThreadToCPU", "ThreadConfig"]),
        "ndb-sql": [*cpus, "sql_cpus"],
    }
    for kind, row in registry.KINDS.items():
        texts = [spec.name for spec in row.catalogue.specs if spec.kind == "text" and not spec.choices]
        assert sorted(texts) == sorted(texts_of.get(kind, [])), kind
        for spec in row.catalogue.specs:
            assert all(str(choice).isprintable() and not set(str(choice)) & set(";{}#'\"\\") for choice in spec.choices)


@pytest.mark.parametrize("name", ["LockExecuteThreadToCPU", "ThreadConfig"])
@pytest.mark.parametrize(
    "value", ["0\nDataDir=/etc", "main,ldm\nDataDir=/etc", "0\n", "main\n", "0 # 1", "main\r[ndbd]", "$(id)"]
)
@pytest.mark.extension("loadframe_ndb")
def test_what_is_written_into_a_config_ini_is_cpus_and_threads_alone(name: str, value: str) -> None:
    with pytest.raises(StudyError, match=f"target.settings.{name}"):
        registry.kind_named("ndb").check_settings({name: value})
