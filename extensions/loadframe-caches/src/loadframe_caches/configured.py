"""Servers that read a configuration file and check one themselves."""

from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path

from loadframe.host.processes import Allowance
from loadframe.kinds.private_server import PrivateServer, write_readable
from loadframe.model import SettingValue, TargetState


class ConfiguredServer(PrivateServer):
    """file: the name of its configuration. checking: the options with which it only checks one."""

    file: str
    checking: tuple[str, ...]

    @property
    def configuration(self) -> Path:
        return self.folder / self.file

    @abstractmethod
    def command_for(self, configuration: Path, *options: str) -> tuple[str, ...]: ...

    @abstractmethod
    def text(self, settings: Mapping[str, SettingValue]) -> str: ...

    def try_out(self, state: TargetState, allowance: Allowance) -> Path:
        """A file with the configuration for a state. TargetError, in the server's words, where it refuses that."""
        aside = self.folder / "next.conf"
        write_readable(aside, self.text(state.settings))
        status, said = self.said_to_its_end(self.command_for(aside, *self.checking), allowance)
        if status != 0:
            raise self.refusal(state, said)
        return aside

    def configure(self, state: TargetState, allowance: Allowance) -> None:
        """Write the configuration for what comes next. TargetError as `try_out`, with nothing written."""
        self.try_out(state, allowance).replace(self.configuration)
