"""A running server that is known by its address alone, as a kind of target."""

from loadframe.kinds.kind import ByAddress, KindOfTarget
from loadframe.kinds.url.settings import CATALOGUE
from loadframe.kinds.url.target import UNSEEN, UrlTarget, check_settings, host_of

KINDS = (
    KindOfTarget(
        UrlTarget.kind,
        lambda lease, resources: UrlTarget(),
        CATALOGUE,
        check_settings,
        list,
        by_address=ByAddress(host_of, UNSEEN),
    ),
)
