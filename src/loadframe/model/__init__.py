"""The records that travel between the packages: frozen, with units in their names (`_share`: 0..1); throughput is
requests per second. Times `*_s` are CLOCK_MONOTONIC of the machine that measured. Every record is JSON by pydantic's
TypeAdapter."""

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
