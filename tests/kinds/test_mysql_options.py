"""Option files and command lines are read as the servers of MySQL's family read them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadframe.errors import TargetError
from loadframe.formats import named_files
from loadframe.kinds.mysql.option_files import (
    CLIENT_GROUPS,
    MOST_FILES,
    SERVER_GROUPS,
    configured_options,
    parse_options,
    read_client_options,
)
from loadframe.kinds.postgres.attached import read_service

FILE = """
user = nobody
# a comment
[client]
user=app            # in the middle
password = "s # cret"
[mysqld]
table-open-cache = 4000
loose_innodb_x = 1
skip-name-resolve
!includedir /etc/mysql/conf.d/
[mariadb-10.11]
max_connections=500
[mysqldump]
max_connections=7
"""


def test_a_client_finds_its_account() -> None:
    assert parse_options(FILE, CLIENT_GROUPS) == {"user": "app", "password": "s # cret"}


def test_a_server_finds_its_settings() -> None:
    assert parse_options(FILE, SERVER_GROUPS) == {
        "table_open_cache": "4000",
        "innodb_x": "1",
        "skip_name_resolve": "1",
        "max_connections": "500",
    }


def test_the_command_line_wins_over_the_file_and_closed_files_add_nothing(tmp_path: Path) -> None:
    (tmp_path / "my.cnf").write_text(FILE)
    asked = configured_options(
        ["mariadbd", "--table-open-cache=12000", "--skip-log-bin", "x"],
        [tmp_path / "gone.cnf", tmp_path / "my.cnf"],
        os.geteuid(),
    )
    assert asked["table_open_cache"] == "12000"
    assert asked["max_connections"] == "500"
    assert asked["skip_log_bin"] == "1"


def test_a_file_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(TargetError, match=r"gone\.cnf"):
        read_client_options(tmp_path / "gone.cnf")


@given(st.text(max_size=200))
def test_anything_can_stand_in_a_file(text: str) -> None:
    for name, value in parse_options("[client]\n" + text, CLIENT_GROUPS).items():
        assert isinstance(value, str)
        assert name == name.strip()
    configured_options(text.split(), [], os.geteuid())


SECRETS = st.text(st.characters(categories=["L", "N", "P"], exclude_characters="'\""), min_size=1, max_size=20)


@given(SECRETS)
def test_a_quoted_password_is_read_as_it_is(secret: str) -> None:
    assert parse_options(f"[client]\npassword = '{secret}'\n", CLIENT_GROUPS)["password"] == secret


@pytest.mark.parametrize("place", ["/dev/zero", "/dev/full", "a\0b", "pipe"])
def test_an_option_file_that_is_no_file(place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One without an end took all memory, a pipe without a writer all time; a server's command line names them, too."""
    monkeypatch.setattr(named_files, "PATIENCE_S", 0.1)
    os.mkfifo(tmp_path / "pipe")
    path = tmp_path / place
    for read in (read_client_options, read_service):
        with pytest.raises(TargetError, match="Cannot read the option file"):
            read(path)
    assert configured_options([], [path], os.geteuid()) == {}


def test_a_server_that_names_files_without_number(tmp_path: Path) -> None:
    (tmp_path / "my.cnf").write_text(FILE)
    gone = [tmp_path / str(number) for number in range(MOST_FILES)]
    assert configured_options([], [*gone, tmp_path / "my.cnf"], os.geteuid()) == {}
