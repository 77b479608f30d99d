"""What an installed package has besides its modules: rows, pages, scripts, cases."""

import tomllib
from glob import glob
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "loadframe"


def test_every_file_beside_the_modules_is_in_the_wheel() -> None:
    patterns = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"][
        "package-data"
    ]
    packed = {path for pattern in patterns["loadframe"] for path in glob(pattern, root_dir=PACKAGE, recursive=True)}
    there = {str(path.relative_to(PACKAGE)) for path in PACKAGE.rglob("*") if path.is_file()}
    assert {path for path in there - packed if not path.endswith((".py", ".pyc"))} == set()
