"""Extra steps in which target and driver are sampled: they belong to no curve and no verdict."""

from collections.abc import Callable
from pathlib import Path

from loadframe.bench.loading import Load, Loaded
from loadframe.model import ProfiledStep, ProfilePlace
from loadframe.recording.profiles.perf import Permission, permission
from loadframe.recording.profiles.profiler import Profiler
from loadframe.runs.folder import RunFolder
from loadframe.system.trees import remove_tree


class Profiles:
    """Those of one run, in the order in which they are taken."""

    def __init__(self, run: RunFolder) -> None:
        self._run = run
        self._count = 0
        self._may_sample: Permission | None = None

    def next_name(self, treatment: str, place: ProfilePlace) -> str:
        """Of the step to come, in its files."""
        self._count += 1
        return f"{self._count:02d}-{treatment}-{place}"

    def take(
        self, name: str, place: ProfilePlace, asked: Load, load: Callable[[Load, Profiler], Loaded], folder: Path
    ) -> ProfiledStep:
        """The step, on the disk when this returns. load: brings the target to its state and loads it; what it raises is
        raised here. folder: for what is gone at the end."""
        scratch = folder / f"profile-{name}"
        scratch.mkdir(mode=0o700)
        if self._may_sample is None:
            self._may_sample = permission()
        profiler = Profiler(self._may_sample, scratch)
        try:
            summary = load(asked, profiler).summary
        finally:
            profiler.stop()
        start_s, end_s = summary.window_start_s, summary.window_end_s
        sources = profiler.write(start_s, end_s, name, self._run.add_stacks)
        remove_tree(scratch)
        done = ProfiledStep(
            place=place,
            treatment=asked.treatment,
            level=asked.level,
            seconds=end_s - start_s,
            requests=summary.requests,
            throughput=summary.throughput,
            sources=sources,
            missing=tuple(profiler.missing),
        )
        self._run.add_profiled(done)
        return done
