"""A file of our own among the configuration of an attached server, and the server's restart: for settings that are only
read at the start; and settings in the form of each target's own file, to copy."""

import errno
import json
import os
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from loadframe.changes import host
from loadframe.errors import ChangeError, StudyError, UserError
from loadframe.formats.json_text import write_json
from loadframe.host import identity, to_its_end
from loadframe.kinds import registry
from loadframe.kinds.base import Attached
from loadframe.kinds.kind import KindOfTarget, SettingsFile
from loadframe.model import Change, ChangeRecord, SettingValue
from loadframe.system.files import Folder, Whose

RESTARTED_WITHIN_S = 120.0
SETTLED_WITHIN_S = 30.0
LONGEST_S = 3 * RESTARTED_WITHIN_S + SETTLED_WITHIN_S
NAME = "configuration file"
MOST_BYTES = 1_000_000
BETWEEN = "; "
BY_HAND = "See the server's own log; `loadframe changes revert` takes the file away and restarts it."
OTHER_LAYERS = {
    "RLIMIT_NOFILE": "LimitNOFILE={1}   # of systemd; in a shell: ulimit -n {1}",
    "RLIMIT_NPROC": "LimitNPROC={1}   # of systemd; in a shell: ulimit -u {1}",
    "memory.max": "MemoryMax={1}   # of systemd",
    "pids.max": "TasksMax={1}   # of systemd",
    "process": "# of the process: {0} = {1}",
}
"""How changes outside of the server's own file are typed in, {0} the name, {1} the value: systemd.exec(5)."""


class ConfigFile:
    """See changes.places.Place. Its only setting is the file's content; "" while there is none."""

    def __init__(self, path: Path, restart: Sequence[str], server: Mapping[str, str], words: str) -> None:
        """restart: the command that restarts the server. server: as Attached.address. ValueError for other kinds."""
        self._path, self._restart, self._server = path, tuple(restart), dict(server)
        self._aside = f"{path.name}.aside"
        self._folder = Folder(path.parent, Whose.ANOTHERS, ChangeError)
        self._underway = False
        if (known := registry.attachable(server["kind"])) is None:
            raise ValueError(f"a {server['kind']!r} is not restarted")
        self._head = known.head
        self.words = words
        self.address: Mapping[str, str] = {
            **server,
            "kind": "config",
            "server": server["kind"],
            "path": str(path),
            "restart": write_json(list(restart)),
            "words": words,
        }

    @classmethod
    def at(cls, address: Mapping[str, str]) -> "ConfigFile":
        """The file by what `address` gave; an earlier restart may be under way. KeyError, ValueError."""
        server = {**{name: address[name] for name in ("address", "option_file", "user")}, "kind": address["server"]}
        server |= {name: address[name] for name in ("thing", "number") if name in address}
        restart = json.loads(address["restart"])
        if not (isinstance(restart, list) and all(isinstance(word, str) for word in restart)):
            raise ValueError(f"{server['kind']!r} is not restarted with {address['restart']}")
        config = cls(Path(address["path"]), restart, server, address["words"])
        config._underway = True
        with suppress(ChangeError, OSError):  # its folder is gone, and with it what was half written
            config._folder.remove_torn()
        return config

    def make_room(self) -> None:
        """ChangeError where a file exists already: it is not ours."""
        if self._folder.exists(self._path.name) or self.read(NAME) != "":
            raise ChangeError(
                f"target.config: {self._path} is there already",
                remedy="Give the name of a file that is not there and that the server reads when it starts.",
            )

    def read(self, name: str) -> SettingValue:
        """Its settings, also those of the file that is aside. ChangeError also for what we cannot have written: a link
        that the server's user puts there would have us show a file that only we may read."""
        for name in (self._path.name, self._aside):
            with suppress(FileNotFoundError):
                text = self._ours(name).decode("utf-8", "replace")
                return BETWEEN.join(text.removeprefix(self._head).splitlines())
        return ""

    def _ours(self, name: str) -> bytes:
        try:
            data, status = self._folder.read_own(name, MOST_BYTES)
        except FileNotFoundError:
            raise
        except OSError as error:
            if error.errno != errno.ELOOP:
                raise self._refused(error) from error
        except ChangeError:  # it is no file, or has several names
            pass
        else:
            if status.st_uid == os.geteuid():
                return data
        raise ChangeError(
            f"target.config: {self._path.with_name(name)} is not a file that Loadframe has written",
            remedy="See who put it there; delete it.",
        )

    def write(self, name: str, value: SettingValue) -> None:
        """Write the file and restart the server; "": restart without the file, which goes. ChangeError where it cannot
        be written, TargetError where the restart fails or no answer comes within RESTARTED_WITHIN_S."""
        try:
            if value != "":
                lines = [f"{line}\n" for line in str(value).split(BETWEEN)]
                self._folder.replace(self._path.name, (self._head + "".join(lines)).encode(), mode=0o644)
            elif self._folder.exists(self._path.name):
                # Under this name the server does not read it, and it marks a restart that is due.
                self._folder.rename(self._path.name, self._aside)
        except OSError as error:
            raise self._refused(error) from error
        self._restarted()
        if value == "":
            self._folder.remove(self._aside)

    def _restarted(self) -> None:
        if self._underway:
            self._settle()
        self._underway = True
        try:
            silent = partial(_silent, self._server)
            to_its_end.restart(self._restart, RESTARTED_WITHIN_S, silent, self.words, BY_HAND)
        except UserError:
            self._underway = False
            raise
        self._underway = False

    def _settle(self) -> None:
        """Wait for an earlier restart: a server that is asked to end while it starts may do neither (MariaDB 10.11 hung
        in one of 25)."""
        until = time.monotonic() + RESTARTED_WITHIN_S
        arguments = "".join(f"{word}\0" for word in self._restart)
        while identity.naming(arguments) and time.monotonic() < until:
            time.sleep(0.05)
        until = time.monotonic() + SETTLED_WITHIN_S
        while _silent(self._server) is not None and time.monotonic() < until:
            time.sleep(0.1)

    def _refused(self, error: OSError) -> ChangeError:
        return ChangeError(
            f"target.config: {self._path}: {error.strerror}",
            remedy="Its folder must be there and ours to write; otherwise leave out target.config and target.restart.",
        )


