"""What a study declares of a user's own service: how it is started, when it is ready, and its settings."""

import re
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, field_validator, model_validator

from loadframe.model import SettingValue
from loadframe.study.exposed_tables import ExposedKeys
from loadframe.study.fields import Duration, Table, named_once

Apply = Literal["environment", "argument", "file", "command"]
KeyFormat = Literal["toml", "yaml", "json", "ini", "properties"]
Format = KeyFormat | Literal["", "template"]
Command = list[str]
COMPONENT = re.compile(r"(?!(target|driver|recorder|service|shard\d*)$)[a-z][a-z0-9-]{0,30}")


def _name(value: str) -> str:
    if not re.fullmatch(r"[a-z][a-z0-9_]{0,62}", value):
        raise ValueError(f"{value!r} is no name of a setting: it has lower-case letters, digits and underscores")
    return value


def _variable(value: str) -> str:
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,254}", value):
        raise ValueError(f"{value!r} is no name of an environment variable: it has letters, digits and underscores")
    if value.startswith(("LOADFRAME_", "LD_")):
        raise ValueError(f"{value!r} is not passed on")
    return value


Variable = Annotated[str, AfterValidator(_variable)]
SettingName = Annotated[str, AfterValidator(_name)]


class ReadyTable(Table):
    """When a service that was started is ready: exactly one of the four."""

    http: str = Field("", description="this address answers a GET with a status below 500")
    tcp: str = Field("", description="HOST:PORT accepts a connection")
    log: str = Field("", description="its output contains these words")
    command: Command = Field(default_factory=list, description="this command exits with 0")
    within: Duration = Field(30.0, gt=0, le=3600)

    @model_validator(mode="after")
    def _one(self) -> Self:
        given = [name for name in ("http", "tcp", "log", "command") if getattr(self, name)]
        if len(given) > 1:
            raise ValueError(f"target.ready has {' and '.join(given)}; give one of http, tcp, log and command")
        return self


class ReadBackTable(Table):
    """Where the value in use is read: exactly one of command, file and json."""

    command: Command = Field(default_factory=list, description="a command that prints the value alone")
    file: str = Field("", description="a file that has the value under `key`")
    key: str = Field("", description="file: the key, with dots between its parts")
    format: KeyFormat | Literal[""] = Field("", description="file: its format, where its name does not end with it")
    json_: str = Field("", alias="json", description="an address whose JSON has the value at `field`")
    field: str = Field("", description="json: the field, with dots between its parts")

    @model_validator(mode="after")
    def _one(self) -> Self:
        if [bool(self.command), bool(self.file), bool(self.json_)].count(True) != 1:
            raise ValueError("read_back takes exactly one of command, file and json")
        if bool(self.file) != bool(self.key) or bool(self.json_) != bool(self.field):
            raise ValueError("read_back: a file takes `key`, a json address takes `field`")
        if self.format and not self.file:
            raise ValueError("read_back: `format` is of a file")
        if self.json_ and not all(self.field.split(".")):
            raise ValueError(f"read_back.field = {self.field!r} has an empty part; put one dot between two names")
        return self


