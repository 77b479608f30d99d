"""Better settings for a study's target, searched in trials and proved against the start:

import loadframe_tune
tuning = loadframe_tune.tune(loadframe.load_study(path), Path("runs"))
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from loadframe_tune.answer import tuning_json
    from loadframe_tune.loop import tune

__all__ = ["tune", "tuning_json"]

if not TYPE_CHECKING:  # on first use: the command's help needs none of it

    def __getattr__(name: str) -> object:
        if name not in __all__:
            raise AttributeError(f"module 'loadframe_tune' has no attribute {name!r}")
        from loadframe_tune import answer, loop

        return {"tune": loop.tune, "tuning_json": answer.tuning_json}[name]
