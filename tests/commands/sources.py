"""Where the project's own code is: the core's, and that of each extension."""

from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
EXTENSIONS = tuple(sorted(path.parent for path in ROOT.glob("extensions/*/pyproject.toml")))
TESTS = (ROOT / "tests", *(extension / "tests" for extension in EXTENSIONS))


def modules() -> Iterator[tuple[str, Path]]:
    """(name, path) of each module that is installed; an extension's name begins with its package: loadframe_bulk/."""
    core = ROOT / "src" / "loadframe"
    yield from ((str(path.relative_to(core)), path) for path in sorted(core.rglob("*.py")))
    for source in (extension / "src" for extension in EXTENSIONS):
        yield from ((str(path.relative_to(source)), path) for path in sorted(source.rglob("*.py")))
