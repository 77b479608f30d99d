"""The records that travel between the packages: frozen, without I/O, with units in their names: `_s` seconds, `_ms`
milliseconds, `_bytes`, `_share` (0..1). Throughput is requests per second everywhere. Points in time called `*_s` are
CLOCK_MONOTONIC seconds of the machine that measured, the same clock in the driver's request log and in the recording.
Every record can be written to and read from JSON with pydantic's TypeAdapter."""

from loadframe.model.capacity import *
from loadframe.model.case_study import *
from loadframe.model.curve import *
from loadframe.model.finding import *
from loadframe.model.forecast import *
from loadframe.model.investigation import *
from loadframe.model.ladder import *
from loadframe.model.limit import *
from loadframe.model.profile import *
from loadframe.model.step import *
from loadframe.model.target import *
from loadframe.model.verdict import *
