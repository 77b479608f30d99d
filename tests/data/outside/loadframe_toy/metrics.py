"""What the toy server counts, what follows from it, and what must agree with it."""

from __future__ import annotations

from loadframe.knowledge.metric import Derived, requests, share

ROWS = """
toy.requests                      | 1/s   | requests that the toy server answered
toy.waited                        | 1/s   | requests that found every slot of the toy server taken
toy.slots_used                    | count | slots of the toy server in use at once
toy.slots                         | count | slots of the toy server (effective)
toy.waited_share                  | share | share of the requests that waited for a slot of the toy server
"""
"""name | unit | what."""

DERIVED = (Derived("toy.waited_share", ("toy.waited", "toy.requests"), share),)

AGREEMENTS = (requests("toy.requests", also=("toy.",)),)
