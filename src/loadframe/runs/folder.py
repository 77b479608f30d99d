"""The run folder: append-only while it runs, readable after a kill; loses at most the step in progress."""

import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import polars
import zstandard
from numpy.typing import NDArray

from loadframe.errors import RunError
from loadframe.model import (
    FleetDrivers,
    FleetHosts,
    Forecast,
    Host,
    Investigation,
    Limit,
    ProfiledStep,
    Round,
    RunQuality,
    SettingValue,
    Step,
    Steps,
    Stop,
    WarmRestart,
)
from loadframe.panics import ROOM_BYTES, in_words
from loadframe.runs.formats import DAMAGED, NamedSchema, Record, decode, decode_document, encode
from loadframe.runs.histograms import histogram_log, payload, read_counts
from loadframe.runs.lines import (
    PROGRESS,
    BenchFacts,
    Effective,
    ProgressLog,
    Rounds,
    Told,
    Treatment,
    check_steps,
    faults_of,
    faults_of_rounds,
    flagged,
    refuse,
)
from loadframe.runs.record import limit_table, metric_table
from loadframe.study import Study, validate
from loadframe.system.files import Folder, Whose, is_held
from loadframe.system.trees import closing

RECORDING, REPORT = "raw/host.lfr", "report.html"
MOST_DOCUMENT_BYTES, MOST_LINES_BYTES, MOST_STACKS_BYTES, MOST_LOG_BYTES = 32 << 20, 128 << 20, 64 << 20, 1 << 20
MOST_REQUESTS_BYTES, FREE_BYTES, PER_BYTE, LARGEST_WINDOW = 128 << 20, 12 << 20, 6, 8 << 20
"""Largest files that are read: a document of a long investigation has less than 1 MiB, a line of a step 5 kB, a
histogram at most 60 kB, a log of five million requests 120 MB."""

__all__ = ["RECORDING", "REPORT", "BenchFacts", "Effective", "RunFolder", "Treatment"]


