"""A study over a fleet: its hosts reached and set up around what an experiment does, with a bench that they drive."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from loadframe.errors import StudyError
from loadframe.experiments.frame import MakeBench
from loadframe.fleet.bench import FleetBench
from loadframe.fleet.declaration import Fleet
from loadframe.fleet.hosts import Hosts
from loadframe.fleet.load import check_shared
from loadframe.fleet.surroundings import check_may_change
from loadframe.kinds import registry as targets
from loadframe.study import Study


@contextmanager
def benches_over(fleet: Fleet, study: Study, say: Callable[[str], None] = lambda _: None) -> Iterator[MakeBench]:
    """What makes benches of this study that the fleet's hosts drive, as long as they are reached. UserError where a
    host is not, or where the study cannot be driven by several."""
    check_shared(study)
    _check_target(study)
    check_may_change(fleet, study)
    with Hosts(fleet, study, say) as hosts:
        yield lambda declared, run, told: FleetBench(declared, run, told, hosts)


def _check_target(study: Study) -> None:
    """StudyError for a target that hosts do not reach."""
    row = targets.kind_named(study.target.kind)
    if row.by_address is None and not study.target.is_running:
        raise StudyError(
            f"a fleet loads a server that runs already, and {study.target.kind!r} is one that Loadframe starts here",
            remedy='Start it on its host, and name its address: kind = "url", target.settings.url; or, of a service, '
            "its port there: target.listen.",
        )
