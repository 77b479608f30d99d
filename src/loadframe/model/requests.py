"""What a study declares of its workload beside the options: the requests, who sends them, and how long users think."""

from dataclasses import dataclass
from typing import Literal

Checked = Literal["bytes", "length", "size", "status"]
"""What of an answer is looked at: all of it, its status and how long it is, its status and roughly how long it is, its
status alone."""


@dataclass(frozen=True, slots=True)
class Request:
    """One request that a workload sends. name: of the operation that it is in the request log. path: with its query.
    headers: name and value, in the order in which they are sent; a value may hold {ENV:NAME}. body: what is sent; "":
    none. body_file: the file that has it. weight: how often it is sent beside the others. expect: the status of a right
    answer; None: 200 of GET, any from 200 to 299 of others. checked: None: as the workload's options say of GET, the
    status alone of others and of those whose words are known. contains: words that a right answer has; fails: words
    that no right answer has; "": none."""

    name: str
    method: str
    path: str
    headers: tuple[tuple[str, str], ...] = ()
    body: str = ""
    body_file: str = ""
    weight: float = 1.0
    expect: int | None = None
    checked: Checked | None = None
    contains: str = ""
    fails: str = ""


@dataclass(frozen=True, slots=True)
class Think:
    """The pause of a user between an answer and the next request. spread: the same each time, or random with that
    mean."""

    mean_s: float
    spread: Literal["fixed", "exponential"]


@dataclass(frozen=True, slots=True)
class Login:
    """What each connection sends before the load, and what it keeps of the answers: cookies always, and the bearer
    token in a field of the last answer's JSON ("access_token", "data.token"); "": none."""

    requests: tuple[Request, ...]
    token: str = ""


@dataclass(frozen=True, slots=True)
class Declared:
    """The tables of `[workload]` that a workload takes only if it says so (KindOfWorkload.tables)."""

    request: tuple[Request, ...] = ()
    login: Login | None = None
    think_time: Think | None = None
    command: tuple[str, ...] = ()
    """The program that makes the load, with its arguments."""

    @property
    def given(self) -> tuple[str, ...]:
        """The names of those that the study has, as it spells them."""
        return tuple(name for name in self.__slots__ if getattr(self, name))
