"""The schema that a workload makes on an attached server, as a thing that outlives a killed command."""

from collections.abc import Callable, Mapping

from loadframe.kinds.attached import Attached
from loadframe.model import Endpoint, SettingValue
from loadframe.workloads import databases, ownership

THERE, GONE = "present", "absent"


class OwnSchema:
    """See changes.places.Place. Its only setting is whether one that has our mark is there; gone is all that it can be
    set to."""

    def __init__(self, endpoint: Endpoint, server: Attached, remove: Callable[[], None] | None = None) -> None:
        """endpoint: with the mark. remove: how whoever made it takes it away; without it, what a killed command left is
        dropped."""
        self._endpoint = endpoint
        self._remove = remove
        self.name = f"schema {endpoint.options['schema']}"
        own = {"mark": endpoint.options[ownership.MARK], "database": endpoint.options.get("database", "")}
        self.address: Mapping[str, str] = {**server.address, **own, "kind": "schema", "server": server.kind}
        self.words = server.words

    def make_room(self) -> None:
        """TargetError where there is one that is not ours."""
        databases.make_room(self._endpoint)

    def read(self, name: str) -> SettingValue:
        return THERE if databases.has_own_schema(self._endpoint) else GONE

    def write(self, name: str, value: SettingValue) -> None:
        if self._remove is not None:
            self._remove()
        else:
            databases.drop_schema(self._endpoint)
