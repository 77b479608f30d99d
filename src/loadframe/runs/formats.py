"""Versions of the files in a run folder. Every JSON document and line begins with {"schema": "loadframe.NAME/VERSION"}.
A newer version is refused; an older one is brought to the present, one version at a time."""

import json
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from loadframe.errors import RunError
from loadframe.formats.json_text import parse_json, parts
from loadframe.model import NO_LATENCIES, OUT_OF_BALANCE, TIME_UNIT
from loadframe.model.verdict import NOT_KNOWN, decide

Upgrade = Callable[[dict[str, Any]], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Schema:
    """upgrades: from each older version to the next, the oldest first."""

    name: str
    upgrades: tuple[Upgrade, ...] = ()

    @property
    def version(self) -> int:
        return 1 + len(self.upgrades)

    def upgraded(self, version: int, body: dict[str, Any]) -> dict[str, Any]:
        for upgrade in self.upgrades[version - 1 :]:
            body = upgrade(body)
        return dict(body)


NamedSchema = str | Schema
"""By its name in SCHEMAS, or one that another distribution has."""


def _change_with_status(body: dict[str, Any]) -> dict[str, Any]:
    """Version 1 called the id "number" and the status "phase", and gave no reason."""
    renamed = {"number": "id", "phase": "status"}
    return {renamed.get(name, name): value for name, value in body.items()}


def _with_purpose(step: dict[str, Any]) -> dict[str, Any]:
    """Version 1 had no purpose: block -1 was that of warming, 0 of sizing, round 0 of side by side."""
    block = step.get("block")
    if block in (-1, 0):
        return {**step, "purpose": "warming" if block == -1 else "sizing"}
    return {**step, "purpose": "side by side" if step.get("round") == 0 else ""}


def _without_places(step: dict[str, Any]) -> dict[str, Any]:
    """Version 2 had block 0 for sizing, round 0 for side by side, and those of the next step for warming."""
    of_none = {"warming": ("round", "block"), "sizing": ("block",), "side by side": ("round",)}
    return {**step, **dict.fromkeys(of_none.get(str(step.get("purpose")), ()))}


NO_LATENCY = {OUT_OF_BALANCE, NO_LATENCIES, TIME_UNIT}


def _with_refuted_latencies(step: dict[str, Any]) -> dict[str, Any]:
    """Version 3 timed what ended within a window, and the step's own count of requests in flight may refute that."""
    in_flight = step["metrics"].get("workload.concurrency", 0.0)
    served = step["throughput"] * step["latency"]["mean_ms"] / 1000
    if abs(served - in_flight) <= 0.2 * in_flight or not in_flight or NO_LATENCY.intersection(step["flags"]):
        return step
    return {**step, "flags": [*step["flags"], OUT_OF_BALANCE]}


def cannot_tell(body: Any) -> Any:
    """Comparisons without a ratio, a second block or a settled level were "no-proven-difference", too."""
    if isinstance(body, list):
        return [cannot_tell(element) for element in body]
    if not isinstance(body, dict):
        return body
    body = {key: cannot_tell(value) for key, value in body.items()}
    untold = (body.get("low"), body.get("high")) == NOT_KNOWN or body.get("blocks") == 1 or body.get("unsettled_at")
    if untold and body.get("decision") == "no-proven-difference":
        return {**body, "decision": "cannot-tell", "method": str(body.get("method")).removeprefix("not judged: ")}
    return body


def with_ends(body: dict[str, Any]) -> dict[str, Any]:
    """The version before had no interval of a ratio at a load."""
    tried = [trial for round_ in body.get("rounds", ()) for trial in round_["tried"]]
    for compared in (*tried, *filter(None, (body.get("proof"), *body.get("failed_proofs", ())))):
        compared["levels"] = [{**row, "low": row["ratio"], "high": row["ratio"]} for row in compared.get("levels", ())]
    return {name: value for name, value in body.items() if name != "variants"}  # these are computed again


def _with_comparisons(body: dict[str, Any]) -> dict[str, Any]:
    """A rung's trial, and its gain in the whole ladder, become one comparison."""
    for rung in body["rungs"]:
        tried, gain = rung.pop("trial", None), rung.pop("gain", None)
        rung["comparison"] = (tried or gain) and {"verdict": tried or gain, "fresh": tried and gain}
    return body


def _with_verdicts(body: dict[str, Any]) -> dict[str, Any]:
    """A capacity's comparison had a ratio of its own, and null for an open bound."""
    for comparison in body.get("beside", ()):
        ratio, low, high = (comparison.pop(name, None) for name in ("ratio", "ratio_low", "ratio_high"))
        ends = {"low": low or NOT_KNOWN[0], "high": high or NOT_KNOWN[1]}
        decided = {"ratio": ratio or low or high or 1.0, **ends, "decision": comparison.pop("decision", None)}
        comparison["verdict"] = cannot_tell(
            {**decided, "blocks": 0, "method": comparison.get("failed") or "bounds of searches"}
        )
    return body


def _drivers(body: dict[str, Any]) -> dict[str, Any]:
    """The comparison of drivers had a ratio of its own, and null for an open upper bound."""
    named = {name: body.pop(name) for name in ("ratio", "low", "high")}
    named["high"] = NOT_KNOWN[1] if named["high"] is None else named["high"]
    after, before, blocks = (body.pop(name) for name in ("throughput", "throughput_fewer", "blocks"))
    decision = decide(named["low"], named["high"]) if blocks > 1 else "cannot-tell"
    verdict = {**named, "decision": decision, "blocks": blocks, "method": "paired blocks"}
    has_ratio = (named["low"], named["high"]) != NOT_KNOWN
    levels = [{"load": body["level"], "before": before, "after": after, **named}] if has_ratio else []
    return {**body, "verdict": verdict, "levels": levels}


def _within(name: str, upgrade: Upgrade) -> Upgrade:
    """For a part of a document, which may be absent."""
    return lambda body: {**body, name: body.get(name) and upgrade(body[name])}


def _with_records(body: dict[str, Any]) -> dict[str, Any]:
    """Version 1 held a host's conclusion in the version of that time."""
    for name, kind in (("investigation", "investigation-record"), ("capacity", "capacity-record")):
        if body.get(name) is not None:
            body[name] = SCHEMAS[kind].upgraded(1, body[name])
    return body


def _with_the_kinds_name(body: dict[str, Any]) -> dict[str, Any]:
    """The version before called the cause of a bulk loader spawn.per_file; causes begin with the name of their kind."""
    renamed = json.dumps(body).replace('"spawn.per_file"', '"bulk_loader.spawn_per_file"')
    return dict(json.loads(renamed))


NEVER_CHANGED = (
    "run study bench host treatment effective conduct findings verdicts profile forecasts score forecast-record "
    "survival progress fleet-step fleet-link fleet-hosts stop"
)
SCHEMAS = {
    schema.name: schema
    for schema in (
        *map(Schema, NEVER_CHANGED.split()),
        Schema("change", (_change_with_status, _with_the_kinds_name)),
        Schema("step", (_with_purpose, _without_places, _with_refuted_latencies)),
        Schema("rounds", (cannot_tell, with_ends, _with_the_kinds_name)),
        Schema("investigation-record", (cannot_tell, with_ends, _within("drivers", _drivers), _with_the_kinds_name)),
        # The version before had a ladder's total gain over all loads only.
        Schema(
            "ladder-record",
            (cannot_tell, _within("total", lambda total: {"verdict": total, "levels": []}), _with_comparisons),
        ),
        Schema("capacity-record", (_with_verdicts,)),
        Schema("fleet-drivers", (_drivers,)),
        Schema("fleet-trial", (_with_records, _with_the_kinds_name)),
    )
}


def _known(schema: NamedSchema) -> Schema:
    return SCHEMAS[schema] if isinstance(schema, str) else schema


DAMAGED = "The file was damaged or edited. Restore it, or run the study again."

LARGEST = 1e100
"""The product of any three is still finite."""

Record = TypeVar("Record")

_adapters: dict[Any, TypeAdapter[Any]] = {}


def _adapter(record_type: Any) -> TypeAdapter[Any]:
    """Cached: building one costs milliseconds."""
    if record_type not in _adapters:
        _adapters[record_type] = TypeAdapter(record_type)
    return _adapters[record_type]


def encode(schema: NamedSchema, record: object) -> bytes:
    """A line of JSON, the schema first. Numbers that are not finite become null."""
    body, known = _adapter(type(record)).dump_json(record, by_alias=True), _known(schema)
    head = f'{{"schema":"loadframe.{known.name}/{known.version}"'.encode()
    return head + (b"," + body[1:] if body != b"{}" else b"}")


def decode(schema: NamedSchema, data: bytes, record_type: type[Record], *, where: str) -> Record:
    """RunError, with place and value, for data of another kind, newer, torn or invalid."""
    body = decode_document(schema, data, where=where)
    try:
        record: Record = _validated(_adapter(record_type), body)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"])[:80]
        sentence = f"{where}: {place}: {first['msg']}, not {_shown(first['input'])}"
        raise RunError(sentence, remedy=DAMAGED) from error
    return record


def decode_document(schema: NamedSchema, data: bytes, *, where: str) -> dict[str, Any]:
    """The document in the current version, without the schema. RunError as `decode`."""
    try:
        body = parse_json(data)
        for value in parts(body):
            if isinstance(value, float) and abs(value) > LARGEST:
                raise ValueError(f"{value} is larger than anything that is measured")
    except ValueError as error:
        raise RunError(f"{where} is not valid JSON: {error}", remedy="The file was damaged or cut off.") from error
    return upgrade(schema, body, where=where)


def _validated(adapter: TypeAdapter[Any], body: dict[str, Any]) -> Any:
    """Strictly, as JSON: a string is no number. null as an interval's upper end becomes infinity, which JSON lacks."""
    try:
        return adapter.validate_json(json.dumps(body), strict=True)
    except ValidationError as error:
        open_ended = [
            problem["loc"]
            for problem in error.errors(include_url=False)
            if problem["type"] == "float_type" and problem["loc"][-1:] == ("high",) and problem["input"] is None
        ]
        if not open_ended:
            raise
    for *path, last in open_ended:
        within: Any = body
        for part in path:
            within = within[part]
        within[last] = math.inf
    return adapter.validate_json(json.dumps(body), strict=True)  # Infinity: accepted by this reader


def _shown(value: object) -> str:
    text = ascii(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def upgrade(schema: NamedSchema, body: Any, *, where: str) -> dict[str, Any]:
    known, said = _known(schema), body.pop("schema", None) if isinstance(body, dict) else None
    prefix = f"loadframe.{known.name}/"
    match = re.fullmatch(re.escape(prefix) + r"([1-9][0-9]{0,8})", said) if isinstance(said, str) else None
    if match is None:
        raise RunError(f"{where} has the schema {_shown(said)}, not {prefix}N", remedy="It is not a file of this kind.")
    version = int(match[1])
    if version > known.version:
        raise RunError(
            f"{where} was written by a newer Loadframe ({said}; this one reads up to version {known.version})",
            remedy="Read it with the newer version.",
        )
    try:
        return known.upgraded(version, body)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise RunError(f"{where} is not what its schema says ({said}): {error!r}", remedy=DAMAGED) from error
