"""Answers of a target beside those of other programs, in words and for the JSON."""

from __future__ import annotations

from collections.abc import Sequence

from loadframe.model import AnswerCompared, AnswersCompared


def sentences(compared: Sequence[AnswersCompared]) -> list[str]:
    """One for each thing that was asked about."""
    return [sentence(one) for one in compared]


def sentence(compared: AnswersCompared) -> str:
    """ "The same as du and find, of the tree of 25,000 entries: bytes on disk 3,309,568, ..."; what differs; why it was
    not compared."""
    if compared.equal is None:
        return f"Not compared with {compared.beside}, of {compared.of}: {compared.missing}."
    if compared.equal:
        told = ", ".join(f"{one.answer} {one.target:,}" for one in compared.answers)
        return f"The same as {compared.beside}, of {compared.of}: {told}."
    told = "; ".join(_difference(one, compared.beside) for one in compared.answers if not one.equal)
    return f"Other answers than {compared.beside}, of {compared.of}: {told}."


def warnings(compared: Sequence[AnswersCompared]) -> list[str]:
    """Of those that are not the same, or were not compared."""
    return [sentence(one) for one in compared if not one.equal]


def _difference(one: AnswerCompared, beside: str) -> str:
    some = f" ({one.differences[0]})" if one.differences else ""
    return f"{one.answer}: the target says {one.target:,}, {beside} {one.other:,}{some}"
