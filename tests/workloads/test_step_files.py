"""A step's folder belongs to who runs the driver: whatever stands there, nothing else is written or read through it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from loadframe.errors import WorkloadError
from loadframe.host.privilege import US, LeaseUser
from loadframe.workloads import request_log, step_files
from loadframe.workloads.driving import ProcessDriver
from loadframe_drivers.pgbench import lag_now_s


def test_a_link_is_replaced_and_not_followed(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("precious")
    (tmp_path / "arrivals").symlink_to(elsewhere)
    step_files.write(tmp_path / "arrivals", b"new", US)
    assert elsewhere.read_text() == "precious"
    assert (tmp_path / "arrivals").read_bytes() == b"new"
    assert (tmp_path / "arrivals").stat().st_mode & 0o777 == 0o600


def test_what_was_opened_before_is_written_whatever_has_taken_its_place(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("precious")
    with step_files.create(tmp_path / "arrivals", US) as file:
        (tmp_path / "arrivals").unlink()
        (tmp_path / "arrivals").symlink_to(elsewhere)
        step_files.write_whole(file, b"new")
    assert elsewhere.read_text() == "precious"


def _link(path: Path, elsewhere: Path) -> None:
    path.symlink_to(elsewhere)


def _second_name(path: Path, elsewhere: Path) -> None:
    path.hardlink_to(elsewhere)


def _pipe(path: Path, elsewhere: Path) -> None:
    os.mkfifo(path)


def _folder(path: Path, elsewhere: Path) -> None:
    path.mkdir()


def _endless(path: Path, elsewhere: Path) -> None:
    path.touch()
    os.truncate(path, step_files.LARGEST + 1)


@pytest.mark.parametrize("put", [_link, _second_name, _pipe, _folder, _endless])
def test_what_is_no_file_of_the_drivers_own_is_not_read(tmp_path: Path, put: object) -> None:
    elsewhere, log = tmp_path / "elsewhere", tmp_path / "requests-0.log"
    elsewhere.write_bytes(b"root:*:19000:0:99999:7:::\n" * 24)
    put(log, elsewhere)  # type: ignore[operator]
    driver = ProcessDriver("x", [], logs=[log], printed=[log], end_s=None)
    for look in (
        lambda: step_files.read(log),
        lambda: request_log.read([log]),
        lambda: lag_now_s(log),
        driver.requests,
    ):
        with pytest.raises(WorkloadError, match=r"no file of its own: requests-0\.log"):
            look()


def test_of_a_file_that_is_not_there_nothing_is_read(tmp_path: Path) -> None:
    assert step_files.read(tmp_path / "none") == b""
    assert step_files.size(tmp_path / "none") == 0
    assert step_files.opened(tmp_path / "none") is None


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files to another user")
def test_a_file_is_its_owners_alone(tmp_path: Path) -> None:
    step_files.write(tmp_path / "objects.bin", b"1234", LeaseUser(61184))
    status = (tmp_path / "objects.bin").stat()
    assert (status.st_mode & 0o777, status.st_uid, status.st_size) == (0o600, 61184, 4)
