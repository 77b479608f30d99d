"""A running server known by its address alone, as data: what a study says of it."""

from loadframe.kinds.catalogue import Catalogue, SettingSpec

CATALOGUE = Catalogue(
    kind="url",
    source="url, for example http://127.0.0.1:8080, and paths, for example '/ /about'; it has no other settings",
    specs=(
        SettingSpec("url", "text", False, source="RFC 9110"),
        SettingSpec("paths", "text", False, default="/", source="RFC 9110; separated by blanks"),
    ),
)
