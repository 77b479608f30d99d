"""Trees with all that a tree may have: for tests of what reads them."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

NAMES = (
    b"new\nline",
    b"\xff\xfe no text \x80",
    b"x" * 255,
    "ü".encode() * 127,
    b"-rf",
    b"--help",
    b"...",
    b" ",
    b"\\",
    b"'\"$(reboot)`",
    b"%s%n",
    b"\t\r\x1b[31m",
    b"*",
    b"a (deleted)",
)
LONG_NAME, LEVELS = b"d" * 250, 20
"""Paths of more than 5,000 bytes; 4,096 is the most that a system call takes (PATH_MAX)."""
NARROW_LEVELS = 600


def deep(root: int, name: bytes, levels: int) -> None:
    """So many directories within one another, with a file in the last."""
    at = os.dup(root)
    for _ in range(levels):
        os.mkdir(name, dir_fd=at)
        below = os.open(name, os.O_PATH | os.O_DIRECTORY, dir_fd=at)
        os.close(at)
        at = below
    os.close(os.open(b"last", os.O_CREAT | os.O_WRONLY, 0o644, dir_fd=at))
    os.close(at)


def plant(tree: Path) -> None:
    """Everything that needs no rights."""
    root = os.open(tree, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for name in NAMES:
            os.mkdir(name, dir_fd=root)
            within = os.open(name, os.O_PATH | os.O_DIRECTORY, dir_fd=root)
            for file in NAMES:
                os.close(os.open(file, os.O_CREAT | os.O_WRONLY, 0o644, dir_fd=within))
            os.close(within)
        deep(root, LONG_NAME, LEVELS)
        deep(root, b"n", NARROW_LEVELS)
    finally:
        os.close(root)
    links = tree / "links"
    (links / "below").mkdir(parents=True)
    (links / "one").write_bytes(b"x" * 10_000)
    for number in range(5):
        (links / f"below/name {number}").hardlink_to(links / "one")
    for name, to in {"up": "..", "root": "/", "itself": "itself", "nowhere": "none", "long": "z" * 4000}.items():
        (links / name).symlink_to(to)
    odd = tree / "odd"
    odd.mkdir()
    os.mkfifo(odd / "pipe")
    within = os.open(odd, os.O_PATH)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(f"/proc/self/fd/{within}/socket")  # an address has 108 bytes
    os.close(within)
    with (odd / "sparse").open("wb") as file:
        file.seek(1 << 40)
        file.write(b"end")
    for number, when in enumerate((0, 1, -1, 2**31, 2**33, 2**33 + 2**32, -(2**31))):
        (odd / f"time {number}").touch()
        os.utime(odd / f"time {number}", (when, when))


@contextmanager
def hostile_tree(tree: Path) -> Iterator[Path]:
    """Removed in the end by rm, which has no longest path."""
    tree.mkdir()
    try:
        plant(tree)
        yield tree
    finally:
        subprocess.run(["chmod", "-R", "u+rwx", "--", tree], check=False, capture_output=True)
        subprocess.run(["rm", "-rf", "--", tree], check=True)
