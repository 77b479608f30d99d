"""A bulk loader in front of database shards as a kind of target."""

from loadframe.errors import StudyError
from loadframe.host.leases import Lease
from loadframe.host.processes import Resources
from loadframe.kinds.base import Target
from loadframe.kinds.bulk_loader.settings import CATALOGUE
from loadframe.kinds.bulk_loader.target import LOADER, BulkLoaderTarget, check_settings, requirements
from loadframe.kinds.kind import KindOfTarget


def _never_alone(lease: Lease, resources: Resources) -> Target:
    raise StudyError(
        "a bulk-loader loads into shards, and the study gives it none",
        remedy="Add target.shards, for example shards = 4.",
    )


KINDS = (
    KindOfTarget(
        BulkLoaderTarget.kind,
        _never_alone,
        CATALOGUE,
        check_settings,
        requirements,
        make_shards=BulkLoaderTarget,
        before=(LOADER,),
    ),
)
