"""Start small and predict: measure the low levels, forecast the others before they are measured, score the forecast."""

from collections.abc import Sequence

from loadframe.analysis.disturbance import is_disturbed
from loadframe.bench.bookkeeping import Bookkeeping
from loadframe.experiments import forecasting
from loadframe.experiments.sweep import measure_block, sweep
from loadframe.model import Curve, Forecast
from loadframe.prediction import resources
from loadframe.prediction.forecasting import came, score

FILE, SCHEMA = "forecast.json", "forecast-record"
MOST_TIMES = 2
"""While others use the machine, the low levels are measured in up to this many times the study's fewest blocks."""


def first_sweep(book: Bookkeeping, treatment: str) -> Curve:
    """The curve of the first state; if the study asks for it, forecast from the low levels and scored by the others."""
    up_to = book.bench.study.load.forecast_up_to
    if up_to is None:
        return sweep(book, treatment, round_number=1)
    forecast = _foretell(book, treatment, up_to)
    curve, run = sweep(book, treatment, round_number=1), book.bench.run
    measured = resources.observe(book.of(treatment), name=str(run.path), axis=book.bench.study.load.axis)
    beyond = [row for row in measured.rows if row.load > forecast.measured[-1]]
    scored = forecasting.remember(score(forecast, beyond))
    run.write_record(FILE, SCHEMA, came(scored, measured, curve))
    return curve


def _foretell(book: Bookkeeping, treatment: str, up_to: float) -> Forecast:
    study = book.bench.study
    low = [level for level in study.levels if level <= up_to]
    blocks = study.measure.blocks.min
    book.progress.phase(f"measuring the {len(low)} levels to forecast from", len(low) * blocks)
    for block in range(1, MOST_TIMES * blocks + 1):
        if block > blocks and (_undisturbed(book, treatment, low) >= blocks or not book.budget.affords(study.levels)):
            break
        measure_block(book, treatment, low, block, round_number=1)
    asked = [level for level in study.levels if level > up_to]
    forecast = forecasting.predict_run(book.bench.run, asked, treatment=treatment, ahead=True)
    book.bench.run.write_record(FILE, SCHEMA, forecast)
    return forecast


def _undisturbed(book: Bookkeeping, treatment: str, levels: Sequence[float]) -> int:
    """Undisturbed steps at the level that has fewest of them."""
    steps = book.of(treatment)
    calm = [step.level for step in steps if not is_disturbed(step, steps)]
    return min(calm.count(level) for level in levels)
