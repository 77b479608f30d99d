"""Keys of hosts that ssh does not know, or knows as others: what it is told, and what its user is to do about one."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

STRICT = ("-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=yes")
"""It asks nothing, as there is no one to answer, and takes no key that it does not know, whatever the user's own
configuration says of that (ssh_config(5): what is given on the command line is used, and nothing else of that name)."""
REFUSED = "Host key verification failed"
"""The last words of ssh for a key that is unknown, as for another one than that which it knows."""
CHANGED = "HOST IDENTIFICATION HAS CHANGED"


def remedy_for(said: str, ssh: str, own: Sequence[str]) -> str:
    """What to do where ssh has refused the key of a host; "" where it has not. said: by ssh; own: options given it
    for the configuration; ssh: [USER@]HOST."""
    if REFUSED not in said:
        return ""
    if CHANGED in said:
        return (
            f"Go no further until the owner of {ssh} says why its key is another one: it may be another machine that "
            "answers. Then remove the old key, as the words of ssh below say, and log in once by hand."
        )
    by_hand = shlex.join(["ssh", *own, ssh])
    return (
        f"Log in once by hand, `{by_hand}`, and compare the fingerprint that it shows with the one that the owner of "
        "the host gives you; Loadframe accepts no key by itself."
    )
