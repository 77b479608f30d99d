"""SECURITY.md and docs/security.md name tests that exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("page", ["SECURITY.md", "docs/security.md"])
def test_each_test_that_a_page_names_is_there(page: str) -> None:
    named = re.findall(r"`(tests/[\w/]+(?:\.py)?/?)(?:::(\w+))?`", (ROOT / page).read_text())
    assert named
    missing = [
        f"{path}::{test}" if test else path
        for path, test in named
        if not (ROOT / path).exists() or (test and f"def {test}(" not in (ROOT / path).read_text())
    ]
    assert missing == []