class SettingTable(Table):
    """A setting of a service: the values that it may have, and how one is applied."""

    values: list[SettingValue] = Field(default_factory=list, description="the values that it may have, in rising order")
    low: int | float | None = Field(None, alias="from", description="the least of any number up to `to`")
    high: int | float | None = Field(None, alias="to", description="the most")
    apply: Apply
    name: str = Field("", description="environment: the variable; argument: the word before it")
    file: str = Field("", description="file: the file of yours; the service gets a private copy, at {file}")
    key: str = Field("", description="file: the key, with dots between its parts; none: {NAME} stands in the file")
    format: Format = Field("", description="file: its format, where its name does not end with it")
    command: Command = Field(default_factory=list, description="command: applies {value} to the running service")
    restart: bool | None = Field(None, description="whether it takes a restart; none: all but command do")
    read_back: ReadBackTable | None = Field(None, description="where the value in use is read")
    gives_up: str = Field("", description="what may be lost with values other than the first")
    raises: str = Field("", description="the limit or the cause that a larger value lifts, such as service.parallelism")

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if bool(self.values) == (self.low is not None) or (self.low is None) != (self.high is None):
            raise ValueError("a setting takes either `values` or both `from` and `to`")
        if self.low is not None and self.high is not None and not self.low < self.high:
            raise ValueError(f"from = {self.low} is not below to = {self.high}")
        if self.gives_up and not self.values:
            raise ValueError("`gives_up` takes `values`: the first of them gives nothing up")
        if (self.apply == "file") != bool(self.file):
            raise ValueError('`file` belongs to apply = "file", which takes it')
        if self.key and self.format == "template":
            raise ValueError("a template has {NAME} in it and no `key`")
        if (self.apply == "command") != bool(self.command):
            raise ValueError('`command` belongs to apply = "command", which takes it')
        if self.apply in ("environment", "argument") and self.restart is False:
            raise ValueError(f'apply = "{self.apply}" takes a restart; without one there are "file" and "command"')
        if self.apply == "command" and self.restart:
            raise ValueError('apply = "command" is for the running service, which a restart would end')
        return self

    @property
    def restarts(self) -> bool:
        return self.apply != "command" if self.restart is None else self.restart


class ProcessKeys(Table):
    """How a service, or a helper of one, is started, or which one that runs is meant."""

    command: Command = Field(default_factory=list, description="kind service: what starts it, with {port}")
    environment: dict[str, str] = Field(default_factory=dict, description="kind service: further variables for it")
    pass_environment: list[Variable] = Field(
        default_factory=list,
        description="kind service: variables of yours that it and its commands get, besides the usual",
    )
    pid: int | None = Field(None, gt=0, description="kind service: one that runs, by its first process")
    listen: int | str | None = Field(
        None, description="kind service: one that runs, by its port or HOST:PORT; with a command: the port it takes"
    )
    unit: str = Field("", description="kind service: one that runs, by its systemd unit")
    container: str = Field("", description="kind service: one that runs, by the name or id of its container")
    folder: str = Field("", description="kind service: where its command begins; none: where Loadframe does")
    ready: ReadyTable | None = Field(None, description="kind service: when it is; none: once its port accepts")
    user: str = Field("", description="kind service: who runs it, if Loadframe is root; none: one without privileges")

    @property
    def is_running_service(self) -> bool:
        """One that Loadframe does not start."""
        return not self.command and bool(self.pid or self.listen or self.unit or self.container)


class WithTable(ProcessKeys):
    """A helper of a service: its database, its cache. It is a component of its own."""

    name: str = Field(description="names its metrics; {NAME_port} in commands of the service is its port")

    @field_validator("name")
    @classmethod
    def _own(cls, name: str) -> str:
        if COMPONENT.fullmatch(name) is None:
            raise ValueError(
                f"target.with.name = {name!r}: a word of lower-case letters, digits and dashes that names no "
                "other component is wanted"
            )
        return name

    @model_validator(mode="after")
    def _one(self) -> Self:
        if bool(self.command) == self.is_running_service:
            raise ValueError(f"target.with {self.name!r} takes either `command` or one of pid, listen, unit, container")
        return self


class ServiceKeys(ProcessKeys, ExposedKeys):
    """The keys of [target] that declare a service."""

    owned: bool = Field(False, description="kind service: the running one may be changed; it is put back")
    paths: str = Field("", description="kind service: what the workload http requests, separated by blanks; none: /")
    stop_within: Duration = Field(10.0, gt=0, le=3600, description="kind service: then it is killed")
    setting: dict[SettingName, SettingTable] = Field(default_factory=dict, description="kind service: what may be set")
    with_: Annotated[list[WithTable], named_once("helpers")] = Field(
        default_factory=list, alias="with", description="kind service: its helpers"
    )

    @property
    def service_keys(self) -> tuple[str, ...]:
        fields = ServiceKeys.model_fields
        return tuple(
            fields[name].alias or name
            for name in fields
            if getattr(self, name) != fields[name].get_default(call_default_factory=True)
        )
