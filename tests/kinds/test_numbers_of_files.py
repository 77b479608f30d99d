"""The whole numbers of a configuration file, by their keys."""

from __future__ import annotations

import pytest

from loadframe.kinds.service.file_settings import edited, found, numbers

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


@pytest.mark.parametrize(
    ("format_", "key", "before", "after"),
    [
        ("ini", "pool.size", "[pool]\r\nsize = 4\r\nidle = 1\r\n", "[pool]\r\nsize = 9\r\nidle = 1\r\n"),
        ("ini", "pool.size", "[pool]\r\nidle = 1\r\n[b]\r\n", "[pool]\r\nidle = 1\r\nsize = 9\r\n[b]\r\n"),
        ("ini", "pool.size", "[pool]\nnote = a\x0cb\u2028c\nsize=4", "[pool]\nnote = a\x0cb\u2028c\nsize=9"),
        ("ini", "pool.size", "[pool]\r\nsize =\r\n", "[pool]\r\nsize =9\r\n"),
        ("ini", "size", "", "size = 9\n"),
        ("ini", "a.b.c", "[a]\nb.c = 1\n[a.b]\nc=2\n", "[a]\nb.c = 1\n[a.b]\nc=9\n"),
        ("ini", "log.level", "log.level = 1\n", "log.level = 9\n"),
        ("properties", "size", "a=1\r\nsize=4\r\n", "a=1\r\nsize=9\r\n"),
        ("properties", "size", "a=1\r\n", "a=1\r\nsize=9\r\n"),
        ("properties", "size", "size=1\\\n  2\\\n  3\nb=2\n", "size=9\nb=2\n"),
        ("properties", "size", "path=C:\\\\\nsize=4\n", "path=C:\\\\\nsize=9\n"),
        ("properties", "size", "text=one \\\n  size=3\nsize=4\n", "text=one \\\n  size=3\nsize=9\n"),
        ("properties", "size", "# say \\\nsize=4\n", "# say \\\nsize=9\n"),
        ("properties", "size", "size=2\nsize=4\n", "size=2\nsize=9\n"),
    ],
)
def test_one_key_is_set_and_every_other_byte_stays(format_: str, key: str, before: str, after: str) -> None:
    assert edited(before, format_, key, 9) == after
    assert found(after, format_, key) == "9"


def test_of_a_key_written_twice_the_number_is_that_which_would_be_edited() -> None:
    assert numbers("w = 4\nw = auto\n", "ini") == {"w": 4}
    assert numbers("w = 4\nw = auto\n", "properties") == {}


def test_a_key_that_cannot_be_written_is_refused() -> None:
    text = '[[pool.hosts]]\n[pool]\nname = "x"\n'
    with pytest.raises(ValueError, match="stands in several places"):
        edited(text, "toml", "pool.size.x", "word")
    assert found(edited(text, "toml", "pool.name", "y"), "toml", "pool.name") == "y"
