"""What can go wrong, as the user meets it.

    LoadframeError
    ├── UserError                the user must act; the message says how (exit 1)
    │   ├── UsageError           an option whose value makes no sense, or not together with another one (exit 2)
    │   ├── StudyError           the study file: unknown key, wrong unit, impossible level
    │   ├── MissingTool          a binary or package that is not installed
    │   ├── TargetError          the target will not start, died, or refuses a level
    │   │   └── NotRecovered     it served before a load; it died of it, hangs, or goes on to refuse after it
    │   ├── WorkloadError        the load driver failed
    │   │   └── TooFewRequests   no window had enough requests in it to decide anything
    │   ├── CageError            the machine will not grant the hardware asked for
    │   ├── ChangeError          a setting of the machine, or of an attached server, that cannot be changed or put back
    │   ├── RunError             a run folder that cannot be written or read
    │   ├── RecordingError       a recording that is empty, foreign or corrupt
    │   ├── SampleError          a CSV sample that cannot be read or compared
    │   ├── FleetError           a host of a fleet that cannot be reached, is lost, or must not be used as it is
    │   │   └── StepVoid         a step over many hosts that is no measurement: which host, and why
    │   ├── OutputError          standard output that does not take the answer
    │   ├── MachineError         memory, descriptors or a disk that ran out where nothing else says so
    │   ├── Fault                a fault of Loadframe's own: its traceback is kept, and the message says where
    │   └── OutsideFault         a fault of a kind or workload that another distribution registers
    └── Interrupted              Ctrl-C or SIGTERM: reverted, reported, exit 130 (1 where not all could be)

Every message states the fact, the offending value and the next thing to do. Third-party exceptions are mapped to these
once, in the adapter that calls the third party.
"""

from collections.abc import Callable, Iterable, Mapping

from loadframe.masking import masked


class LoadframeError(Exception):
    """Everything that Loadframe raises on purpose."""


LONGEST_FACT = 4000
"""Characters. A fact quotes foreign texts of any length."""


class UserError(LoadframeError):
    """`fact` states the problem and the value, `remedy` what to do next, `details` is appended verbatim (as the last
    lines of a log). Secrets are hidden in all three; too long a fact is cut in the middle."""

    def __init__(self, fact: str, *, remedy: str = "", details: str = "") -> None:
        fact = masked(fact)
        if len(fact) > LONGEST_FACT:
            fact = f"{fact[: LONGEST_FACT * 3 // 4]} [...] {fact[-LONGEST_FACT // 4 :]}"
        super().__init__(fact)
        self.fact, self.remedy, self.details = fact, masked(remedy), masked(details)

    def __str__(self) -> str:
        details = f"\n{self.details.rstrip()}" if self.details else ""
        return "\n".join(part for part in (self.fact, self.remedy, details) if part)


class UsageError(UserError): ...


class StudyError(UserError):
    """faults: where there are several, each by its text."""

    faults: "Mapping[str, UserError] | None" = None


def check_all(checks: Iterable[Callable[[], object]]) -> None:
    """One StudyError lists all distinct faults; a single fault is raised as it is."""
    faults: dict[str, UserError] = {}
    for check in checks:
        try:
            check()
        except (StudyError, CageError) as fault:
            faults |= getattr(fault, "faults", None) or {str(fault): fault}
    if len(faults) == 1:
        raise next(iter(faults.values()))
    if faults:
        several = StudyError("\n".join(faults), remedy="Correct all of these.")
        several.faults = faults
        raise several


def extra(name: str) -> str:
    """How an extra of Loadframe's distribution is installed, for a remedy."""
    return f"pip install 'loadframe[{name}]', or `make install` in a checkout"


class MissingTool(UserError): ...  # noqa: N818 - a tool is missing


class TargetError(UserError): ...


class NotRecovered(TargetError):  # noqa: N818 - it is what the server did
    """The server died, or it refuses or is silent for longer than exhausted resources take to recover. died: how its
    process ended, and full: what had run out, both in words; "" where it runs, or that is unknown. path, status: the
    request, and its answer; 0 without an answer, with the reason in `why`. waited_s: how long it was asked again,
    without other load. level, treatment: of the step that it fell in; None where no step was running: then it was the
    last one. noted: it is already in the run folder."""

    def __init__(
        self,
        fact: str,
        *,
        remedy: str,
        details: str = "",
        died: str = "",
        full: str = "",
        path: str = "",
        status: int = 0,
        waited_s: float = 0.0,
        why: str = "",
    ) -> None:
        super().__init__(fact, remedy=remedy, details=details)
        self.died, self.full, self.path, self.status = died, full, path, status
        self.waited_s, self.why = waited_s, why
        self.level: float | None = None
        self.treatment: str | None = None
        self.noted = False


class WorkloadError(UserError): ...


class TooFewRequests(WorkloadError):  # noqa: N818 - it counts requests
    """needed_s: by level, how long a window would have to be."""

    def __init__(self, fact: str, *, remedy: str, needed_s: Mapping[float, float]) -> None:
        super().__init__(fact, remedy=remedy)
        self.needed_s = needed_s


class CageError(UserError): ...


class ChangeError(UserError): ...


class RunError(UserError): ...


class RecordingError(UserError): ...


class SampleError(UserError): ...


class FleetError(UserError): ...


class StepVoid(FleetError):  # noqa: N818 - it is the step's end
    """Its load is never spread over the other hosts. reason: of model.VoidReason."""

    def __init__(self, host: str, reason: str, fact: str, *, remedy: str = "", details: str = "") -> None:
        super().__init__(f"the step is void ({reason}): {fact}", remedy=remedy, details=details)
        self.host, self.reason = host, reason


class OutputError(UserError): ...


class MachineError(UserError): ...


class Fault(UserError): ...  # noqa: N818 - its name says whose it is


class OutsideFault(UserError): ...  # noqa: N818 - its name says whose it is


class Interrupted(LoadframeError): ...  # noqa: N818 - the user did it; it is no error
