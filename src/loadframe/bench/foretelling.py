"""Start small and predict: measure the low levels, forecast the others before they are measured, score the forecast."""

from __future__ import annotations

from loadframe.bench import forecasting, run_forecasting
from loadframe.bench.sweep import Bookkeeping, measure_block
from loadframe.model import Curve, Forecast
from loadframe.prediction import resources, scoring

FILE, SCHEMA = "forecast.json", "forecast-record"


def foretell(book: Bookkeeping, treatment: str) -> Forecast | None:
    """The forecast that the study asks for, from its low levels alone, which are measured for it; written down before
    any other level is measured. None where it asks for none."""
    study = book.bench.study
    up_to = study.load.forecast_up_to
    if up_to is None:
        return None
    low = [level for level in study.levels if level <= up_to]
    blocks = study.measure.blocks.min
    book.progress.phase(f"measuring the {len(low)} levels to forecast from ({treatment})", len(low) * blocks)
    for block in range(1, blocks + 1):
        measure_block(book, treatment, low, block, round_number=1)
    asked = [level for level in study.levels if level > up_to]
    found = run_forecasting.predict_run(book.bench.run, asked, treatment=treatment)
    book.bench.run.write_record(FILE, SCHEMA, found)
    return found


def judge(book: Bookkeeping, treatment: str, forecast: Forecast, curve: Curve) -> Forecast:
    """The forecast with what came of it; kept in the run, its scores on this machine."""
    run = book.bench.run
    measured = resources.observe(book.of(treatment), name=str(run.path), axis=book.bench.study.load.axis)
    beyond = [row for row in measured.rows if row.load > forecast.measured[-1]]
    scored = forecasting.remember(scoring.score(forecast, beyond))
    judged = scoring.came(scored, measured, curve)
    run.write_record(FILE, SCHEMA, judged)
    return judged
