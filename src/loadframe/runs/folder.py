"""The run folder: append-only while it runs, readable after a kill; loses at most the step in progress."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import polars
import zstandard
from hdrh.histogram import HdrHistogram
from hdrh.log import HistogramLogWriter
from numpy.typing import NDArray

from loadframe.errors import RunError
from loadframe.model import (
    Conduct,
    Forecast,
    Host,
    Investigation,
    Ladder,
    Limit,
    ProfiledStep,
    Round,
    SettingValue,
    Step,
    Survival,
    TargetState,
    Tuning,
    TuningTrial,
)
from loadframe.runs.formats import decode, encode, upgrade

METRIC_COLUMNS = {
    "step": polars.Int64,
    "treatment": polars.String,
    "level": polars.Float64,
    "metric": polars.String,
    "value": polars.Float64,
    "at_s": polars.Float64,
}
"""The columns of metrics.parquet."""

LONGEST_LATENCY_US = 3_600_000_000
"""One hour: the largest latency a histogram holds."""


@dataclass(frozen=True, slots=True)
class Treatment:
    """A state of the target under a short name ("A", "B", ...). kind: of the target, "" in runs of one target. cold_of:
    the treatment of which this is the cold one, "" for none."""

    name: str
    title: str
    state: TargetState
    kind: str = ""
    cold_of: str = ""


@dataclass(frozen=True, slots=True)
class Effective:
    """What the target really used in a state, as it was read back."""

    treatment: str
    values: Mapping[str, SettingValue]


@dataclass(frozen=True, slots=True)
class Rounds:
    """The rounds of an investigation as far as they went."""

    rounds: tuple[Round, ...]


class RunFolder:
    """One execution's folder. Writers raise RunError where the disk will not take what was measured."""

    def __init__(self, path: Path) -> None:
        self.path = path

    # --- making one ---------------------------------------------------------------------------------------------

    @classmethod
    def create(cls, root: Path, study: str) -> RunFolder:
        """A new folder ROOT/UTC-time-study. RunError where it cannot be made."""
        stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
        for attempt in range(1, 100):
            suffix = "" if attempt == 1 else f"-{attempt}"
            path = root / f"{stamp}-{study}{suffix}"
            try:
                path.mkdir(parents=True)
            except FileExistsError:
                continue
            except OSError as error:
                raise RunError(
                    f"the run folder {path} cannot be made: {error.strerror}",
                    remedy="Choose another place with --runs.",
                ) from error
            folder = cls(path)
            for part in ("raw", "latency"):
                (path / part).mkdir()
            folder.write_document("run.json", "run", {"started_at": datetime.now(UTC).isoformat(timespec="seconds")})
            return folder
        raise RunError(f"there are a hundred runs named {stamp}-{study} already", remedy="Wait a second and try again.")

    @classmethod
    def open(cls, path: Path) -> RunFolder:
        """An existing run folder. RunError where it is none."""
        folder = cls(path)
        if not path.is_dir():
            raise RunError(f"there is no run folder {path}", remedy="Give the path that the command printed.")
        if not (path / "run.json").exists():
            raise RunError(f"{path} is not a run folder: it has no run.json", remedy="Give the path of a run.")
        return folder

    def close(self) -> None:
        """Mark the run as ended as it should."""
        body = self.document("run.json", "run")
        self.write_document("run.json", "run", {**body, "ended_at": datetime.now(UTC).isoformat(timespec="seconds")})

    def closed(self) -> bool:
        """Whether the run ended as it should: False for one that was stopped, killed, or still runs."""
        return "ended_at" in self.document("run.json", "run")

    # --- writing --------------------------------------------------------------------------------------------------

    def write_text(self, name: str, text: str) -> None:
        """A whole file at once: it is there complete or not at all."""
        with self._writing(name):
            self._replace(name, text.encode())

    def _replace(self, name: str, data: bytes) -> None:
        target = self.path / name
        scratch = target.with_name(target.name + ".part")
        with scratch.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        scratch.rename(target)

    def _replace_table(self, name: str, table: polars.DataFrame) -> None:
        """Written by us: of a full disk polars says "transport error"."""
        data = io.BytesIO()
        table.write_parquet(data)
        self._replace(name, data.getvalue())

    def write_document(self, name: str, schema: str, body: Mapping[str, Any]) -> None:
        """A JSON document of plain values."""
        self.write_text(name, encode(schema, dict(body)).decode() + "\n")

    def write_record(self, name: str, schema: str, record: object) -> None:
        """A JSON document of one record."""
        self.write_text(name, encode(schema, record).decode() + "\n")

    def save_rounds(self, rounds: Sequence[Round]) -> None:
        """The rounds so far; later calls replace them."""
        self.write_record("rounds.json", "rounds", Rounds(tuple(rounds)))

    def append_line(self, name: str, schema: str, record: object) -> None:
        """One more line, on the disk when this returns."""
        with self._writing(name), (self.path / name).open("ab") as file:
            file.write(encode(schema, record) + b"\n")
            file.flush()
            os.fsync(file.fileno())

    def cut_torn_line(self, name: str) -> None:
        """What a killed run left of a last line goes, so that whole ones can follow."""
        with self._writing(name), (self.path / name).open("rb+") as file:
            file.truncate(file.read().rfind(b"\n") + 1)

    def add_step(self, step: Step, requests: bytes, latencies_ms: NDArray[np.float32]) -> None:
        """A finished step: its raw requests and histogram first, its line last, so that a line is never alone.

        requests: the request log as the driver wrote it. latencies_ms: of the requests inside the window.
        """
        with self._writing(f"raw/requests-{step.number:05d}.zst"):
            compressed = zstandard.ZstdCompressor(level=3, write_checksum=True).compress(requests)
            (self.path / "raw" / f"requests-{step.number:05d}.zst").write_bytes(compressed)
            self._write_histogram(step, latencies_ms)
        self.append_line("steps.jsonl", "step", step)

    def _write_histogram(self, step: Step, latencies_ms: NDArray[np.float32]) -> None:
        histogram = HdrHistogram(1, LONGEST_LATENCY_US, 3)
        microseconds = np.clip(np.rint(latencies_ms * 1000.0), 1, LONGEST_LATENCY_US).astype(np.int64)
        for value, count in zip(*np.unique(microseconds, return_counts=True), strict=True):
            histogram.record_value(int(value), int(count))
        histogram.set_start_time_stamp(step.window_start_s * 1000)
        histogram.set_end_time_stamp(step.window_end_s * 1000)
        with (self.path / "latency" / f"step-{step.number:05d}.hlog").open("w") as file:
            log = HistogramLogWriter(file)
            log.output_log_format_version()
            log.output_legend()
            log.output_interval_histogram(histogram, max_value_unit_ratio=1000.0)

    def add_profiled(self, step: ProfiledStep) -> None:
        """A step that was sampled; its stacks are in the folder already."""
        with self._writing("profiles"):
            (self.path / "profiles").mkdir(exist_ok=True)
        self.append_line("profiles/steps.jsonl", "profile", step)

    def write_tables(
        self,
        steps: Sequence[Step],
        limits: Sequence[tuple[int, Limit]],
        *,
        series: polars.DataFrame | None = None,
    ) -> None:
        """metrics.parquet and limits.parquet (round, id, ...): derived, made anew.

        metrics.parquet: step, treatment, level, metric, value, at_s. at_s null: the value over the step's window. Else
        the value at one tick (recording.series), with its step where it lies in a window.
        """
        rows = [
            (step.number, step.treatment, step.level, name, value, None)
            for step in steps
            for name, value in step.metrics.items()
        ]
        ledger = [
            {
                "round": number,
                "id": limit.id,
                "layer": limit.layer,
                "ceiling": limit.ceiling,
                "configured": limit.configured,
                "effective": limit.effective,
                "use": limit.use,
                "loud": limit.loud,
                "exhausted_at": limit.exhausted_at.load if limit.exhausted_at else None,
            }
            for number, limit in limits
        ]
        with self._writing("metrics.parquet"):
            table = polars.DataFrame(rows, schema=METRIC_COLUMNS, orient="row")
            if series is not None and len(series):
                table = polars.concat([table, _within_steps(series, steps)])
            if len(table):
                self._replace_table("metrics.parquet", table)
            if ledger:
                self._replace_table("limits.parquet", polars.DataFrame(ledger, infer_schema_length=None))

    @contextmanager
    def _writing(self, name: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise RunError(
                f"{self.path / name} cannot be written: {error.strerror or error}",
                remedy="Finished steps are kept. Free some space or choose another place with --runs; run it again.",
            ) from error

    # --- reading --------------------------------------------------------------------------------------------------

    def steps(self) -> list[Step]:
        """All finished steps; a torn last line (a killed run) is left out."""
        return [decode("step", line, Step, where=where) for line, where in self.lines("steps.jsonl")]

    def treatments(self) -> dict[str, Treatment]:
        """The states the target was in, by their short name."""
        lines = self.lines("treatments.jsonl")
        found = [decode("treatment", line, Treatment, where=where) for line, where in lines]
        return {treatment.name: treatment for treatment in found}

    def effective(self) -> dict[str, Mapping[str, SettingValue]]:
        """What the target really used, by treatment, for those that were read back."""
        lines = self.lines("effective.jsonl")
        found = [decode("effective", line, Effective, where=where) for line, where in lines]
        return {one.treatment: one.values for one in found}

    def survivals(self) -> list[Survival]:
        """What caches still had after restarts."""
        lines = self.lines("survival.jsonl")
        return [decode("survival", line, Survival, where=where) for line, where in lines]

    def tuning_trials(self) -> list[TuningTrial]:
        """The trials of a search for settings as far as it went, those of runs that it went on from first; of two lines
        for one trial the later one."""
        lines = self.lines("trials.jsonl")
        trials = (decode("tuning-trial", line, TuningTrial, where=where) for line, where in lines)
        return list({trial.number: trial for trial in trials}.values())

    def rounds(self) -> list[Round]:
        """The rounds of an investigation as far as they went, also of one that was killed; none before the first."""
        if not (self.path / "rounds.json").exists():
            return []
        where = str(self.path / "rounds.json")
        return list(decode("rounds", self._read("rounds.json"), Rounds, where=where).rounds)

    def profiled(self) -> list[ProfiledStep]:
        """The extra steps that were taken for their profiles; their stacks lie beside, in the files they name."""
        name = "profiles/steps.jsonl"
        return [decode("profile", line, ProfiledStep, where=where) for line, where in self.lines(name)]

    def host(self) -> Host:
        """The machine that measured."""
        return decode("host", self._read("host.json"), Host, where=str(self.path / "host.json"))

    def conduct(self) -> Conduct | None:
        """How the run went; None for a run that was killed."""
        if not (self.path / "conduct.json").exists():
            return None
        return decode("conduct", self._read("conduct.json"), Conduct, where=str(self.path / "conduct.json"))

    def study(self) -> dict[str, Any]:
        """The study as resolved: every key with its value."""
        return self.document("study.json", "study")

    def axis_unit(self) -> str:
        """What the load axis counts, in words; "" where the run was stopped before that was known."""
        known = (self.path / "bench.json").exists()
        return str(self.document("bench.json", "bench").get("axis_unit", "")) if known else ""

    def document(self, name: str, schema: str) -> dict[str, Any]:
        """A JSON document of plain values."""
        where = str(self.path / name)
        try:
            body = json.loads(self._read(name))
        except ValueError as error:
            raise RunError(f"{where} is not valid JSON: {error}", remedy="The file was damaged.") from error
        return upgrade(schema, body, where=where)

    def investigation(self) -> Investigation | None:
        """What an investigation concluded; None for a run that only measured or was killed before its end."""
        if not (self.path / "investigation.json").exists():
            return None
        where = str(self.path / "investigation.json")
        return decode("investigation-record", self._read("investigation.json"), Investigation, where=where)

    def ladder(self) -> Ladder | None:
        """The ladder that was measured, as far as it went; None for other runs."""
        if not (self.path / "ladder.json").exists():
            return None
        return decode("ladder-record", self._read("ladder.json"), Ladder, where=str(self.path / "ladder.json"))

    def tuning(self) -> Tuning | None:
        """What a search for settings found, as far as it went; None for other runs."""
        if not (self.path / "tuning.json").exists():
            return None
        return decode("tuning-record", self._read("tuning.json"), Tuning, where=str(self.path / "tuning.json"))

    def forecast(self) -> Forecast | None:
        """What was forecast before it was measured; None for a study that does not ask for it."""
        if not (self.path / "forecast.json").exists():
            return None
        return decode("forecast-record", self._read("forecast.json"), Forecast, where=str(self.path / "forecast.json"))

    def _read(self, name: str) -> str:
        try:
            return (self.path / name).read_text(encoding="utf-8")
        except FileNotFoundError:
            raise RunError(f"{self.path} has no {name}", remedy="The run was killed before it was written.") from None
        except (OSError, UnicodeDecodeError) as error:
            raise RunError(f"{self.path / name} cannot be read: {error}", remedy="Check the file.") from error

    def lines(self, name: str) -> list[tuple[str, str]]:
        """The whole lines of a JSON-lines file, each with where it stands; none if it is not there."""
        if not (self.path / name).exists():
            return []
        text = self._read(name)
        whole = text[: text.rfind("\n") + 1]
        lines = whole.splitlines()
        return [(line, f"{self.path / name}, line {number}") for number, line in enumerate(lines, start=1)]


def _within_steps(series: polars.DataFrame, steps: Sequence[Step]) -> polars.DataFrame:
    """The ticks' values in the columns of metrics.parquet."""
    windows = polars.DataFrame(
        [(one.window_start_s, one.window_end_s, one.number, one.treatment, one.level) for one in steps],
        schema={"from_s": polars.Float64, "until_s": polars.Float64}
        | {name: METRIC_COLUMNS[name] for name in ("step", "treatment", "level")},
        orient="row",
    )
    joined = series.sort("at_s").join_asof(windows.sort("from_s"), left_on="at_s", right_on="from_s")
    inside = polars.col("at_s") <= polars.col("until_s")
    mine = [polars.when(inside).then(polars.col(name)).alias(name) for name in ("step", "treatment", "level")]
    return joined.with_columns(mine).select(*METRIC_COLUMNS)
