"""Numbers for people: never more digits than the interval supports."""

import math

WIDE = 4.0
APART = 2.0
"""Ends further apart than this factor get two digits each: else the value would look like its nearer end ("1,000 (1,000
to 3,000)" for 1,220, 1,020 and 2,950)."""


def decimals_for(value: float, low: float, high: float) -> int:
    """Decimals (negative: tens, hundreds) at which the last digit is as coarse as the interval's half-width; more, up
    to three, where an end or the value would become 0 ("0 to 30" for 2.9 to 31), or an end 1: of a ratio's ends the
    side of 1 decides."""
    half_width = abs(high - low) / 2
    if not math.isfinite(half_width) or half_width <= 0:
        return _significant_decimals(value, 3)
    decimals = min(3, -math.floor(math.log10(half_width)))
    while decimals < 3 and (
        any(round(end, decimals) in (0, 1) and end not in (0, 1) for end in (low, high))
        or (round(value, decimals) == 0 and value != 0)
    ):
        decimals += 1
    return decimals


def _significant_decimals(value: float, digits: int) -> int:
    if value == 0 or not math.isfinite(value):
        return 0
    decimals = digits - 1 - math.floor(math.log10(abs(value)))
    return max(0, decimals) if abs(value) < 1000 else decimals


def fixed(value: float, decimals: int) -> str:
    """With thousands separators; negative decimals are tens and hundreds."""
    rounded = round(value, decimals)
    text = f"{rounded:,.{max(0, decimals)}f}"
    return "0" if text in {"-0", "0"} else text


def plain(value: float) -> str:
    """Three significant digits, no trailing zeros ("1,230", "12.5", "0.04")."""
    text = fixed(value, _significant_decimals(value, 3))
    return text.rstrip("0").rstrip(".") if "." in text else text


def exact(value: float) -> str:
    return f"{value:,.4f}".rstrip("0").rstrip(".")


def with_interval(value: float, low: float, high: float) -> tuple[str, str, str]:
    if 0 < low <= value <= high < math.inf and high > APART * low:
        return _two_digits(value), _two_digits(low), _two_digits(high)
    decimals = decimals_for(value, low, high)
    return fixed(value, decimals), fixed(low, decimals), fixed(high, decimals)


def _two_digits(value: float) -> str:
    decimals = 1 - math.floor(math.log10(value))
    while decimals < 3 and round(value, decimals) == 1 and value != 1:
        decimals += 1
    return fixed(value, decimals)


def brief(value: float) -> str:
    return plain(float(_two_digits(value).replace(",", "")))


def is_vague(low: float, high: float) -> bool:
    """Whether only the nearer end of a ratio's interval is worth showing."""
    return has_width(low, high) and low > 0 and high > WIDE * low


def has_width(low: float, high: float) -> bool:
    return math.isfinite(low) and math.isfinite(high) and low != high


def percent(share: float | None) -> str:
    value = 100 * (share or 0.0)
    return "" if share is None else f"{fixed(value, max(0, _significant_decimals(value, 2)))} %"


def seconds(value: float) -> str:
    """A duration in at most two units; days from two days on."""
    if value < 90:
        return f"{plain(value)} s"
    if value < 5400:
        return _two(int(value), "min", 60, "s", 1)
    if value < 48 * 3600:
        return _two(int(value), "h", 3600, "min", 60)
    return f"{plain(value / 86400)} days"


def _two(whole_s: int, unit: str, unit_s: int, smaller: str, smaller_s: int) -> str:
    count, rest = whole_s // unit_s, whole_s % unit_s // smaller_s
    return f"{count} {unit} {rest} {smaller}" if rest else f"{count} {unit}"
