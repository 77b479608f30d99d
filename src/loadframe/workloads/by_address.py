"""What a server known by its address is asked for: paths, or a study's requests, in sessions that log in first."""

import http.client
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from loadframe.connections.address import is_here, parted
from loadframe.connections.bounds import shown
from loadframe.connections.http_words import METHODS, SAFE, wrong_path
from loadframe.errors import NotRecovered, StudyError, TargetError
from loadframe.model import Checked, Declared, Endpoint, Request
from loadframe.units import show
from loadframe.workloads import sessions
from loadframe.workloads.asking import Answer, ask, met, strange
from loadframe.workloads.http_driver import Ask, Learnt
from loadframe.workloads.sessions import variables, with_secrets

KINDS = frozenset({"service", "url"})
PATHS, ITS_LOG = "workload.options.paths", "Its log says why."
FOR_OTHERS = "LOADFRAME_"
WRITING = tuple(method for method in METHODS if method not in SAFE)

REFUSALS = frozenset({429, 502, 503, 504})
"""Statuses of a server that is temporarily unable (RFC 9110, 15.6.3 to 15.6.5; RFC 6585, 4)."""
MOST_BYTES = 512 << 20
"""Bytes of all pages together: they are kept in memory, and wrk maps them."""


class ByAddress:
    def __init__(
        self, declared: Declared, paths: str = "", checked: Checked = "status", exponent: float = 0.0, *, writes: bool
    ) -> None:
        """paths: separated by blanks; "": those of the endpoint. exponent: of Zipf's law over the paths in this order.
        writes: whether the study allows changing others' data. StudyError."""
        self._login, self._declared, self._paths = declared.login, declared.request, paths.split()
        self._checked, self._exponent, self._writes = checked, exponent, writes
        if paths and self._declared:
            raise StudyError(
                f"{PATHS} and [[workload.request]]: one of them is enough.", remedy="Make each path a request."
            )
        for path in self._paths:
            if (why := wrong_path(path)) is not None:
                raise StudyError(
                    f"{PATHS}: {path[:100]!r} cannot be asked for: {why}.", remedy="For example '/ /about'."
                )
        if self._login is not None:
            taken = {"cookie", *(("authorization",) if self._login.token else ())}
            for request in self._declared:
                if twice := [name for name, _ in request.headers if name.lower() in taken]:
                    raise StudyError(
                        f"The request {request.name!r} has a header {twice[0]!r}, and [workload.login] sets it too.",
                        remedy="Leave one of them out.",
                    )
        login = () if self._login is None else self._login.requests
        self.secret = frozenset(name for request in (*self._declared, *login) for name in variables(request))
        self._of_study: tuple[Ask, ...] = ()
        self._steps: tuple[Ask, ...] = ()
        self._known: tuple[Ask, ...] | None = None
        self._recoveries: list[float] = []

    @property
    def given(self) -> bool:
        return bool(self._declared or self._paths or self._login)

    @property
    def operations(self) -> tuple[str, ...]:
        return tuple(request.name for request in self._declared)

    def names_checked(self, checked: Checked) -> tuple[str, ...]:
        """Declared requests whose answers are checked no further than this."""
        unspoken = (request for request in self._declared if not (request.contains or request.fails))
        return tuple(request.name for request in unspoken if self._checked_of(request) == checked)

    def prepare(self, *, running: bool) -> None:
        """As SendsRequests.check_requests."""
        writing = [request for request in self._declared if request.method in WRITING]
        if running and writing and not self._writes:
            raise StudyError(
                f"The request {writing[0].name!r} is a {writing[0].method}, which changes the data of a server that "
                "Loadframe did not start.",
                remedy="If its owner agrees: workload.options.writes = true. Loadframe does not undo what they change.",
            )
        self._of_study = tuple(self._ask(request, number) for number, request in enumerate(self._declared))
        if self._login is not None:  # redirections are accepted
            self._steps = tuple(with_secrets(step, 399) for step in self._login.requests)

    def check_secrets(self, endpoint: Endpoint) -> None:
        """StudyError if a study, which may be a stranger's, would send any variable to another machine."""
        others = sorted(name for name in self.secret if not name.startswith(FOR_OTHERS))
        if others and not is_here(parted(endpoint.address, "80")[0]):
            raise StudyError(
                f"The study would send the environment variable {others[0]} to another machine.",
                remedy=f"Only variables whose names begin with {FOR_OTHERS} are sent there: put the secret into one.",
            )

    def check(self, endpoint: Endpoint) -> None:
        """Compare an answer with the known one; a server that is temporarily unable is asked again for a while.
        NotRecovered if that goes on; TargetError if it answers otherwise; others as `learn`."""
        if self._known is None:
            self.learn(endpoint)
            return
        page = next(filter(_is_page, self._known), None)
        if page is None:
            ask(endpoint, "/")
            return
        path = page.path
        answer, waited_s = met(endpoint, path, lambda: self._answer(endpoint, page, self._session(endpoint)), _refused)
        if _refused(answer):
            raise NotRecovered(
                f"The server at {endpoint.address} answers {path} with status {answer.status}, and did so for "
                f"{show(waited_s, 's')} after the load had ended; before it, it answered",
                remedy="Its log says why. Restart it before it is measured again, or measure lower loads.",
                path=path,
                status=answer.status,
                waited_s=waited_s,
            )
        if waited_s:
            self._recoveries.append(waited_s)
        if answer.status != http.client.OK:
            raise strange(endpoint, path, f"status {answer.status}", ITS_LOG)
        if wrong := wrong_words(answer.body, page):
            raise strange(endpoint, path, wrong, ITS_LOG)
        size, known = len(answer.body), page.known
        if not alike(answer.body, known.body, page.checked):
            remedy = 'Where it may change: workload.options.checked = "length", "size" or "status".'
            raise strange(endpoint, path, other_size(size, len(known.body)), remedy)
        if page.checked == "size":  # lists grow from step to step
            if size < known.least:
                what = f"{size:,} bytes; it had {known.shortest:,} or more before"
                remedy = 'Where its size may vary so much: workload.options.checked = "status".'
                raise strange(endpoint, path, what, remedy)
            grown = replace(page, known=replace(known, longest=max(known.longest, size)))
            self._known = tuple(grown if other is page else other for other in self._known)

    def asks(self, endpoint: Endpoint) -> tuple[Ask, ...]:
        return self._known or self.learn(endpoint)

    def open_sessions(self, endpoint: Endpoint, count: int) -> list[bytes]:
        """Additional headers of each connection; none without a login. TargetError if the server refuses one."""
        if self._login is None:
            return []
        with ThreadPoolExecutor(min(sessions.AT_ONCE, count)) as pool:
            opened = list(pool.map(self._session, [endpoint] * count))  # ends the others where one fails
        return ["".join(f"{name}: {value}\r\n" for name, value in headers).encode("latin-1") for headers in opened]

    @property
    def notes(self) -> tuple[str, ...]:
        if not self._recoveries:
            return ()
        longest = show(max(self._recoveries), "s")
        back = "and then answered: what the step before had used up came back, or it was started again."
        if len(self._recoveries) == 1:
            return (f"Before a step the server refused for {longest}, {back}",)
        return (f"Before {len(self._recoveries)} steps the server refused for {longest} at most, {back}",)

    def _ask(self, request: Request, operation: int) -> Ask:
        highest = 200 if request.method == "GET" else 299
        return with_secrets(request, highest, operation=operation, checked=self._checked_of(request))

    def _checked_of(self, request: Request) -> Checked:
        """A page whose words are known is checked by these rather than by its size."""
        said = self._checked == "size" and bool(request.contains or request.fails)
        page = request.method == "GET" and request.expect in (None, http.client.OK)
        return request.checked or (self._checked if page and not said else "status")

    def learn(self, endpoint: Endpoint) -> tuple[Ask, ...]:
        """The requests with what their pages answer. StudyError if the load is not allowed; TargetError."""
        self._known = None  # what another server answered is not compared with this one
        self.check_secrets(endpoint)
        self.prepare(running=endpoint.attached)
        paths = self._paths or endpoint.options.get("paths", "/").split()
        weighed = [Request("get", "GET", path, weight=rank**-self._exponent) for rank, path in enumerate(paths, 1)]
        sent = self._of_study or tuple(self._ask(request, 0) for request in weighed)
        if not any(map(_is_page, sent)):
            ask(endpoint, "/")
        session, known = self._session(endpoint), list[Ask]()
        where = "[[workload.request]]" if self._declared else PATHS if self._paths else "target.settings.paths"
        for request in sent:
            page = _is_page(request)
            known.append(replace(request, known=self._learnt(endpoint, request, session, where)) if page else request)
            if sum(len(page.known.body) for page in known) > MOST_BYTES:
                raise TargetError(
                    f"The pages of {endpoint.address} up to {request.path} are longer than {shown(MOST_BYTES)} "
                    "together",
                    remedy=f"Name fewer or shorter ones ({where}).",
                )
        self._known = tuple(known)
        return self._known

    def _learnt(self, endpoint: Endpoint, page: Ask, session: sessions.Headers, where: str) -> Learnt:
        """Asked twice. where: the study's key that names the pages, for advice. TargetError if the page is missing,
        differs the second time as far as checked, or lacks the expected words."""
        answer, again = self._answer(endpoint, page, session), self._answer(endpoint, page, session).body
        status, body = answer.status, answer.body
        if status != http.client.OK:
            otherwise = f", or say expect = {status}" if self._declared else ""
            remedy = f"Name paths that it answers with 200{otherwise} ({where})."
            raise strange(endpoint, page.path, f"status {status}", remedy)
        if not alike(body, again, page.checked):
            what, enough = ("bytes", "length") if len(body) == len(again) else ("lengths", "size")
            remedy = (
                f'Set workload.options.checked = "{enough}" to have no more than that of its answers checked, or leave '
                f"this path out ({where})."
            )
            raise strange(endpoint, page.path, f"different {what} each time, so it cannot be checked", remedy)
        if wrong := wrong_words(body, page):
            remedy = f"Correct contains and fails of this request ({where}), or see the server's log."
            raise strange(endpoint, page.path, wrong, remedy)
        kept = body if page.checked in ("bytes", "length") else b""
        return Learnt(kept, *sorted((len(body), len(again))))

    def _session(self, endpoint: Endpoint) -> sessions.Headers:
        if self._login is None:
            return ()
        return sessions.log_in(endpoint, self._steps, self._login.token)

    @staticmethod
    def _answer(endpoint: Endpoint, page: Ask, session: sessions.Headers) -> Answer:
        return ask(endpoint, page.path, page.method, (*page.headers, *session), page.body)


def _refused(answer: Answer) -> bool:
    return answer.status in REFUSALS


def _is_page(request: Ask) -> bool:
    """Asked for before the load; later answers are compared with that one."""
    return request.method == "GET" and request.lowest == request.highest == http.client.OK


def alike(body: bytes, other: bytes, checked: Checked) -> bool:
    return {"bytes": body == other, "length": len(body) == len(other)}.get(checked, True)


def wrong_words(body: bytes, page: Ask) -> str:
    """What is wrong with the words of an answer; "" for nothing."""
    if page.fails and page.fails in body:
        return f"a body that has {page.fails.decode()!r}, which no right one has"
    if page.contains and page.contains not in body:
        return f"a body that does not have {page.contains.decode()!r}"
    return ""


def other_size(size: int, wanted: int) -> str:
    return f"{size} bytes, which are not the {wanted} that it should have"
