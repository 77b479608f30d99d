"""A second user puts links in the place of folders of a tree in which root makes, changes and removes things: what the
links lead to is not root's to touch, and stays as it was, bit for bit."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from loadframe.errors import MachineError
from loadframe.host.privilege import free_user
from loadframe_index import seeded
from tree_churn import MARK, Churn, permit

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="root, and a second user")

SWAPPER = Path(__file__).with_name("swapper.py")
SYSTEM_PYTHON = "/usr/bin/python3"
NAMES = [f"f{number}" for number in range(8)]


@dataclass(frozen=True)
class Scene:
    """tree: the second user's. secret: a folder that only root may enter, with files of the names that the tree has."""

    uid: int
    tree: Path
    secret: Path

    def seen(self) -> list[tuple[str, int, int, int, bytes]]:
        """All that is in the secret folder."""
        files = sorted(self.secret.rglob("*"))
        states = [(path, path.lstat()) for path in (self.secret, *files)]
        return [
            (str(path), state.st_ino, state.st_mode, state.st_mtime_ns, path.read_bytes() if path.is_file() else b"")
            for path, state in states
        ]

    @contextmanager
    def swapped(self, folder: Path) -> Iterator[None]:
        """The second user exchanges a folder of the tree for a link, and back, all the time."""
        link = folder.with_name("link")
        link.symlink_to(self.secret)
        os.lchown(link, self.uid, self.uid)
        command = [SYSTEM_PYTHON, "-I", "-S", str(SWAPPER), str(self.uid), str(folder), str(link)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
            assert other.stdin and other.stdout
            assert other.stdout.readline() == "ready\n"
            yield
            other.stdin.close()
            assert int(other.stdout.readline()) > 10


@pytest.fixture
def scene() -> Iterator[Scene]:
    place = Path(tempfile.mkdtemp(prefix="loadframe-swapped-", dir="/var/tmp"))
    try:
        uid = free_user()
        assert uid is not None
        tree, secret = place / "tree", place / "secret"
        for folder in (tree / "a/b", tree / "c", secret / "b"):
            folder.mkdir(parents=True)
        for folder in (tree / "a", tree / "a/b", tree / "c", secret, secret / "b"):
            for name in NAMES:
                (folder / name).write_text(f"{folder} {name}")
        permit(tree)
        for path in (place, tree, *tree.rglob("*")):
            os.lchown(path, uid, uid)
        place.chmod(0o755)
        secret.chmod(0o700)
        yield Scene(uid, tree, secret)
    finally:
        shutil.rmtree(place)


def test_a_folder_that_has_become_a_link_is_not_changed(scene: Scene) -> None:
    before, churn = scene.seen(), Churn(scene.tree, seed=1)
    (scene.tree / "a").rename(scene.tree / "other")
    (scene.tree / "a").symlink_to(scene.secret)
    made = sum(len(churn.change()) for _ in range(400))
    assert made > 100 and scene.seen() == before


@pytest.mark.long
def test_a_folder_that_is_swapped_all_the_time_is_not_changed(scene: Scene) -> None:
    before, churn = scene.seen(), Churn(scene.tree, seed=2)
    with scene.swapped(scene.tree / "a"):
        made = sum(len(churn.change()) for _ in range(3_000))
    assert made > 500 and scene.seen() == before


def test_files_that_have_become_links_or_second_names_or_pipes_are_not_changed(scene: Scene) -> None:
    before, churn = scene.seen(), Churn(scene.tree, seed=3, links=False)
    for number, name in enumerate(NAMES):
        path = scene.tree / "a" / name
        path.unlink()
        if number % 3 == 0:
            path.symlink_to(scene.secret / name)
        elif number % 3 == 1:
            os.mkfifo(path)
        else:  # which protected_hardlinks denies to others, where it is on
            path.hardlink_to(scene.secret / name)
    for _ in range(400):
        churn.change()
    assert scene.seen() == before


def test_no_mark_is_made_or_believed_through_a_link(scene: Scene) -> None:
    (scene.tree / MARK).unlink()
    (scene.tree / MARK).symlink_to(scene.secret / "made")
    with pytest.raises(OSError):
        permit(scene.tree)
    assert not (scene.secret / "made").exists()
    (scene.secret / "made").touch()
    with pytest.raises(MachineError, match="does not say"):
        Churn(scene.tree)


def test_a_tree_is_made_where_it_was_asked_for_or_not_at_all(scene: Scene) -> None:
    place, before = scene.tree / "c", scene.seen()
    seeded.make(place / "t", seeded.Shape(40))
    with scene.swapped(place / "t"):
        for number in range(300):
            with suppress(MachineError):
                seeded.make(place / "t", seeded.Shape(40 + number % 2))
    assert scene.seen() == before


def test_the_shape_of_a_tree_is_not_written_through_a_link(scene: Scene) -> None:
    before = scene.seen()
    seeded.marked(scene.tree / "c/t").symlink_to(scene.secret / "f0")
    with pytest.raises(MachineError, match="is a link"):
        seeded.make(scene.tree / "c/t", seeded.Shape(100))
    assert scene.seen() == before
