"""A service of the reader's own, as a kind of target."""

from loadframe.errors import StudyError
from loadframe.host.leases import Lease
from loadframe.host.processes import Resources
from loadframe.kinds.base import Target
from loadframe.kinds.kind import KindOfTarget
from loadframe.kinds.service.declared import NO_COMMAND, as_declared
from loadframe.kinds.service.running import RunningService
from loadframe.kinds.service.settings import CATALOGUE, KIND


def undeclared(lease: Lease, resources: Resources) -> Target:
    """There is no service without a study of it. StudyError."""
    raise StudyError(f"a target of kind {KIND} has no target.command", remedy=NO_COMMAND)


KINDS = (
    KindOfTarget(KIND, undeclared, CATALOGUE, CATALOGUE.check, list, declared=as_declared, again=RunningService.again),
)
