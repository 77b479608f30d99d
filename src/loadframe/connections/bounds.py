"""How much is read of an answer, and for how long: a server may be slow, broken or hostile, and says what it likes."""

import time
from collections.abc import Callable

MIB = 1 << 20


class TooMuchError(OSError):
    """An answer is longer than anything that could be meant."""


class Bound:
    """Of one answer, from `begin` on: its bytes and its seconds."""

    def __init__(self, most_bytes: int, within_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._most_bytes, self._within_s, self._clock = most_bytes, within_s, clock
        self.begin()

    def begin(self) -> None:
        """The next answer."""
        self._taken, self._until = 0, self._clock() + self._within_s

    def left_s(self) -> float:
        """How many seconds it may still take. TimeoutError where there are none."""
        left = self._until - self._clock()
        if left <= 0:
            raise TimeoutError(f"its answer has not ended after {self._within_s:g} s")
        return left

    @property
    def left_bytes(self) -> int:
        """How many more bytes it may have."""
        return max(0, self._most_bytes - self._taken)

    def take(self, size: int) -> None:
        """Count what has been read. TooMuchError where that is more than there may be."""
        self._taken += size
        if self._taken > self._most_bytes:
            raise TooMuchError(f"its answer is longer than {shown(self._most_bytes)}")


def shown(size: int) -> str:
    """A bound in words."""
    return f"{size / MIB:g} MiB" if size >= MIB else f"{size} bytes"
