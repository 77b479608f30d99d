"""What a link carried beside a load, from the counters of an interface and from what the drivers counted.

An interface counts frames with their headers; a driver counts the bodies of the answers that ended. What lies between
the two is known to bounds: headers of frames, headers of answers, and the answers that were under way at either end.
"""

from __future__ import annotations

from dataclasses import dataclass

FRAME_HEADERS = (54, 106)
"""Bytes of a frame that are no payload: Ethernet 14, IP 20 (IPv6: 40), TCP 20 to 52 with the options of a stream."""
ANSWER_HEADERS = (17, 1000)
"""Bytes of an answer before its body: a bare status line (RFC 9112) to more than servers usually send."""


@dataclass(frozen=True, slots=True)
class OtherTraffic:
    """Bytes per second that were not of the load, give or take error (a bound)."""

    bytes_per_s: float
    error: float

    @property
    def least(self) -> float:
        """What is there whatever was unknown."""
        return max(0.0, self.bytes_per_s - self.error)


def other_traffic(
    seconds: float, counted: int, packets: int, bodies: int, answers: float, under_way: float
) -> OtherTraffic:
    """counted, packets: of an interface in one direction. bodies: bytes of the answers that ended in that time;
    answers: their number; under_way: as many more may have come in part. ValueError for no time."""
    if seconds <= 0:
        raise ValueError(f"nothing is carried in {seconds} s")
    edge = under_way * bodies / answers if answers > 0 else 0.0
    low, high = (
        counted - packets * frame - bodies - answers * answer + sign * edge
        for frame, answer, sign in zip(reversed(FRAME_HEADERS), reversed(ANSWER_HEADERS), (-1, 1), strict=True)
    )
    low, high = max(0.0, low) / seconds, max(0.0, high) / seconds
    return OtherTraffic((low + high) / 2, (high - low) / 2)
