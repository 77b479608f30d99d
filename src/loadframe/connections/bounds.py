"""Bounds on the size and duration of an answer: a server may be slow, broken or hostile."""

import time
from collections.abc import Callable

MIB = 1 << 20


class TooMuchError(OSError): ...


class Bound:
    """The bytes and seconds of one answer, from `begin` on."""

    def __init__(self, most_bytes: int, within_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._most_bytes, self._within_s, self._clock = most_bytes, within_s, clock
        self.begin()

    def begin(self) -> None:
        self._taken, self._until = 0, self._clock() + self._within_s

    def left_s(self) -> float:
        """TimeoutError where no time is left."""
        left = self._until - self._clock()
        if left <= 0:
            raise TimeoutError(f"its answer has not ended after {self._within_s:g} s")
        return left

    @property
    def left_bytes(self) -> int:
        return max(0, self._most_bytes - self._taken)

    def take(self, size: int) -> None:
        """Count what has been read. TooMuchError beyond the bound."""
        self._taken += size
        if self._taken > self._most_bytes:
            raise TooMuchError(f"its answer is longer than {shown(self._most_bytes)}")


def shown(size: int) -> str:
    return f"{size / MIB:g} MiB" if size >= MIB else f"{size} bytes"
