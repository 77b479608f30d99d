"""The whole numbers of a configuration file, by their keys."""

from __future__ import annotations

import pytest

from loadframe.kinds.service.formats import found, numbers

TEXTS = {
    "toml": "retries = 0\nname = '4'\n[pool]\nsize = 4\nidle = 1.5\non = true\n",
    "yaml": "name: '4'\npool:\n  size: 4\n  idle: 1.5\n  on: true\n",
    "json": '{"name": "4", "pool": {"size": 4, "idle": 1.5, "on": true, "less": -4}, "list": [4]}',
    "ini": "name = four\n[pool]\nsize = 4\nidle = 1.5\non = true\nless = -4\n",
    "properties": "name = four\npool.size=4\npool.idle = 1.5\n# comment = 4\n",
}


@pytest.mark.parametrize("format_", TEXTS)
def test_whole_numbers_above_none_are_found_by_keys_that_are_read_back(format_: str) -> None:
    text = TEXTS[format_]
    assert numbers(text, format_) == {"pool.size": 4}
    assert str(found(text, format_, "pool.size")) == "4"


@pytest.mark.parametrize(("format_", "text"), [("json", "{"), ("toml", "a ="), ("yaml", "a: [")])
def test_what_is_not_of_the_format_is_refused(format_: str, text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        numbers(text, format_)


@pytest.mark.parametrize("format_", ["json", "yaml", "ini", "properties"])
@pytest.mark.parametrize("text", ["", "[]", "4"])
def test_what_has_no_keys_has_no_numbers(format_: str, text: str) -> None:
    if not (format_ == "json" and not text):
        assert numbers(text, format_) == {}
