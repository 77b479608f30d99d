"""The live page and the report in a real browser: clicked through with nothing of the network but this server."""

from __future__ import annotations

import re
import shutil
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser, Page, Route, ViewportSize, expect

import loadframe_live as live
from loadframe import reporting
from loadframe.model import Step, TargetState
from loadframe.reporting.reports import render_page
from loadframe.runs.folder import RunFolder, Treatment
from loadframe.runs.lines import Told

from .conftest import DATA, Served, serving

PATIENCE_MS = 60_000
expect.set_options(timeout=PATIENCE_MS)
LOOKS = (Path(__file__).parent / "looks.js").read_text(encoding="utf-8")
FINISHED = "20261101T000000Z-job-queue"
pytestmark = pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")


@dataclass
class Visit:
    """A page, and what went wrong on it."""

    page: Page
    served: Served
    foreign: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)

    def open(self, place: str = "") -> None:
        self.page.goto(f"http://127.0.0.1:{self.served.port}/#/{place}")


@pytest.fixture(scope="module")
def reported(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server over a finished run with its report, and one whose report has a script of a stranger."""
    folder = tmp_path_factory.mktemp("runs")
    shutil.copytree(DATA / "job-queue", folder / FINISHED)
    found = RunFolder.open(folder / FINISHED).investigation()
    assert found is not None
    (folder / FINISHED / "report.html").write_text(render_page(found))
    strange = folder / "20261102T000000Z-strange"
    shutil.copytree(DATA / "ladder", strange)
    (strange / "report.html").write_text("")
    with serving(folder) as server:
        yield server


@pytest.fixture
def visit(browser: Browser, reported: Served) -> Iterator[Visit]:
    """The page, opened with its key. Whatever is asked of anyone else fails the test, as does a fault of the script."""
    with browser.new_context() as context:
        made = Visit(context.new_page(), reported)
        own = f"http://127.0.0.1:{reported.port}/"
        context.on("request", lambda asked: None if asked.url.startswith(own) else made.foreign.append(asked.url))
        context.on("weberror", lambda fault: made.faults.append(str(fault.error)))
        made.page.set_default_timeout(PATIENCE_MS)
        made.page.goto(reported.url)
        yield made
        assert made.foreign == []
        assert made.faults == []


@pytest.mark.long
def test_a_reader_clicks_from_the_list_through_a_run_to_its_report(visit: Visit) -> None:
    page = visit.page
    assert "token" not in page.url, "the key is not left in the address bar"
    page.get_by_role("link", name="job-queue").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("How many transactions")
    expect(page.get_by_role("img", name="Throughput")).to_contain_text("workers")
    expect(page.get_by_role("meter").first).to_be_visible()
    page.get_by_text("Every step as a table").click()
    steps = len(RunFolder.open(visit.served.folder / FINISHED).steps())
    expect(page.get_by_role("row")).to_have_count(steps + 1)
    page.get_by_role("link", name="Open the report").click()
    report = page.frame_locator("iframe")
    expect(report.get_by_role("heading", level=1)).to_contain_text("How many transactions")
    expect(report.locator("figure svg").first).to_be_visible()
    report.locator("#data > .note").get_by_role("link", name="steps.jsonl").click()
    expect(report.locator("pre")).to_contain_text('"schema":')
    page.get_by_role("link", name="Runs").click()
    expect(page.locator("a.row")).to_have_count(2)


@pytest.mark.long
def test_the_keys_do_what_their_list_says(visit: Visit) -> None:
    page = visit.page
    expect(page.locator("a.row")).to_have_count(2)
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("k")
    page.keyboard.press("Enter")
    expect(page.locator(".about h1")).to_be_visible()
    page.keyboard.press("r")
    expect(page.locator("iframe")).to_be_visible()
    page.keyboard.press("u")
    expect(page.locator("a.row")).to_have_count(2)
    light = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.keyboard.press("t")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != light
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog", name="Keys")).to_be_hidden()


def test_tab_arrows_and_escape_lead_through_it(visit: Visit) -> None:
    page = visit.page
    rows = page.locator("a.row")
    expect(rows).to_have_count(2)
    for _ in range(5):
        page.keyboard.press("Tab")
        if rows.first.evaluate("(row) => row === document.activeElement"):
            break
    expect(rows.first).to_be_focused()
    page.keyboard.press("ArrowDown")
    expect(rows.nth(1)).to_be_focused()
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    expect(page.locator(".about h1")).to_be_visible()
    page.keyboard.press("Escape")
    expect(rows).to_have_count(2)
    page.keyboard.press("?")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog", name="Keys")).to_be_hidden()
    expect(rows).to_have_count(2)


def test_numbers_that_come_late_do_not_cover_what_was_opened_since(visit: Visit) -> None:
    page, held = visit.page, list[Route]()
    expect(page.locator("a.row")).to_have_count(2)
    page.evaluate(
        "() => { const json = Response.prototype.json; window.read = 0;"
        " Response.prototype.json = async function () { const it = await json.call(this); window.read++; return it; } }"
    )
    page.route(f"**/api/runs/0/{FINISHED}", lambda route: held.append(route))
    with page.expect_request(f"**/api/runs/0/{FINISHED}"):
        visit.open(f"0/{FINISHED}")
    visit.open()
    held.pop().continue_()
    page.wait_for_function("() => window.read === 1")
    page.evaluate("() => new Promise(requestAnimationFrame)")
    expect(page.locator("a.row")).to_have_count(2, timeout=1)
    expect(page.locator(".about")).to_have_count(0, timeout=1)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [{"width": 1280, "height": 900}, {"width": 390, "height": 844}])
def test_everything_can_be_read(visit: Visit, scheme: Literal["light", "dark"], size: ViewportSize) -> None:
    page = visit.page
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size(size)
    expect(page.locator("a.row")).to_have_count(2)
    assert page.evaluate(LOOKS) == []
    for run in (FINISHED, "20261102T000000Z-strange"):
        visit.open(f"0/{run}")
        expect(page.locator(".about h1")).to_be_visible()
        page.evaluate("document.querySelectorAll('details').forEach((each) => (each.open = true))")
        assert page.evaluate(LOOKS) == []


@pytest.mark.long
def test_a_script_in_the_report_of_a_stranger_does_not_run(visit: Visit) -> None:
    strange = visit.served.folder / "20261102T000000Z-strange" / "report.html"
    with socket.create_server(("127.0.0.1", 0)) as stranger:
        place = f"http://127.0.0.1:{stranger.getsockname()[1]}/"
        strange.write_text(
            f"<!doctype html><h1>Strange</h1><img src='{place}x.png'><link rel=stylesheet href='{place}x.css'><script>"
            f"document.body.append('obeyed'); fetch('/api/runs'); fetch('{place}')</script>"
        )
        visit.open("0/20261102T000000Z-strange/report")
        report = visit.page.frame_locator("iframe")
        expect(report.get_by_role("heading")).to_have_text("Strange")
        expect(report.get_by_text("obeyed")).to_have_count(0)
        stranger.setblocking(False)
        with pytest.raises(BlockingIOError):
            stranger.accept()
    visit.foreign = [asked for asked in visit.foreign if not asked.startswith(place)]


@pytest.mark.long
def test_a_run_grows_on_the_page_while_it_is_measured(visit: Visit, make_step: Callable[..., Step]) -> None:
    page = visit.page
    expect(page.locator("a.row")).to_have_count(2)
    run = RunFolder.create(visit.served.folder, "growing")
    run.write_record("study.json", "study", RunFolder.open(DATA / "job-queue").study())
    run.append_line("treatments.jsonl", "treatment", Treatment("A", "as given", TargetState()))
    try:
        page.get_by_role("link", name="in progress").click()
        run.tell(Told("phase", "measuring 3 levels: as given", 6))
        run.tell(Told("step", treatment="A", level=2.0, seconds=3.0, purpose="curve"))
        expect(page.locator(".now")).to_contain_text("Measuring at concurrency 2, as given")
        expect(page.get_by_role("log")).to_contain_text("measuring 3 levels: as given")
        for number, level in enumerate((1.0, 2.0, 4.0), start=1):
            run.append_line("steps.jsonl", "step", make_step(level, 100 * level))
            expect(page.locator("figure").first.locator(".mark")).to_have_count(number)
        told = page.get_by_role("img", name="Throughput").get_attribute("aria-label")
        assert told is not None and "1: 100/s, 2: 200/s, 4: 400/s" in told
        run.close()
        expect(page.locator(".about").last).to_contain_text("finished")
        expect(page.locator(".now")).to_be_hidden()
    finally:
        shutil.rmtree(run.path)


@pytest.mark.long
def test_a_run_that_cannot_be_read_is_said_to_be_and_nothing_else(visit: Visit) -> None:
    folder = visit.served.folder / "20261103T000000Z-damaged"
    shutil.copytree(DATA / "job-queue", folder)
    try:
        (folder / "study.json").write_text('{"cut off')
        visit.open("0/20261103T000000Z-damaged")
        expect(visit.page.locator("main .error")).to_contain_text("study.json is not valid JSON")
        expect(visit.page.locator("main h1")).to_have_text("20261103T000000Z-damaged")
        expect(visit.page.locator("body")).not_to_contain_text("undefined")
    finally:
        shutil.rmtree(folder)


@pytest.mark.parametrize(
    ("values", "marks"),
    [
        ([0.5, 3, 800], ["0.1", "1", "10", "100", "1,000"]),
        ([3, 3], ["2", "5"]),
        ([5], ["2", "5", "10"]),
        ([0, 5], ["0", "2", "4", "6"]),
        ([], ["0", "0.25", "0.5", "0.75", "1"]),
    ],
)
def test_latencies_have_a_logarithmic_axis_with_room_for_all(
    visit: Visit, values: list[float], marks: list[str]
) -> None:
    drawn = visit.page.evaluate(
        """async (values) => {
             const points = values.map((y, at) => ({ x: at + 1, y, all: [y] }));
             const lines = values.length ? [{ name: "A", points }] : [], colour = () => "c-a";
             const words = { axis: "load", what: "p95", unit: " ms" }, size = { width: 400, height: 200 };
             const { chart } = await import("/draw.js");
             const made = chart({ lines, colour, levels: [1], now: null, knees: {}, ...words, ...size, log: true });
             const marks = [...made.querySelectorAll("text[text-anchor=end].tick")].map((e) => e.textContent);
             const heights = [...made.querySelectorAll(".mark")].map((e) => Number(e.getAttribute("cy")));
             return { marks, heights }; }""",
        values,
    )
    assert drawn["marks"] == marks
    assert all(14 <= height <= 156 for height in drawn["heights"])


def test_the_live_page_has_the_colours_of_the_report() -> None:
    report = (Path(reporting.__file__).parent / "page.css").read_text(encoding="utf-8")
    own = (Path(live.__file__).parent / "live.css").read_text(encoding="utf-8")
    for mine, theirs in (("a", "before"), ("b", "after"), ("c", "green"), ("d", "pink"), ("e", "amber")):
        bright, dark = re.findall(rf"--{theirs}: (#\w+)", report)[:2]
        assert f"--{mine}: light-dark({bright}, {dark})" in own


@pytest.mark.parametrize(("step_s", "missing", "pieces"), [(1, 8, 2), (60, 8, 2), (3600, 8, 2), (3600, 0, 1)])
def test_a_line_over_time_has_a_break_where_nothing_was_seen(
    visit: Visit, step_s: int, missing: int, pieces: int
) -> None:
    """Readings of each second, minute or hour; between two of them the unit of work failed eight times."""
    minutes = [{"at_s": at * step_s, "load": None if 10 <= at < 10 + missing else 5} for at in range(30)]
    path = visit.page.evaluate(
        """async (minutes) => (await import("/draw.js")).timeline({ minutes, key: "load", gaps: [], alarms: [],
           width: 400, height: 100, what: "Load", unit: "" }).querySelector("path.time").getAttribute("d")""",
        minutes,
    )
    assert path.count("M") == pieces


def test_without_its_key_the_page_says_where_it_is(browser: Browser, reported: Served) -> None:
    with browser.new_context() as context:
        page = context.new_page()
        page.goto(f"http://127.0.0.1:{reported.port}/#token=wrong")
        expect(page.get_by_role("heading")).to_have_text("This page needs its key")