class RunFolder:
    """Writers raise RunError where the disk does not take what was measured."""

    def __init__(self, path: Path, files: Folder | None = None) -> None:
        self.path = path
        """For messages and records only: files are reached through the methods."""
        self._files = files or Folder(path, Whose.NAMED, what="run folder")
        self._progress: ProgressLog | None = None

    @classmethod
    def create(cls, root: Path, study: str, *, private: bool = False) -> "RunFolder":
        """ROOT/UTC-time-study. private: closed to other users. RunError where it cannot be created."""
        now = datetime.now(UTC)
        name = f"{now:%Y%m%dT%H%M%SZ}-{study}"
        for attempt in range(1, 100):
            folder = cls(root / (name if attempt == 1 else f"{name}-{attempt}"))
            try:
                folder._files.make(0o700 if private else 0o755)
                for part in ("raw", "latency"):
                    folder._files.make_folder(part)
                folder._progress = ProgressLog(folder._files.new_locked(PROGRESS))
            except FileExistsError:
                if not root.is_dir():
                    raise folder._cannot_be_made("a part of its path is a file") from None
                continue
            except OSError as error:
                raise folder._cannot_be_made(error.strerror or str(error)) from error
            folder.write_record("run.json", "run", {"started_at": now.isoformat(timespec="seconds")})
            return folder
        raise RunError(f"there are a hundred runs named {name} already", remedy="Wait a second and try again.")

    def _cannot_be_made(self, why: str) -> RunError:
        return RunError(f"the run folder {self.path} cannot be made: {why}", remedy="Choose another place with --runs.")

    @classmethod
    def open(cls, path: Path) -> "RunFolder":
        folder = cls(path)
        folder._files.open()
        return folder._checked()

    @classmethod
    def below(cls, root: Folder, name: str) -> "RunFolder":
        return cls(root.path / name, root.below(name))._checked()

    def _checked(self) -> "RunFolder":
        if not self.has("run.json"):
            raise RunError(f"{self.path} is not a run folder: it has no run.json", remedy="Give the path of a run.")
        return self

    def close(self) -> None:
        body = self.document("run.json", "run")
        self.write_record("run.json", "run", {**body, "ended_at": datetime.now(UTC).isoformat(timespec="seconds")})

    def closed(self) -> bool:
        return "ended_at" in self.document("run.json", "run")

    def in_progress(self) -> bool:
        if not self.has(PROGRESS):
            return False
        with closing(self.recording(PROGRESS)) as descriptor:
            return is_held(descriptor)

    def tell(self, line: Told) -> None:
        """Ignored except in the command that created the run."""
        if self._progress is not None:
            self._progress.tell(line)

    def write_text(self, name: str, text: str) -> None:
        self.write_bytes(name, text.encode())

    def write_bytes(self, name: str, data: bytes) -> None:
        with self._writing(name):
            self._files.replace(name, data)

    def write_report(self, page: str) -> None:
        self._files.remove_torn("raw", "latency", "profiles")
        self.write_text(REPORT, page)

    def new_recording(self, name: str = RECORDING) -> int:
        """Open for appending; the caller closes the descriptor."""
        with self._writing(name):
            return self._files.new_file(name)

    def _write_table(self, name: str, table: polars.DataFrame) -> None:
        """Not written by polars, which reports a full disk as "transport error"."""
        data = io.BytesIO()
        table.write_parquet(data)
        self.write_bytes(name, data.getvalue())

    def write_record(self, name: str, schema: NamedSchema, record: object) -> None:
        self.write_text(name, encode(schema, record).decode() + "\n")

    def save_rounds(self, rounds: Sequence[Round]) -> None:
        self.write_record("rounds.json", "rounds", Rounds(tuple(rounds)))

    def append_line(self, name: str, schema: NamedSchema, record: object) -> None:
        with self._writing(name):
            self._files.append(name, encode(schema, record) + b"\n")

    def cut_torn_line(self, name: str) -> None:
        """Remove a killed run's incomplete last line, so that whole ones can follow."""
        whole = self._bytes(name, MOST_LINES_BYTES).rfind(b"\n") + 1
        with self._writing(name):
            self._files.cut(name, whole)

    def add_step(self, step: Step, requests: bytes, latencies_ms: NDArray[np.float32]) -> None:
        """Its line comes last, so that no line lacks its files. requests: the driver's log. latencies_ms: of requests
        done inside the window."""
        with in_words(f"Step {step.number} cannot be kept", RunError, zstandard.ZstdError):
            compressed = zstandard.ZstdCompressor(level=3, write_checksum=True).compress(requests)
        self.write_bytes(_requests(step.number), compressed)
        self.write_text(_histogram(step.number), histogram_log(step, latencies_ms))
        self.append_line("steps.jsonl", "step", step)

    def add_stacks(self, name: str, text: str) -> None:
        self._make_profiles()
        self.write_text(f"profiles/{name}", text)

    def add_profiled(self, step: ProfiledStep) -> None:
        self._make_profiles()
        self.append_line("profiles/steps.jsonl", "profile", step)

    def _make_profiles(self) -> None:
        with self._writing("profiles"):
            self._files.make_folder("profiles")

    def write_tables(
        self, steps: Steps, limits: Sequence[tuple[int, Limit]], *, series: polars.DataFrame | None = None
    ) -> None:
        """limits.parquet: round, id, ...; metrics.parquet: step, treatment, level, metric, value, at_s; at_s null: over
        the step's window, else at one tick (recording.series), with its step if in a window."""
        with in_words(f"{self.place('metrics.parquet')} cannot be made", RunError, room_bytes=ROOM_BYTES):
            if len(table := metric_table(steps, series)):
                self._write_table("metrics.parquet", table)
            if limits:
                self._write_table("limits.parquet", limit_table(limits))

    @contextmanager
    def _writing(self, name: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise RunError(
                f"{self.place(name)} cannot be written: {error.strerror or error}",
                remedy="Finished steps are kept. Free some space or choose another place with --runs; run it again.",
            ) from error

    def steps(self) -> list[Step]:
        """Without the torn last line of a killed run. RunError for an impossible one."""
        steps = self.records("steps.jsonl", "step", Step)
        check_steps(steps, str(self.place("steps.jsonl")))
        return flagged(steps, self.stops())

    def stops(self) -> list[Stop]:
        """In order; older versions have stop.json, and ended the run then."""
        old = self.record("stop.json", "stop", Stop)
        return [*filter(None, [old]), *self.records("stops.jsonl", "stop", Stop)]

    def stop(self) -> Stop | None:
        """The failure at the lowest load of the state in which the target failed first."""
        stops = self.stops()
        first = [stop for stop in stops if stop.treatment == stops[0].treatment]
        return min(first, key=lambda stop: stop.level, default=None)

    def treatments(self) -> dict[str, Treatment]:
        return {treatment.name: treatment for treatment in self.records("treatments.jsonl", "treatment", Treatment)}

    def treatment(self, name: str) -> Treatment:
        treatments = self.treatments()
        if name not in treatments:
            known = ", ".join(treatments) or "none"
            raise RunError(
                f"{self.place('treatments.jsonl')} has no treatment {name!a}; it has {known}", remedy=DAMAGED
            )
        return treatments[name]

    def effective(self) -> dict[str, Mapping[str, SettingValue]]:
        return {record.treatment: record.values for record in self.records("effective.jsonl", "effective", Effective)}

    def warm_restarts(self) -> list[WarmRestart]:
        return self.records("survival.jsonl", "survival", WarmRestart)

    def profiled(self) -> list[ProfiledStep]:
        return self.records("profiles/steps.jsonl", "profile", ProfiledStep)

    def rounds(self) -> list[Round]:
        """As far as the investigation went."""
        record = self.record("rounds.json", "rounds", Rounds)
        if record is None:
            return []
        refuse(str(self.place("rounds.json")), faults_of_rounds(record.rounds))
        return list(record.rounds)

    def host(self) -> Host:
        return decode("host", self._bytes("host.json"), Host, where=str(self.place("host.json")))

    def quality(self) -> RunQuality | None:
        """None for a killed run."""
        return self.record("conduct.json", "conduct", RunQuality)

    def investigation(self) -> Investigation | None:
        """None for other runs, and before its end."""
        investigation = self.record("investigation.json", "investigation-record", Investigation)
        if investigation is not None:
            refuse(str(self.place("investigation.json")), faults_of(investigation))
        return investigation

    def forecast(self) -> Forecast | None:
        """Made before the measurement."""
        return self.record("forecast.json", "forecast-record", Forecast)

    def drivers(self) -> FleetDrivers | None:
        """The last comparison counts."""
        return next(reversed(self.records("fleet-drivers.jsonl", "fleet-drivers", FleetDrivers)), None)

    def hosts_alike(self) -> FleetHosts | None:
        return next(reversed(self.records("fleet-hosts.jsonl", "fleet-hosts", FleetHosts)), None)

    def study(self) -> dict[str, Any]:
        return self.document("study.json", "study")

    def declared(self) -> Study:
        return validate(self.study(), name=str(self.place("study.json")))

    def bench(self) -> BenchFacts:
        """Defaults where the run was stopped before."""
        return self.record("bench.json", "bench", BenchFacts) or BenchFacts()

    def document(self, name: str, schema: str) -> dict[str, Any]:
        return decode_document(schema, self._bytes(name), where=str(self.place(name)))

    def record(self, name: str, schema: NamedSchema, kind: type[Record]) -> Record | None:
        """None where there is no file. RunError."""
        return decode(schema, self._bytes(name), kind, where=str(self.place(name))) if self.has(name) else None

    def records(self, name: str, schema: NamedSchema, kind: type[Record]) -> list[Record]:
        """Without a torn last line; empty where there is no file. RunError."""
        if not self.has(name):
            return []
        *whole, _ = self._bytes(name, MOST_LINES_BYTES).split(b"\n")
        place = self.place(name)
        return [
            decode(schema, line, kind, where=f"{place}, line {number}") for number, line in enumerate(whole, start=1)
        ]

    def place(self, name: str) -> Path:
        return self.path / name

    def has(self, name: str) -> bool:
        with self._reading(name):
            return self._files.exists(name)

    def report(self) -> bytes:
        return self._bytes(REPORT)

    def recording(self, name: str = RECORDING) -> int:
        """Open for reading; the caller closes the descriptor. RunError."""
        with self._reading(name):
            return self._files.descriptor(name)

    def latency_counts(self, number: int) -> NDArray[np.int64] | None:
        """By bin of runs.histograms; None where it has no histogram. RunError for a damaged one."""
        name = _histogram(number)
        if not self.has(name):
            return None
        try:
            return read_counts(self._bytes(name, MOST_LOG_BYTES))
        except ValueError as error:
            raise RunError(f"{self.place(name)} is not a histogram of latencies: {error}", remedy=DAMAGED) from error

    def latency_payload(self, number: int) -> bytes | None:
        """The histogram in base64, checked; None where there is none. RunError as `latency_counts`."""
        return None if self.latency_counts(number) is None else payload(self._bytes(_histogram(number), MOST_LOG_BYTES))

    def requests(self, number: int) -> bytes:
        """The log as the driver wrote it, or b"". RunError where it is damaged or too large."""
        name = _requests(number)
        if not self.has(name):
            return b""
        packed = self._bytes(name, MOST_REQUESTS_BYTES)
        most = min(MOST_REQUESTS_BYTES, FREE_BYTES + PER_BYTE * len(packed))
        try:
            with zstandard.ZstdDecompressor(max_window_size=LARGEST_WINDOW).stream_reader(packed) as reader:
                data = reader.read(most + 1)
        except zstandard.ZstdError as error:
            raise RunError(f"{self.place(name)} is no log of requests: {error}", remedy=DAMAGED) from error
        if len(data) > most:
            raise RunError(f"{self.place(name)} holds more than {most >> 20} MiB", remedy=DAMAGED)
        return data

    def stacks_text(self, name: str) -> str:
        return self._bytes(f"profiles/{name}", MOST_STACKS_BYTES).decode("utf-8", errors="replace")

    def _bytes(self, name: str, most: int = MOST_DOCUMENT_BYTES) -> bytes:
        with self._reading(name):
            return self._files.read(name, most)

    @contextmanager
    def _reading(self, name: str) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError:
            raise RunError(f"{self.path} has no {name}", remedy="The run was killed before it was written.") from None
        except OSError as error:
            why = error.strerror or error
            raise RunError(f"{self.place(name)} cannot be read: {why}", remedy="Check the file.") from error

    def lines_from(self, name: str, start: int, most: int) -> list[bytes]:
        """Whole ones within `most` bytes from `start`; empty at the end."""
        if not self.has(name):
            return []
        with self._reading(name):
            *whole, _ = self._files.read_from(name, start, most).split(b"\n")
        return whole

    def state_of(self, name: str) -> tuple[int, int]:
        """Size and modification time (ns); zeros where there is no file. Nothing is opened."""
        with self._reading(name):
            return self._files.state_of(name)


def _requests(number: int) -> str:
    return f"raw/requests-{number:05d}.zst"


def _histogram(number: int) -> str:
    return f"latency/step-{number:05d}.hlog"
