"""What a search for the capacity leaves in its run folder: the record, and the page."""

from __future__ import annotations

from dataclasses import replace

from loadframe.experiments.writing import Ended, finish
from loadframe.model import Capacity
from loadframe.reporting.capacity_report import render_capacity_page
from loadframe.reporting.document import About
from loadframe.runs.folder import RunFolder

FILE, SCHEMA = "capacity.json", "capacity-record"


def conclude(run: RunFolder, found: Capacity) -> Capacity:
    """The end of a search: its notes, capacity.json and report.html. RunError where they cannot be written."""
    end = finish(run)
    whole = replace(found, run=end.run, warnings=(*found.warnings, *end.notes))
    run.write_record(FILE, SCHEMA, whole)
    _write_page(run, whole, end)
    return whole


def write_page(run: RunFolder, found: Capacity) -> Capacity:
    """report.html of a search that was concluded, again; the search as it is now told. RunError as `conclude`."""
    end = finish(run)
    here = replace(found, run=end.run)
    _write_page(run, here, end)
    return here


def _write_page(run: RunFolder, found: Capacity, end: Ended) -> None:
    run.write_report(render_capacity_page(found, About(end.run, end.study, end.host), end.quality))
