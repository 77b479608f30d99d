"""The pages of a run as a reader sees them, in a real browser without a network: light, dark, on a phone, printed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from loadframe.experiments.reading import conclude
from loadframe.model import Capacity, CapacityLevel, CapacityObjective, CapacityTrial, Investigation, Ladder
from loadframe.reporting.document import About
from loadframe.reporting.reports import render_page
from loadframe.runs.folder import RunFolder
from loadframe_live.shown import FILES

from .conftest import DATA

LOOKS = (Path(__file__).parent / "looks.js").read_text(encoding="utf-8")
WIDE, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}


def _investigation(name: str) -> str:
    found = conclude(RunFolder.open(DATA / name)).answer
    assert isinstance(found, Investigation)
    return render_page(found)


def _ladder() -> str:
    found = conclude(RunFolder.open(DATA / "ladder")).answer
    assert isinstance(found, Ladder)
    return render_page(found)


def _tuning() -> str:
    from loadframe_tune.answer import TUNING

    found = TUNING.stored(RunFolder.open(DATA / "tuning"))
    assert found is not None
    return render_page(found)


def _capacity() -> str:
    run = RunFolder.open(DATA / "job-queue")
    about = run.investigation()
    assert about is not None
    asked = CapacityObjective(loss_ratio=0.01, latency_p95_ms=50)
    levels = (CapacityLevel(600, 2, 2, 7.2, "meets", 0.006), CapacityLevel(622, 1, 0, 0.4, "misses", 0.007))
    trials = tuple(
        CapacityTrial(number, load, 3.6, missed, load, load, latency_ms, False, True)
        for number, (load, missed, latency_ms) in enumerate(
            [(600, "", 12.5), (600, "", 14.1), (622, "it fell behind", 310)], start=1
        )
    )
    found = Capacity(
        "rate", "requests/s", asked, "found", 612, 600, 622, 0.013, 0.05, 7.2, 8.0, 0.04, True, levels, trials
    )
    return render_page(found, About("runs/a", about.study, about.host), about.quality)


PAGES: dict[str, Callable[[], str]] = {
    "investigation": lambda: _investigation("investigation"),
    "ladder": _ladder,
    "tuning": _tuning,
    "capacity": _capacity,
}
TUNING_PAGE = pytest.param("tuning", marks=pytest.mark.extension("loadframe_tune"))
NAMES = [TUNING_PAGE if name == "tuning" else name for name in PAGES]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    for name, make in PAGES.items():
        if name == "tuning" and find_spec("loadframe_tune") is None:
            continue
        (folder / f"{name}.html").write_text(make(), encoding="utf-8")
    return {name: folder / f"{name}.html" for name in PAGES}


@pytest.fixture
def opened(browser: Browser, written: dict[str, Path]) -> Iterator[Callable[..., Page]]:
    """A page by its name. What it asks of a network, and a fault of its script, fail the test."""
    asked, faults, contexts = list[str](), list[str](), list[BrowserContext]()

    def open_page(name: str, *, scheme: str = "light", size: dict[str, int] = WIDE) -> Page:
        context = browser.new_context(viewport=size, color_scheme=scheme, offline=True)  # type: ignore[arg-type]
        contexts.append(context)
        context.on("request", lambda one: None if one.url.startswith("file:") else asked.append(one.url))
        context.on("weberror", lambda fault: faults.append(str(fault.error)))
        page = context.new_page()
        page.goto(written[name].as_uri())
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert asked == []
    assert faults == []


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("scheme", "size"), [("light", WIDE), ("dark", WIDE), ("light", PHONE)])
def test_everything_can_be_read(opened: Callable[..., Page], name: str, scheme: str, size: dict[str, int]) -> None:
    page = opened(name, scheme=scheme, size=size)
    page.evaluate("document.querySelectorAll('details').forEach((each) => (each.open = true))")
    assert page.evaluate(LOOKS) == []


@pytest.mark.parametrize("name", NAMES)
def test_the_first_screen_has_question_answer_proof_and_next_step(opened: Callable[..., Page], name: str) -> None:
    page = opened(name)
    for part in (
        page.get_by_role("heading", level=1),
        page.locator(".answer"),
        page.locator(".first figure").first,
        page.get_by_role("heading", name="Proof", exact=True),
        page.locator(".number.next"),
    ):
        box = part.bounding_box()
        assert box is not None and box["y"] + 20 < WIDE["height"], part


@pytest.mark.parametrize("name", ["investigation", "ladder", TUNING_PAGE])
def test_what_to_change_is_one_click_away(opened: Callable[..., Page], name: str) -> None:
    page = opened(name)
    page.get_by_role("link", name="The settings to copy").click()
    expect(page.locator("#settings")).to_be_in_viewport()


@pytest.mark.parametrize("name", ["ladder", TUNING_PAGE])
def test_settings_are_copied_by_one_click(opened: Callable[..., Page], name: str) -> None:
    page = opened(name)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="Copy", exact=True).click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied == page.locator("pre.settings").text_content() != ""


def _tabbed_to(page: Page, wanted: str) -> set[str]:
    """What had the focus until an element of this kind has it."""
    reached = set[str]()
    for _ in range(60):
        page.keyboard.press("Tab")
        reached.add(now := str(page.evaluate("document.activeElement.tagName")))
        if now == wanted:
            break
    return reached


@pytest.mark.parametrize("name", NAMES)
def test_it_is_used_by_keyboard_alone(opened: Callable[..., Page], name: str) -> None:
    page = opened(name)
    reached = _tabbed_to(page, "A") | _tabbed_to(page, "SUMMARY")
    assert reached >= {"A", "SUMMARY"}
    open_now = page.evaluate("document.activeElement.parentElement.open")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.parentElement.open") is not open_now
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none", "one sees where one is"


@pytest.mark.parametrize("name", NAMES)
def test_printed_it_has_no_dark_paper_and_nothing_beyond_its_edge(opened: Callable[..., Page], name: str) -> None:
    page = opened(name, scheme="dark", size={"width": 680, "height": 960})
    page.emulate_media(media="print", color_scheme="light")
    assert page.evaluate(LOOKS) == []
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"


@pytest.mark.parametrize("name", NAMES)
def test_every_file_that_it_links_to_is_one_of_a_run(
    written: dict[str, Path], opened: Callable[..., Page], name: str
) -> None:
    links = opened(name).evaluate("[...document.querySelectorAll('a[href]')].map((a) => a.getAttribute('href'))")
    assert {link for link in links if not link.startswith("#")} <= set(FILES)
    assert written[name].stat().st_size < 3 << 20
