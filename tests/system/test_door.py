"""All that makes, writes, removes or changes files goes through the door (loadframe.system), but for the places below.

The list is what is left to be brought there: a place that is not on it is refused, and one that needs fewer calls than
it has lowers its number. Ruff refuses the calls that no place outside of the door needs (banned-api in pyproject.toml).
"""

import ast
from collections import Counter
from collections.abc import Iterator

import pytest

from sources import modules

OF_OS = {
    "mkdir", "makedirs", "rename", "renames", "replace", "remove", "unlink", "rmdir", "removedirs", "chmod", "chown",
    "lchown", "fchmod", "fchown", "symlink", "link", "truncate", "mkfifo", "mknod", "utime", "setxattr", "removexattr",
}  # fmt: skip
OF_PATHS = {
    "write_text", "write_bytes", "mkdir", "touch", "unlink", "rmdir", "rename", "replace", "chmod", "lchmod",
    "symlink_to", "hardlink_to",
}  # fmt: skip
WRITING = ("O_CREAT", "O_WRONLY", "O_RDWR", "O_TRUNC")
HARMLESS = {"shutil.which", "shutil.disk_usage", "shutil.get_terminal_size", "tempfile.TemporaryFile"}
"""The last has no name."""
OBJECTS = {"self", "run", "folder", "held_folder", "self._files", "self.files", "self._folder"}
OF_OBJECTS = {"replace", "rename", "write_text", "write_bytes"}
"""Folders of the door and run folders, and those of their methods that have such names."""
LEFT: dict[str, int] = {
    "bench/loading.py": 1,
    "cages/groups.py": 3,
    "changes/host.py": 1,
    "changes/lists.py": 1,
    "host/launch.py": 6,
    "host/leases.py": 1,
    "host/leftovers.py": 1,
    "host/privilege.py": 5,
    "host/shared_memory.py": 2,
    "host/state.py": 4,
    "kinds/mysql/kind.py": 1,
    "kinds/postgres/kind.py": 6,
    "kinds/private_server.py": 12,
    "kinds/service/file_settings.py": 5,
    "kinds/service/server.py": 2,
    "kinds/sqlite/kind.py": 1,
    "loadframe_bulk/client.py": 2,
    "loadframe_bulk/server.py": 2,
    "loadframe_bulk/target.py": 1,
    "loadframe_bulk/turns.py": 1,
    "loadframe_caches/configured.py": 1,
    "loadframe_caches/nginx/kind.py": 1,
    "loadframe_caches/nginx/server.py": 2,
    "loadframe_caches/squid/kind.py": 1,
    "loadframe_drivers/in_locust/loadframe_listener.py": 1,
    "loadframe_drivers/redis_relay.py": 1,
    "loadframe_index/board.py": 1,
    "loadframe_index/keeping.py": 2,
    "loadframe_index/metadata_cold.py": 2,
    "loadframe_index/pipeline.py": 1,
    "loadframe_index/seeded.py": 4,
    "loadframe_index/verifying.py": 1,
    "loadframe_watch/importing.py": 1,
    "recording/profiles/perf.py": 2,
    "workloads/driving.py": 2,
    "workloads/http_driver.py": 1,
    "workloads/job_queue_worker.py": 1,
    "workloads/objects.py": 8,
    "workloads/step_files.py": 3,
    "workloads/sysbench.py": 1,
}


def calls() -> Iterator[tuple[str, str]]:
    """(module, call) of each that may make, write, remove or change a file by a path."""
    for name, path in modules():
        if not name.startswith(("system/", "testing/")):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Call) and reaches(node):
                    yield name, f"{name}:{node.lineno}: {ast.unparse(node)[:100]}"


def reaches(call: ast.Call) -> bool:
    """Whether a call may make, write, remove or change a file by a path."""
    function = ast.unparse(call.func)
    module, _, name = function.rpartition(".")
    if module == "os":
        words = ast.unparse(call)
        writes = any(flag in words for flag in WRITING) and "os.devnull" not in words
        return name in OF_OS or (name == "open" and writes)
    if module in ("shutil", "tempfile"):
        return function not in HARMLESS
    if name == "open" or function == "open":
        return any(set(mode) & set("wax+") for mode in modes(call))
    if name not in OF_PATHS or not isinstance(call.func, ast.Attribute):
        return False
    if module in OBJECTS and name in OF_OBJECTS:
        return False
    if name in ("replace", "rename"):  # of a text or a table they have other arguments
        return len(call.args) == 1 and not call.keywords and not isinstance(call.args[0], ast.Lambda)
    return True


def modes(call: ast.Call) -> list[str]:
    given = [*call.args, *(keyword.value for keyword in call.keywords if keyword.arg == "mode")]
    return [
        each.value
        for each in given
        if isinstance(each, ast.Constant) and isinstance(each.value, str) and len(each.value) < 4
    ]


@pytest.mark.long
def test_files_are_made_written_and_removed_through_the_door_alone() -> None:
    listed = list(calls())
    counted = Counter(name for name, _ in listed)
    more = [call for name, call in listed if counted[name] > LEFT.get(name, 0)]
    assert more == []
    assert {name: counted[name] for name in LEFT} == dict(LEFT), "fewer are left: lower the numbers of the list"
