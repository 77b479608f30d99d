"""nginx as data: its settings, where each stands in the configuration, and its counters."""

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from loadframe.kinds.catalogue import catalogue_in, counters_in, tunables_in
from loadframe.knowledge.rows import toml_rows

Context = Literal["main", "events", "http", "listen", "cache", "proxy"]

_FILE, _METRICS = (Path(__file__).with_name(name) for name in ("settings.toml", "metrics.txt"))
CATALOGUE, TUNABLES = catalogue_in(_FILE), tunables_in(_FILE)
"""dynamic: workers that a reload starts take the new value."""
CACHE_CATALOGUE = catalogue_in(_FILE, Path(__file__).with_name("cache_settings.toml"))
"""nginx's own defaults of proxy_cache_max_size, _inactive, _valid and _lock are none, 10 minutes, none and off; with
ours nothing expires or is fetched twice in the middle of a study."""

_ROWS = toml_rows(_FILE)
DIRECTIVES: Mapping[Context, list[str]] = {
    context: [form if "{" in form else f"{form} {{{form}}}" for form in forms]
    for context, forms in _ROWS["directives"].items()
}
"""The lines of the configuration, with settings in braces."""
LEFT_OUT = frozenset(_ROWS["left_out"])
"""Settings whose defaults leave their lines out."""

COUNTERS = tuple(counters_in(_METRICS).values())
"""status: stub_status; our own reading is counted too. ceiling: the number of workers, the connections of each, and
how many clients there may be before idle connections are closed; the descriptors that a worker may have, and those
of the worker that has most. work: seconds of CPU, and in uninterruptible sleep (sampled at each look), averaged over
the workers. log: counted in the error log, as nginx keeps no counter of them."""
