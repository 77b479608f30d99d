"""Counters that a service exposes, and the limits among them: [[target.metrics]] and [[target.limit]]."""

import http.client
import re
from dataclasses import dataclass
from typing import Annotated, Self
from urllib.parse import urlsplit

from pydantic import Field, field_validator, model_validator

from loadframe.metrics.exposed import RESERVED
from loadframe.study.fields import Table, named_once

MOST_SOURCES = 8
PORT = "{port}"
LOG = "{log}"
"""The output of a service that Loadframe starts."""
_NAME = re.compile(r"[a-z][a-z0-9_]{0,62}", re.ASCII)
_PATH = re.compile(r"/[!-~]*", re.ASCII)


@dataclass(frozen=True, slots=True)
class Address:
    """port: None for the target's own."""

    host: str
    port: int | None
    path: str


class MetricsTable(Table):
    """Where the service exposes its counters: one of prometheus, json, command and stages."""

    prometheus: str | None = Field(
        None, description="address that answers in Prometheus' or OpenMetrics' text format, http://HOST:PORT/PATH"
    )
    json_address: str | None = Field(
        None, alias="json", description="address that answers in JSON: each number, by the names on the way to it"
    )
    command: list[str] | None = Field(None, description="program that prints lines: name value")
    stages: str | None = Field(
        None, description="file with statistics of a pipeline's stages (docs/pipelines.md); {log}: what it prints"
    )
    counters: list[str] = Field(
        default_factory=list, description="names that only grow: of json, of command, and of metrics without a # TYPE"
    )
    select: list[str] = Field(default_factory=list, description="names that are kept; none: all, up to 2,000 series")
    requests: list[str] = Field(
        default_factory=list, description="names of counters that together count the requests of the load"
    )

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        ways = (self.prometheus, self.json_address, self.command, self.stages)
        pairs = zip(("prometheus", "json", "command", "stages"), ways, strict=True)
        given = [name for name, value in pairs if value is not None]
        if len(given) != 1:
            named = " and ".join(given) or "none of them"
            raise ValueError(f"a source of metrics is prometheus, json, command or stages; this one has {named}")
        if self.command is not None and not (self.command and all(self.command)):
            raise ValueError("command names no program, or has an empty argument")
        if self.stages is not None and (self.counters or self.select or self.requests):
            raise ValueError("stages has names of its own; counters, select and requests are of other sources")
        return self

    @field_validator("stages")
    @classmethod
    def _is_file(cls, value: str | None) -> str | None:
        if value is not None and value != LOG and not value.startswith("/"):
            raise ValueError(f"{value!r} is neither {LOG} nor a path that begins with /")
        return value

    @field_validator("prometheus", "json_address")
    @classmethod
    def _is_address(cls, value: str | None) -> str | None:
        if value is not None:
            address_of(value)
        return value

    @property
    def address(self) -> Address | None:
        url = self.prometheus or self.json_address
        return None if url is None else address_of(url)


class LimitTable(Table):
    """Something of the service that is finite: a row of the ledger, `service.NAME`."""

    name: str = Field(description="lower case, digits and underscores; its id is service.NAME")
    use: str = Field(min_length=1, description="metric of what is in use")
    ceiling: str | float = Field(description="metric of the most that there may be, or a number")
    raises: str = Field("", alias="raise", description="the setting of the target that raises the ceiling")
    title: str = Field("", max_length=100, description='what it is, in words: "pool of connections"')
    loud: bool = Field(False, description="whether requests fail once it is reached; otherwise they wait")

    @field_validator("name")
    @classmethod
    def _is_free(cls, name: str) -> str:
        if not _NAME.fullmatch(name):
            raise ValueError(
                f"{name!r} may have lower-case letters, digits and underscores only, and begins with a letter"
            )
        if name in RESERVED:
            raise ValueError(f"service.{name} is a finding of Loadframe's own; give the limit another name")
        return name

    @field_validator("ceiling")
    @classmethod
    def _is_something(cls, ceiling: str | float) -> str | float:
        if ceiling == "" or (isinstance(ceiling, float) and ceiling <= 0):
            raise ValueError("a ceiling is the name of a metric, or a number above 0")
        return ceiling


class ExposedKeys(Table):
    """The keys of [target] that say what a service reports of itself."""

    metrics: list[MetricsTable] = Field(
        default_factory=list, max_length=MOST_SOURCES, description="kind service: where it exposes its counters"
    )
    limit: Annotated[list[LimitTable], named_once("limits")] = Field(
        default_factory=list, description="kind service: what of it is finite"
    )

    @property
    def exposed_names(self) -> dict[str, str]:
        """With the limit's name in messages."""
        named = [(name, f"target.limit {limit.name}") for limit in self.limit for name in (limit.use, limit.ceiling)]
        return {name: who for name, who in named if isinstance(name, str)}


def address_of(url: str) -> Address:
    """ValueError unless it is http://HOST[:PORT]/PATH."""
    text = url.replace(f":{PORT}", ":0", 1)
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise ValueError(f"{url!r} is no address: {error}") from error
    if parts.scheme != "http" or not host or parts.username is not None or parts.fragment:
        raise ValueError(f"{url!r} is not http://HOST:PORT/PATH; TLS and accounts are not spoken")
    own = text != url
    if port == 0 and not own:
        raise ValueError(f"{url!r} names port 0; write {{port}} for the port of the target")
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    if not _PATH.fullmatch(path):
        raise ValueError(f"{url!r}: the path {path!r} has characters that must be written as %XX")
    return Address(host, None if own else port or http.client.HTTP_PORT, path)
