"""A file of the owner of a running service, in which keys are set and from which they are taken back. Its bytes are
kept meanwhile, and are there again once no key is changed."""

import hashlib
import os
from collections.abc import Iterable
from pathlib import Path

from loadframe.errors import ChangeError
from loadframe.formats.named_files import read_up_to
from loadframe.host.state import private_folder, state_directory, write_durably
from loadframe.kinds.service import formats
from loadframe.model import SettingValue
from loadframe.system.files import Folder, Whose

MOST_BYTES = 1 << 20


class OwnFile:
    """path: of the owner's file. format_: as formats.py calls it. keys: all that may be set in it."""

    def __init__(self, path: Path, format_: str, keys: Iterable[str]) -> None:
        self._path, self._format, self._keys = path, format_, tuple(keys)
        self._folder = Folder(path.parent, Whose.ANOTHERS, ChangeError)

    def read(self, key: str) -> SettingValue | None:
        """What a key has been set to, whether the service has read it already; None where nothing is changed by us.
        ChangeError."""
        try:
            kept = self._kept()
            if not kept.exists():
                return None
            now = self._found(self._now()[0], key)
            return None if now == self._found(_text(kept), key) else now
        except (OSError, ValueError) as error:
            raise self._refused(key, error) from error

    def set(self, key: str, value: SettingValue) -> None:
        """Set one key that it has; all else stays. Where every key is as it was at first, so is every byte, unless its
        owner has changed it meanwhile. ChangeError."""
        try:
            (now, status), kept = self._now(), self._kept()
            if self._found(now, key) is None:
                raise ValueError("it has no such key")
            if not kept.exists() or self._values(_text(kept)) == self._values(now):
                write_durably(kept, now)
            first, after = _text(kept), formats.edited(now, self._format, key, value)
            back = self._values(after) == self._values(first) and self._is_ours(now, first)
            self._folder.remove_torn()
            self._folder.replace(self._path.name, (first if back else after).encode(), like=status)
        except (OSError, ValueError) as error:
            raise self._refused(key, error) from error

    def done(self) -> None:
        """The service has read it: what was kept of it is dropped where no key is changed. ChangeError."""
        try:
            kept = self._kept()
            if kept.exists() and self._values(_text(kept)) == self._values(self._now()[0]):
                kept.unlink()
        except (OSError, ValueError) as error:
            raise self._refused("a key", error) from error

    def _is_ours(self, now: str, first: str) -> bool:
        """Whether nothing but our keys differs from what it was."""
        was, made = self._values(first), first
        for key, value in self._values(now).items():
            if value is not None and value != was[key]:
                made = formats.edited(made, self._format, key, value)
        return made == now

    def _values(self, text: str) -> dict[str, SettingValue | None]:
        return {key: self._found(text, key) for key in self._keys}

    def _found(self, text: str, key: str) -> SettingValue | None:
        return formats.found(text, self._format, key)

    def _kept(self) -> Path:
        """Where its bytes are kept while a key is changed."""
        folder = private_folder(state_directory() / "files", "keep a file as it was", "LOADFRAME_STATE")
        return folder / hashlib.sha256(os.fsencode(self._path)).hexdigest()

    def _refused(self, key: str, error: OSError | ValueError) -> ChangeError:
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        return ChangeError(
            f"{key} cannot be set in {self._path}: {why}",
            remedy="It must be a text file of its format, with one name and this key, that we may write.",
        )

    def _now(self) -> tuple[str, os.stat_result]:
        """What stands in it, and its status, of one descriptor: the folder may be another user's, who can put a link in
        its place at any moment."""
        data, status = self._folder.read_own(self._path.name, MOST_BYTES)
        return data.decode("utf-8"), status


def _text(path: Path) -> str:
    data = read_up_to(path, MOST_BYTES)
    if len(data) > MOST_BYTES:
        raise ValueError(f"it has more than {MOST_BYTES:,} bytes")
    return data.decode("utf-8")
