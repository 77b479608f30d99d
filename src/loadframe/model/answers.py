"""Answers of a target beside those of programs that tell the same of what it was filled from."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class AnswerCompared:
    """One answer, a number of bytes or of entries: of the target and of the other program. differences: single entries
    that only one of them has, in words."""

    answer: str
    target: int
    other: int
    differences: tuple[str, ...] = ()

    @property
    def equal(self) -> bool:
        """Whether both gave the same."""
        return self.target == self.other and not self.differences


@dataclass(frozen=True, slots=True)
class AnswersCompared:
    """All answers on one thing. of: that thing, in words. load: the level of the load axis at which it was asked about.
    beside: the other programs. missing: why there is no answer to compare, "" where there is."""

    of: str
    load: float
    beside: str
    answers: tuple[AnswerCompared, ...] = ()
    missing: str = ""

    @property
    def equal(self) -> bool | None:
        """Whether all are the same; None where there was nothing to compare."""
        return all(one.equal for one in self.answers) if self.answers else None
