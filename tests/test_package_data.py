"""What an installed package has besides its modules: rows, pages, scripts, cases."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from sources import EXTENSIONS, ROOT


@pytest.mark.parametrize("project", [ROOT, *EXTENSIONS], ids=lambda project: project.name)
def test_every_file_beside_the_modules_is_in_the_wheel(project: Path) -> None:
    declared = tomllib.loads((project / "pyproject.toml").read_text(encoding="utf-8"))
    ((name, patterns),) = declared["tool"]["setuptools"]["package-data"].items()
    package = project / "src" / name
    packed = {path for pattern in patterns for path in package.glob(pattern)}
    there = {path for path in package.rglob("*") if path.is_file() and path.suffix not in {".py", ".pyc"}}
    assert there - packed == set()


WITHOUT_EXTRAS = """
import sys
from importlib.metadata import requires
for name in sys.argv[1:]:
    sys.modules[name] = None
from loadframe.kinds import registry as kinds
from loadframe.study import cases
from loadframe.workloads import registry as workloads
assert kinds.KINDS and workloads.KINDS and not (*kinds.KINDS.broken(), *workloads.KINDS.broken())
for row in kinds.KINDS.values():
    row.requirements()
print(len(cases.all_cases()))
"""


def test_what_no_extra_is_installed_for_still_lists_all_kinds_and_cases() -> None:
    """`loadframe demo` of the wheel alone ended with "No module named 'psycopg'": one of all workloads imported it."""
    modules = ["cryptography", "dask", "distributed", "locust", "psycopg", "pymysql", "ruamel", "scipy", "starlette",
               "textual", "tomlkit", "uvicorn"]  # fmt: skip
    command = [sys.executable, "-c", WITHOUT_EXTRAS, *modules]
    assert int(subprocess.run(command, capture_output=True, text=True, check=True).stdout) == 7
