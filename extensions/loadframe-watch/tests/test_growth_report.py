"""What is said of a change log that is followed, and of one that is not."""

from __future__ import annotations

from loadframe_watch.growth.lag import by_rates, followed
from loadframe_watch.growth.report import following_json, render_following


def test_the_highest_rate_that_is_followed_and_what_a_reader_that_is_behind_applies() -> None:
    steps = (
        by_rates([1000.0, 1001, 999, 1000, 1000, 1001, 999, 1000], 1000.0),
        by_rates([3000.0, 3100, 2900, 3000, 3050, 2950, 3000, 3000], 4000.0),
    )
    text = render_following(steps, followed(steps))
    assert "Followed without end up to 1,000 changes/s" in text
    assert "At 4,000 changes/s the reader falls behind." in text
    assert "highest rate: 3,000/s (2,950 to 3,050)" in text
    shape = following_json(steps, followed(steps))
    assert shape["schema"] == "loadframe.following/1"
    assert [one["verdict"] for one in shape["steps"]] == ["followed", "behind"]


def test_too_few_readings_prove_nothing() -> None:
    steps = (by_rates([1000.0], 1000.0),)
    text = render_following(steps, followed(steps))
    assert "No rate of changes is proved to be followed" in text
    assert "too few readings" in text
    assert following_json(steps, followed(steps))["steps"][0]["low"] is None
