"""Values with their units, for people."""

import math

from loadframe.metrics import metric as metric_of

PLURAL = frozenset({"cores"})


def _short(value: float) -> str:
    if not math.isfinite(value):
        return "unknown"
    size = abs(value)
    if size >= 100 or value == round(value):
        return f"{value:,.0f}"
    if size >= 10:
        return f"{value:.1f}"
    return f"{value:.3g}"


def _bytes(value: float) -> str:
    size, unit = float(value), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if abs(size) < 1024:
            break
        size, unit = size / 1024, larger
    return f"{size:.0f} {unit}" if unit == "B" or abs(size) >= 100 else f"{size:.3g} {unit}"


def show(value: float, unit: str) -> str:
    """Short enough for a sentence. Shares become per cent; unknown units are appended."""
    match unit:
        case "share":
            return f"{100 * value:.3g} %"
        case "bytes":
            return _bytes(value)
        case "bytes/s":
            return _bytes(value) + "/s"
        case "Hz":
            return f"{value / 1e9:.3g} GHz"
        case "1/s":
            return f"{_short(value)}/s"
        case "count" | "":
            return _short(value)
        case "cores":
            return f"{(text := _short(value))} {'core' if text == '1' else unit}"
        case _:
            shown = _short(value)
            return f"{shown} {unit.removesuffix('s') if shown == '1' and unit in PLURAL else unit}"


def show_metric(metric: str, value: float) -> str:
    return show(value, metric_of(metric).unit)