def _silent(address: Mapping[str, str]) -> str | None:
    try:
        server: Attached = registry.again(address)
    except UserError as error:
        return error.fact
    server.close()
    return None


def written(row: KindOfTarget, settings: Mapping[str, SettingValue]) -> tuple[str, str]:
    """Name and text of the target's own settings file. StudyError without one, and for unprintable words."""
    form = row.file
    if form is None:
        known = ", ".join(name for name, kind in registry.KINDS.items() if kind.file is not None)
        raise StudyError(f"no settings of {row.kind} are searched", remedy=f"Those of {known} are.")
    for word in (word for setting_ in settings.items() for word in setting_ if isinstance(word, str)):
        if not word.isprintable():
            raise StudyError(
                f"{word!a} does not belong in a line of {form.file}", remedy="Give it without such characters."
            )
    return form.file, form.head + "".join(f"{line}\n" for line in _lines(row, form, form.line, settings))


def _lines(row: KindOfTarget, form: SettingsFile, line: str, settings: Mapping[str, SettingValue]) -> list[str]:
    words: dict[str, str] = {}
    for name, value in settings.items():
        words[name], spec = str(value), row.setting(name)
        if isinstance(value, bool):
            words[name] = form.words[value]
        elif isinstance(value, str):
            words[name] = f"{form.quotes}{value}{form.quotes}"
        elif form.size and spec is not None and spec.kind == "bytes" and value >= 0:
            words[name] = f"{form.quotes}{value}{form.size}{form.quotes}"
    return [line.format(name=name, value=word) for name, word in words.items()]


def to_copy(row: KindOfTarget, changes: Sequence[Change] | Sequence[ChangeRecord]) -> tuple[str, ...]:
    """Lines to type in: those of the target's own file, of its process and of the machine, then which take effect only
    at a restart. StudyError as `written`."""
    given = {
        change.setting: change.after
        for change in changes
        if change.layer in ("server", "application") and change.after is not None
    }
    own = {name: value for name, value in given.items() if row.setting(name) is not None}
    form = row.file
    if own and form is not None:
        lines = written(row, own)[1].splitlines()
        lines = _lines(row, form, form.statement, own) if form.statement else lines
    else:
        lines = [f"{name} = {value}" for name, value in own.items()]
    for change in changes:
        if change.layer == "process":
            lines.append(OTHER_LAYERS.get(change.setting, OTHER_LAYERS["process"]).format(change.setting, change.after))
        elif change.layer == "host" and change.after is not None:
            lines.append(host.command(change.setting, change.after))
    comment = "--" if form is not None and (form.statement or form.file.endswith(".sql")) else "#"
    options = [f"{name} = {value}" for name, value in given.items() if name not in own]
    lines += [f"{comment} of the workload: in the study, under [workload.options]", *options] if options else []
    restarts = [name for name in own if row.catalogue.needs_restart(name)]
    return (*lines, *([f"{comment} takes effect at a restart: {', '.join(restarts)}"] if restarts else []))
