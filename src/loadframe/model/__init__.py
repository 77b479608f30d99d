"""The records that travel between the rooms of the house.

Frozen, without I/O, with units in their names: `_s` seconds, `_ms` milliseconds, `_bytes`, `_share` (0..1).
Throughput is requests per second everywhere. Times called `*_s` that are points in time are CLOCK_MONOTONIC
seconds of the machine that measured, the same clock in the driver's request log and in the recording.

Every record can be written to and read from JSON with pydantic's TypeAdapter; nothing here knows how.
"""

from __future__ import annotations

from loadframe.model.capacity import *
from loadframe.model.change import *
from loadframe.model.curve import *
from loadframe.model.finding import *
from loadframe.model.forecast import *
from loadframe.model.investigation import *
from loadframe.model.knob import *
from loadframe.model.ladder import *
from loadframe.model.latency import *
from loadframe.model.limit import *
from loadframe.model.ndb import *
from loadframe.model.profile import *
from loadframe.model.requests import *
from loadframe.model.step import *
from loadframe.model.target import *
from loadframe.model.tuning import *
from loadframe.model.verdict import *

__all__ = [
    "CLIENT_AXES",
    "DISTURBED",
    "DRIVER_BESIDE",
    "FLAGS",
    "NO_LATENCIES",
    "OPEN_LOOP_AXES",
    "OTHERS",
    "RATE_AXES",
    "REACHED",
    "UNSETTLED",
    "WHOLE_SECONDS",
    "Alternative",
    "Answer",
    "Bend",
    "Blind",
    "BlindCounter",
    "Calibration",
    "Capacity",
    "CapacityEnd",
    "CapacityLevel",
    "CapacityObjective",
    "CapacityTrial",
    "Change",
    "ChangeRecord",
    "ChangeStatus",
    "Checked",
    "ClassShare",
    "Cliff",
    "Comparison",
    "Control",
    "ControlKind",
    "CounterSpec",
    "Curve",
    "CurvePoint",
    "Decision",
    "Declared",
    "Ending",
    "Endpoint",
    "Estimate",
    "Evidence",
    "Finding",
    "FindingStatus",
    "FlameFrame",
    "Forecast",
    "ForecastCapacity",
    "ForecastPoint",
    "FunctionShare",
    "Host",
    "Interaction",
    "Investigation",
    "Knob",
    "Ladder",
    "LadderStep",
    "Latency",
    "LatencyDistribution",
    "LatencyPoint",
    "Layer",
    "LedgerNow",
    "LevelClass",
    "LevelRatio",
    "Limit",
    "LimitStatus",
    "LoadInterval",
    "Login",
    "Margin",
    "Mechanism",
    "NdbDataNode",
    "NdbFinding",
    "NdbReport",
    "NdbServer",
    "NdbSeverity",
    "NdbThreads",
    "NextLimit",
    "ObjectiveLevel",
    "ObjectiveSide",
    "Observation",
    "Observations",
    "OperationSummary",
    "OperationTimes",
    "Outcome",
    "OutcomeKind",
    "Peak",
    "Price",
    "Profile",
    "ProfileBaseline",
    "ProfileKind",
    "ProfilePlace",
    "ProfileSource",
    "ProfiledStep",
    "Purpose",
    "Quantity",
    "Reached",
    "Remedy",
    "Request",
    "Requirement",
    "Round",
    "RuledOut",
    "RunQuality",
    "Rung",
    "Saturation",
    "Scalability",
    "Scored",
    "SettingValue",
    "SettingWorth",
    "Shape",
    "Stack",
    "StateSummary",
    "Step",
    "StudySummary",
    "TargetState",
    "Think",
    "Trial",
    "TrialReason",
    "TunedSetting",
    "Tuning",
    "TuningEnd",
    "TuningObjective",
    "TuningProof",
    "TuningTrial",
    "UnreadLimit",
    "UnrevertedChange",
    "UntriedRemedy",
    "Verdict",
    "WarmRestart",
    "Witness",
    "amount",
    "cpu_list",
]
