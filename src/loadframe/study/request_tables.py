"""`[[workload.request]]`, `workload.think_time` and `[workload.login]`: what is sent, by whom, and how often."""

from dataclasses import replace
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, field_validator, model_validator

from loadframe.connections.http_words import METHODS, NOT_SENT, SECRET, wrong_header, wrong_path
from loadframe.formats.plain_numbers import is_number
from loadframe.model import Checked, Login, Request, Think
from loadframe.study.fields import Duration, Table

MOST_REQUESTS, MOST_LOGINS, MOST_HEADERS = 100, 8, 50
MOST_WORDS = 1000
LONGEST_THINK_S = 3600.0
ENVIRONMENT = "{ENV:"


class SentTable(Table):
    """One request, as it is sent."""

    method: str = "GET"
    path: str = Field(description="with its query, as it is sent")
    headers: dict[str, str] = Field(
        default_factory=dict, max_length=MOST_HEADERS, description="{ENV:NAME} is the variable NAME of the environment"
    )
    body: str = Field("", description="text; in it, {ENV:NAME} is the variable NAME of the environment")
    body_file: str = Field("", description="a file with the body, in place of body")
    expect: int | None = Field(
        None, ge=100, le=599, description="status of a right answer; by default 200 of GET, 200 to 299 of others"
    )

    @field_validator("method")
    @classmethod
    def _sendable(cls, method: str) -> str:
        if method not in METHODS:
            why = f": {NOT_SENT[method]}" if method in NOT_SENT else ""
            raise ValueError(f"the method {method!r} is not sent{why}; it must be one of {', '.join(METHODS)}")
        return method

    @field_validator("path")
    @classmethod
    def _askable(cls, path: str) -> str:
        if (why := wrong_path(path)) is not None:
            raise ValueError(f"the path {path[:100]!r} cannot be asked for: {why}")
        return path

    @field_validator("headers")
    @classmethod
    def _one_request(cls, headers: dict[str, str]) -> dict[str, str]:
        for name, value in headers.items():
            if (why := wrong_header(name, value)) is not None:
                raise ValueError(f"the header {name[:100]!r} cannot be sent: {why}")
            if name.lower() in SECRET and ENVIRONMENT not in value:
                raise ValueError(
                    f"the header {name!r} has its secret in the study, which the run folder keeps; put it into the "
                    f'environment and write {{ENV:NAME}} in its place, for example "Bearer {{ENV:API_TOKEN}}"'
                )
        if len({name.lower() for name in headers}) < len(headers):
            raise ValueError("a header is given twice, in two spellings; each once")
        return headers

    @model_validator(mode="after")
    def _one_body(self) -> Self:
        if self.body and self.body_file:
            raise ValueError("body and body_file: one of them is enough")
        if self.method == "GET" and (self.body or self.body_file):
            raise ValueError('a GET has no body (RFC 9110, 9.3.1); give the request method = "POST", or leave it out')
        return self

    def record(self, name: str = "") -> Request:
        return Request(
            name, self.method, self.path, tuple(self.headers.items()), self.body, self.body_file, expect=self.expect
        )


class RequestTable(SentTable):
    """One of the requests of the load."""

    name: str = Field(
        "", pattern=r"^[!-~]( ?[!-~]){0,62}$|^$", description="of the operation, reported by itself; METHOD PATH"
    )
    weight: float = Field(1.0, gt=0, le=1e6, description="how often it is sent, relative to the others")
    checked: Checked | None = Field(
        None, description="what of its answer is checked; by default workload.options.checked of GET, status of others"
    )
    contains: str = Field("", max_length=MOST_WORDS, description="words that a right answer has in its body")
    fails: str = Field(
        "", max_length=MOST_WORDS, description="words of a wrong one, where the server answers errors with 200"
    )

    @model_validator(mode="after")
    def _comparable(self) -> Self:
        if self.checked in ("bytes", "length", "size") and (self.method != "GET" or self.expect not in (None, 200)):
            raise ValueError(
                f"checked = {self.checked!r}: what is compared is the page of a GET that answers 200, as it was before "
                'the load; give checked = "status", or leave it out'
            )
        return self

    def record(self, name: str = "") -> Request:
        sent = super().record(self.name or f"{self.method} {self.path}"[:63])
        return replace(sent, weight=self.weight, checked=self.checked, contains=self.contains, fails=self.fails)


class LoginTable(Table):
    """Sent by each connection before the load."""

    request: list[SentTable] = Field(min_length=1, max_length=MOST_LOGINS, description="in this order")
    token: str = Field(
        "",
        pattern=r"^([A-Za-z0-9_-]{1,100}(\.[A-Za-z0-9_-]{1,100}){0,9})?$",
        description="the field of the last answer's JSON with a bearer token (data.token); cookies are kept always",
    )

    @model_validator(mode="before")
    @classmethod
    def _one_alone(cls, given: Any) -> Any:
        if isinstance(given, dict) and "path" in given and "request" not in given:
            request = {name: value for name, value in given.items() if name != "token"}
            return {"request": [request], **({"token": given["token"]} if "token" in given else {})}
        return given

    def record(self) -> Login:
        return Login(
            tuple(request.record(f"login {number}") for number, request in enumerate(self.request, 1)), self.token
        )


class ThinkTable(Table):
    mean: Duration
    spread: Literal["fixed", "exponential"] = "fixed"

    @field_validator("mean")
    @classmethod
    def _bearable(cls, mean: float) -> float:
        if not 0 < mean <= LONGEST_THINK_S:
            raise ValueError(
                f"think_time = {mean:g} s: a user thinks for more than 0 s, and for {LONGEST_THINK_S:g} s at most"
            )
        return mean

    def record(self) -> Think:
        return Think(self.mean, self.spread)


ThinkTime = Annotated[
    ThinkTable, BeforeValidator(lambda value: {"mean": value} if isinstance(value, str) or is_number(value) else value)
]
