"""What a kind needs of Python is looked for, and its absence is an answer."""

from __future__ import annotations

import pytest

from loadframe.host.environment import python_package


@pytest.mark.parametrize("name", ["no_such_package", "no_such_package.part", "json.no_such_part"])
def test_a_package_that_is_not_there_is_said_to_be_missing(name: str) -> None:
    missing = python_package("service", name, "service")
    assert missing.present is None
    assert name in missing.what
    assert "loadframe[service]" in missing.how_to_get_it


@pytest.mark.parametrize("name", ["json", "json.decoder"])
def test_a_package_that_is_there_is_found(name: str) -> None:
    assert python_package("service", name, "service").present is not None
