"""Remedies of a service that need no knowledge of it: what the kernel allows its processes."""

from loadframe.knowledge.remedy import Builders, Situation, raised
from loadframe.model import Change, Price, Remedy

FILES, NOFILE = "process.open_files", "RLIMIT_NOFILE"


def _raise_open_files(situation: Situation) -> Remedy | None:
    files = raised(situation, FILES, NOFILE)
    if files is None or situation.target_kind != "service":
        return None
    files = min(files, situation.most_open_files)
    if files <= situation.ceilings[FILES]:
        return None  # the machine allows no more
    why = "the files open at the highest level, plus a fifth; where that is not known, four times as many"
    return Remedy(
        id=f"{FILES}.raise",
        title=f"allow the target {files:,} open files",
        addresses=(FILES,),
        changes=(Change("process", NOFILE, situation.effective[NOFILE], files, needed=True, why=why),),
        price=Price(note="kernel memory for each open file"),
        source="getrlimit(2), RLIMIT_NOFILE",
    )


BUILDERS: Builders = {FILES: (_raise_open_files,)}
