"""What the user names is read up to its bound, whatever it is, and none of it is waited for without end."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from loadframe.formats import named_files
from loadframe.formats.named_files import read_up_to, write_whole
from loadframe.host.privilege import free_user


def test_one_byte_more_than_the_bound_tells_that_there_is_more(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"12345")
    assert read_up_to(tmp_path / "file", 5) == b"12345"
    assert read_up_to(tmp_path / "file", 3) == b"1234"
    assert len(read_up_to(Path("/dev/zero"), 10)) == 11


def test_a_name_that_no_file_can_have_is_an_os_error() -> None:
    with pytest.raises(OSError, match="null byte"):
        read_up_to(Path("a\0b"), 5)
    with pytest.raises(OSError, match="too long"):
        read_up_to(Path("a" * 5000), 5)


def test_a_pipe_that_no_process_writes_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(named_files, "PATIENCE_S", 0.0)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="no process writes into this pipe"):
        read_up_to(tmp_path / "pipe", 5)


def test_a_pipe_is_read_to_its_end(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=(tmp_path / "pipe").write_bytes, args=(b"load,throughput\n",))
    writer.start()
    assert read_up_to(tmp_path / "pipe", 100) == b"load,throughput\n"
    writer.join()


def test_what_a_process_substitution_gives_is_read(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.write(writing, b"value\n1\n")
    os.close(writing)
    assert read_up_to(Path(f"/proc/self/fd/{reading}"), 100) == b"value\n1\n"
    os.close(reading)


def test_what_a_deleted_file_had_is_read_by_its_descriptor(tmp_path: Path) -> None:
    (tmp_path / "here-document").write_bytes(b"value\n1\n")
    with (tmp_path / "here-document").open("rb") as file:
        (tmp_path / "here-document").unlink()
        assert read_up_to(Path(f"/proc/self/fd/{file.fileno()}"), 100) == b"value\n1\n"


def test_a_link_of_ours_is_read_through(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "file").write_bytes(b"1")
    (tmp_path / "to-file").symlink_to("folder/../to-folder/file")
    (tmp_path / "to-folder").symlink_to(tmp_path / "folder")
    assert read_up_to(tmp_path / "to-file", 5) == b"1"


@pytest.mark.skipif(os.geteuid() != 0 or free_user() is None, reason="root, and a second user")
@pytest.mark.parametrize("link", ["file", "folder"])
def test_root_reads_through_no_link_of_another_user(tmp_path: Path, link: str) -> None:
    (tmp_path / "vault").mkdir(mode=0o700)
    (tmp_path / "vault" / "secret").write_bytes(b"only root may read this")
    place, to = {
        "file": (tmp_path / "load.csv", tmp_path / "vault" / "secret"),
        "folder": (tmp_path / "loads", tmp_path / "vault"),
    }[link]
    place.symlink_to(to)
    user = free_user()
    assert user is not None
    os.chown(place, user, user, follow_symlinks=False)
    with pytest.raises(OSError, match="is a link of user"):
        read_up_to(place if link == "file" else place / "secret", 100)


def test_a_pipe_that_no_process_reads_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(named_files, "PATIENCE_S", 0.0)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="no process reads from this pipe"):
        write_whole(tmp_path / "pipe", b"new")


def test_a_reader_is_waited_for_and_gets_more_than_a_pipe_holds(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("pipe")
    got: list[bytes] = []
    reader = threading.Thread(target=lambda: got.append((tmp_path / "pipe").read_bytes()))
    reader.start()
    write_whole(tmp_path / "link", b"new" * 100_000)
    reader.join(timeout=30)
    assert got == [b"new" * 100_000]


WRITES = "import sys; from pathlib import Path; from loadframe.formats.named_files import write_whole; " + (
    "write_whole(Path(sys.argv[1]), b'new' * 100_000)"
)


@pytest.mark.parametrize("place", [">(cat)", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", "link"])
def test_what_its_caller_has_opened_is_written_to(tmp_path: Path, place: str) -> None:
    (tmp_path / "link").symlink_to("/dev/stdout")
    command = ["bash", "-c", f"exec '{sys.executable}' -c \"$1\" {place}", "bash", WRITES]
    done = subprocess.run(command, capture_output=True, cwd=tmp_path, timeout=60)
    assert (done.stdout, done.stderr) == (b"new" * 100_000, b"")
    with (tmp_path / "file").open("wb") as file:  # a file is replaced
        subprocess.run(command, stdout=file, cwd=tmp_path, check=True, timeout=60)
    if place != ">(cat)":
        assert (tmp_path / "file").read_bytes() == b"new" * 100_000


def test_the_error_of_a_device_is_its_own(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/dev/full")
    for place in (Path("/dev/full"), tmp_path / "link"):
        with pytest.raises(OSError, match="No space left") as raised:
            write_whole(place, b"new")
        assert raised.value.errno == errno.ENOSPC
    write_whole(Path("/dev/null"), b"new")
