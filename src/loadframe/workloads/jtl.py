"""The result files of JMeter (jmeter.apache.org/usermanual/listeners.html, "CSV Log format", "XML Log format"), as
requests. Times are those of the day in milliseconds, at the begin of a sample; samples within others are not counted.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from typing import IO
from xml.parsers import expat

from loadframe.formats.plain_numbers import whole
from loadframe.formats.said import words
from loadframe.workloads.command_lines import LONGEST_LATENCY_MS, MOST_LINE_BYTES, LineError, Lines

CSV_NAMES = {
    "begin": "timeStamp", "taken": "elapsed", "label": "label", "success": "success", "code": "responseCode",
    "said": "responseMessage", "bytes": "bytes",
}  # fmt: skip
XML_NAMES = {"begin": "ts", "taken": "t", "label": "lb", "success": "s", "code": "rc", "said": "rm", "bytes": "by"}
NEEDED = ("begin", "taken", "label", "success")
SAMPLES = ("sample", "httpSample")
PART = 1 << 16


def read_jtl(file: IO[bytes], names: list[str], *, cut_off: bool) -> Lines:
    """The samples of a result file, in whichever of its two formats. names: as for command_lines.read. cut_off: JMeter
    was killed, so its end may be missing. LineError."""
    lines = Lines(names, counts_bytes=True)
    xml = file.read(1) == b"<"
    file.seek(0)
    for number, sample in _xml(file, cut_off) if xml else _csv(file, cut_off):
        _take(lines, number, sample)
    return lines


def _take(lines: Lines, number: int, sample: Mapping[str, str]) -> None:
    if missing := [name for name in NEEDED if name not in sample]:
        raise LineError(number, f"a sample has no {missing[0]}; let JMeter save timestamp, time, label and success")
    begin_ms, taken_ms = whole(sample["begin"]), whole(sample["taken"])
    if begin_ms is None or taken_ms is None or begin_ms < 0 or not 0 <= taken_ms <= LONGEST_LATENCY_MS:
        told = words(f"{sample['begin']!r} and {sample['taken']!r}", 100)
        raise LineError(number, f"a sample begins at and takes {told}; both must be whole milliseconds")
    failed = sample["success"].lower() != "true"
    if failed:
        lines.note_error(" ".join(filter(None, (sample.get("code", ""), sample.get("said", "")))))
    moved = max(whole(sample.get("bytes", "0")) or 0, 0)
    operation = lines.grouped(sample["label"])
    lines.add(number, (begin_ms + taken_ms) / 1000.0, float(taken_ms), operation, failed=failed, moved=moved)


def _csv(file: IO[bytes], cut_off: bool) -> Iterator[tuple[int, Mapping[str, str]]]:
    """Rows of the columns that the first line names."""
    reader = csv.reader(_decoded(file, cut_off), strict=True)
    columns: dict[str, int] = {}
    try:
        for row in reader:
            if not columns:
                columns = {name: row.index(title) for name, title in CSV_NAMES.items() if title in row}
                if not columns:
                    raise LineError(1, f"it is no header of JMeter's CSV: {words(','.join(row), 120)}")
            elif len(row) > max(columns.values()):
                yield reader.line_num, {name: row[at] for name, at in columns.items()}
            elif row:
                raise LineError(reader.line_num, f"a sample is cut off: {words(','.join(row), 120)}")
    except csv.Error as error:
        if not cut_off:
            raise LineError(reader.line_num, f"it is no CSV ({error})") from error


def _decoded(file: IO[bytes], cut_off: bool) -> Iterator[str]:
    number = 0
    while line := file.readline(MOST_LINE_BYTES + 1):
        number += 1
        if len(line) > MOST_LINE_BYTES:
            raise LineError(number, f"it has more than {MOST_LINE_BYTES:,} bytes")
        if cut_off and not line.endswith(b"\n"):
            return
        yield line.decode("utf-8", "replace")


def _xml(file: IO[bytes], cut_off: bool) -> Iterator[tuple[int, Mapping[str, str]]]:
    """Samples that are in no other one. A document type, which may define entities without an end, is refused."""
    found: list[tuple[int, Mapping[str, str]]] = []
    depth = 0
    parser = expat.ParserCreate()

    def start(name: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        if name in SAMPLES:
            if depth == 0:
                named = {key: attributes[short] for key, short in XML_NAMES.items() if short in attributes}
                found.append((parser.CurrentLineNumber, named))
            depth += 1

    def end(name: str) -> None:
        nonlocal depth
        depth -= name in SAMPLES

    def refuse(*_: object) -> None:
        raise LineError(parser.CurrentLineNumber, "it has a document type, which JMeter does not write")

    parser.StartElementHandler, parser.EndElementHandler, parser.StartDoctypeDeclHandler = start, end, refuse
    while part := file.read(PART):
        yield from _parsed(parser, part, found, final=False)
    if not cut_off:
        yield from _parsed(parser, b"", found, final=True)


def _parsed(
    parser: expat.XMLParserType, part: bytes, found: list[tuple[int, Mapping[str, str]]], *, final: bool
) -> list[tuple[int, Mapping[str, str]]]:
    """The samples that begin in a part of the file."""
    try:
        parser.Parse(part, final)
    except expat.ExpatError as error:
        raise LineError(parser.CurrentLineNumber, f"it is no XML ({error})") from error
    samples = list(found)
    found.clear()
    return samples
