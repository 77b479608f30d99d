"""Tables for workloads that run a program of the user's own, and for watches."""

from typing import Annotated

from pydantic import AfterValidator, Field, field_validator

from loadframe.study.fields import Duration, Table

MOST_WORDS, LONGEST_WORD = 200, 8192


def _runnable(command: list[str]) -> list[str]:
    for number, word in enumerate(command):
        if "\0" in word or len(word) > LONGEST_WORD:
            raise ValueError(f"command: word {number + 1} has a NUL or more than {LONGEST_WORD:,} characters")
    if command and not command[0].strip():
        raise ValueError('command: its first word is empty; name the program, for example ["python3", "driver.py"]')
    return command


Command = Annotated[
    list[str],
    AfterValidator(_runnable),
    Field(max_length=MOST_WORDS, description="workloads that run a program of yours: it and its arguments"),
]


SHORTEST_S = 1.0


class WatchTable(Table):
    every: Duration = Field(300.0, description="how often the unit of work is done; --every may ask for less, not more")
    load: str = Field("", max_length=300, description="the metric that is the load; none: the open connections")
    unit: Command = Field(
        default_factory=list, description="one small unit of work: a program, whose exit status 0 is a success"
    )

    @field_validator("every")
    @classmethod
    def _small(cls, every: float) -> float:
        if every < SHORTEST_S:
            raise ValueError(f"every = {every:g} s: a watch does at most one unit of work a second")
        return every
