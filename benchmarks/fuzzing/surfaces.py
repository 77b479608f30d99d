"""The surfaces: for each, how an input is made from a seed, and what an answer to it must be beyond "no traceback".

An input is either a command line of `loadframe`, with what stands in files and on stdin, or a call of a reader that a
command would call with the bytes. A row more in SURFACES is a surface more.
"""

from __future__ import annotations

import gzip
import json
import math
import os
import random
import shutil
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fuzzing import answers, api, costs
from fuzzing.corpus import Corpus
from fuzzing.mutations import NASTY_TEXT, as_json, as_toml, mutate_text, mutate_tree, nasty, nested, toml_file

ENVIRONMENT_NAMES = ("LOADFRAME_STATE", "LOADFRAME_SCRATCH", "HOME")


@dataclass(frozen=True, slots=True)
class Input:
    """What is tried. arguments: of the command line; call: a reader instead, that takes the folder. check: what is
    wrong with an accepted answer, in words; "" for nothing."""

    arguments: tuple[str, ...] = ()
    stdin: bytes = b""
    call: Callable[[Path], None] | None = None
    check: Callable[[Any], str] | None = None
    alone: bool = True
    """Whether the same may be carried out by a process of its own, too."""


Make = Callable[[random.Random, Path, Corpus], Input]


@dataclass(frozen=True, slots=True)
class Surface:
    """share: of all inputs. confined: whether it may only be tried where no harm can be done. waits_s: for what answers
    late by right, before it counts as a hang."""

    make: Make
    share: float
    confined: bool = False
    waits_s: float = 0.0
    environment: Mapping[str, str] = field(default_factory=dict)


def _flags(rng: random.Random) -> tuple[str, ...]:
    return ("--json",) if rng.random() < 0.6 else ()


def _argument(text: str) -> str:
    """What a command line can hold: no NUL, and bytes that are no text as halves of surrogate pairs."""
    return text.replace("\0", "").encode("utf-8", "surrogatepass")[:100_000].decode("utf-8", "surrogateescape")


def _word(rng: random.Random) -> str:
    return _argument(rng.choice(NASTY_TEXT))


def _place(rng: random.Random, folder: Path, name: str, data: bytes) -> str:
    """The file with this data - now and then something else that has a name."""
    path = folder / name
    match rng.randrange(150):
        case 0 if rng.random() < 0.1:  # it is waited for
            os.mkfifo(path)
        case 1:
            path.mkdir()
        case 2:
            return "/dev/zero"
        case 3:
            path.symlink_to(path)
        case 4:
            return str(folder / "none")
        case 5:
            path.write_bytes(data)
            return f"{folder}/../{folder.name}/{name}"
        case _:
            path.write_bytes(data)
    return str(path)


# --- studies ---


def _study(rng: random.Random, folder: Path, corpus: Corpus) -> Input:
    text, tables = rng.choice(corpus.studies)
    if rng.random() < 0.5:
        data = mutate_text(rng, text)
    else:
        data = _odd_toml(rng, toml_file(mutate_tree(rng, tables))).encode("utf-8", "surrogatepass")
    path = _place(rng, folder, "study.toml", data)
    return Input(("study", "check", path, *_flags(rng)), check=check_study)


def _odd_toml(rng: random.Random, text: str) -> str:
    """Now and then what only many bytes can say."""
    match rng.randrange(40):
        case 0:
            return text + "\nx = " + nested("[", "]", rng.choice((100, 3000)))
        case 1:
            return text + "\nx" + ".y" * rng.choice((40, 5000, 40_000)) + " = 1"
        case 2:
            return text + "\nx = " + nested("{ a = ", " }", rng.choice((30, 400)))
        case 3:
            return text + "".join(f"\n[[alternative]]\nname = 'n{number}'" for number in range(3000))
        case 4:
            return text + "".join(f"\nkey{number} = {number}" for number in range(5000))
        case 5:
            return text + "\n[x]\n" + "".join(f"[x.y{number}.z]\n" for number in range(4000))
        case 6:
            return text + '\nx = """' + "\n" * 90_000 + '"""'
        case 7:
            return text + "\n# " + "a" * rng.choice((90_000, 2_000_000))
    return text


def _set(rng: random.Random, folder: Path, corpus: Corpus) -> Input:
    text, tables = rng.choice(corpus.studies)
    (folder / "study.toml").write_text(text)
    sets: list[str] = []
    for _ in range(rng.choice((1, 1, 2, 4))):
        key = rng.choice(_dotted(tables)) if rng.random() < 0.8 else rng.choice(corpus.keys)
        value = _word(rng) if rng.random() < 0.3 else _argument(as_toml(nasty(rng)))
        value = nested("[", "]", 500) if rng.random() < 0.03 else value
        text = f"{key}={value}" if rng.random() < 0.95 else f"{key}{'.a' * rng.choice((1, 30, 2000))}={value}"
        if rng.random() < 0.1:
            text = _argument(mutate_text(rng, text).decode("utf-8", "replace"))
        sets += ["--set", text]
    return Input(("study", "check", str(folder / "study.toml"), *sets, *_flags(rng)), check=check_study)


def _dotted(tables: Mapping[str, Any], above: str = "") -> list[str]:
    found = []
    for key, value in tables.items():
        found.append(f"{above}{key}")
        if isinstance(value, dict):
            found += _dotted(value, f"{above}{key}.")
    return found


def check_study(answer: Any) -> str:
    """The study as resolved is one again, and the same."""
    from loadframe.study import validate

    tables = {key: value for key, value in answer.items() if key != "schema"}
    study = validate(tables)
    levels = study.levels
    if not levels or list(levels) != sorted(set(levels)) or not all(0 < level < 1e10 for level in levels):
        return f"levels {levels!r}"
    return "" if study.resolved() == tables else "what is resolved is resolved otherwise again"


# --- CSV ---


def _csv_text(rng: random.Random, texts: tuple[str, ...], names: tuple[str, ...]) -> bytes:
    match rng.randrange(10):
        case 0 | 1 | 2:
            return _made_csv(rng, names)
        case 3:
            return _odd_csv(rng, names)
    return mutate_text(rng, rng.choice(texts))


def _made_csv(rng: random.Random, names: tuple[str, ...]) -> bytes:
    """A right header over numbers of any size, so that numerics are reached."""
    chosen = [names[0], *(name for name in names[1:] if rng.random() < 0.6)]
    scale = 10.0 ** rng.choice((0, 0, 0, 3, -3, 12, -8, 14, 100, 300, -300))
    kind = rng.randrange(6)
    rows = []
    for at in range(rng.choice((1, 2, 3, 4, 5, 8, 12, 60, 61, 400))):
        plain = {0: 1.0, 1: at + 1.0, 2: rng.random(), 3: 10.0 ** rng.uniform(-12, 12), 4: 0.0, 5: 1 + 1e-15 * at}[kind]
        cells = []
        for name in chosen:
            value = plain if name != "load" else float(1 + at // rng.choice((1, 2)))
            value *= scale if name in ("throughput", "value") or rng.random() < 0.1 else 1
            value = min(value, 1.0) if name.startswith("util.") and rng.random() < 0.9 else value
            cells.append(str(at % 3) if name == "block" else repr(value))
        rows.append(",".join(cells))
    return ("\n".join([",".join(chosen), *rows]) + "\n").encode()


def _odd_csv(rng: random.Random, names: tuple[str, ...]) -> bytes:
    head = ",".join(names[:2])
    match rng.randrange(8):
        case 0:
            return (head + "\n" + "1,2\n" * rng.choice((30_000, 100_000))).encode()
        case 1:
            return (head + "\n" + "".join(f"{at},{at}\n" for at in range(1, 10_001))).encode()
        case 2:
            return (head + "".join(f",util.r{at}" for at in range(rng.choice((500, 20_000)))) + "\n1,1\n2,1").encode()
        case 3:
            return (head + "\n" + "1" * 1_000_000 + ",2\n").encode()
        case 4:
            return (head + '\n"' + "a,b\n" * 20_000).encode()
        case 5:
            return ("\n" * 200_000 + head + "\n1,2\n2,3").encode()
        case 6:
            return (head + "\n" + ",".join("1" * 100_000) + "\n").encode()
    return (head + "\n" + "".join(f"{at / 7},b{at}\n" for at in range(50_000))).encode()


SAMPLE_NAMES = ("value", "block", "value", "note")
CURVE_NAMES = ("load", "throughput", "latency_p95_ms", "util.cpu", "util.disk", "servers.cpu", "servers.disk")


def _given(rng: random.Random, folder: Path, name: str, data: bytes) -> tuple[str, bytes]:
    """A file, or stdin."""
    return ("-", data) if rng.random() < 0.3 else (_place(rng, folder, name, data), b"")


def _compare(rng: random.Random, folder: Path, corpus: Corpus) -> Input:
    first, stdin = _given(rng, folder, "before.csv", _csv_text(rng, corpus.samples, SAMPLE_NAMES[:2]))
    second = _place(rng, folder, "after.csv", _csv_text(rng, corpus.samples, SAMPLE_NAMES[:2]))
    both = (first, second) if rng.random() < 0.9 or first == "-" else (second, first)
    more = ("--fail-if-worse", rng.choice(("3%", "0%", "99%", _word(rng)))) if rng.random() < 0.2 else ()
    lower = ("--lower-is-better",) if rng.random() < 0.2 else ()
    return Input(("compare", *both, *more, *lower, *_flags(rng)), stdin, check=check_verdict)


def check_verdict(answer: Any) -> str:
    """A ratio within its interval, and a decision that fits it."""
    low, ratio, high = answer["low"], answer["ratio"], answer["high"]
    if None not in (low, ratio, high) and not low * (1 - 1e-9) <= ratio <= high * (1 + 1e-9):
        return f"ratio {ratio} is not from {low} to {high}"
    return "" if isinstance(answer["decision"], str) and answer["decision"] else "no decision"


def _curve(rng: random.Random, folder: Path, corpus: Corpus) -> Input:
    place, stdin = _given(rng, folder, "points.csv", _csv_text(rng, corpus.curves, CURVE_NAMES[: rng.randrange(2, 8)]))
    within = rng.choice(("50", "1e300", "1e-300", "nan", "-1", _word(rng)))
    more = ("--within-latency-p95-ms", within) if rng.random() < 0.3 else ()
    return Input(("curve", place, *more, *_flags(rng)), stdin, check=check_curve)


def check_curve(answer: Any) -> str:
    """Points in rising order; what is found lies among them, with its interval around it."""
    loads = [point["load"] for point in answer["points"]]
    if loads != sorted(set(loads)):
        return f"loads {loads[:5]}"
    for name in ("knee", "capacity"):
        found = answer[name]
        if found is None or None in found.values():
            continue
        if not found["low"] * (1 - 1e-9) <= found["load"] <= found["high"] * (1 + 1e-9):
            return f"{name} {found}"
    peak = answer["peak"]
    return "" if peak is None or peak["load"] in loads else f"peak {peak} is at no load"


def _predict(rng: random.Random, folder: Path, corpus: Corpus) -> Input:
    place, stdin = _given(rng, folder, "points.csv", _csv_text(rng, corpus.curves, CURVE_NAMES[: rng.randrange(2, 8)]))
    at = rng.choice(("8,16", "64", "1e15", "1e300", "1e-300", "3,3", "nan", "0", ",", _word(rng), "1," * 2000 + "1"))
    more = [("--at", at), ("--up-to", rng.choice(("2", "4", "1e9", "inf", _word(rng)))), ("--load-is", "rate")]
    chosen = [word for pair in more if rng.random() < 0.5 for word in pair]
    return Input(("predict", place, *chosen, *_flags(rng)), stdin, check=check_forecast)


OBSERVED_NAMES = ("time", "load", "throughput", "response_s", "util.cpu", "util.disk", "servers.cpu")
SYSSTAT = """\
# hostname;interval;timestamp;CPU;%user;%nice;%system;%iowait;%steal;%idle
vm;1;2026-11-25 04:51:55 UTC;-1;44.95;0.00;6.57;0.00;0.00;48.48
vm;1;2026-11-25 04:51:56 UTC;-1;6.53;0.00;6.53;0.00;0.00;86.93
# hostname;interval;timestamp;DEV;tps;rkB/s;wkB/s;dkB/s;areq-sz;aqu-sz;await;%util
vm;1;2026-11-25 04:51:55 UTC;vda;20.00;72.00;4.00;8.00;4.20;0.00;0.25;30.40
"""


def _observed(rng: random.Random, folder: Path, corpus: Corpus) -> Input:
    """Rows in time order in every format, right and damaged, with terms that may mean anything."""
    made = {"csv": _rows_text, "prometheus": _matrix_text, "sysstat": _sysstat_text}
    kind = rng.choice(list(made))
    place, stdin = _given(rng, folder, "rows", made[kind](rng))
    terms = ("load", "a_total", "a_total / b", 'a_total{x="1"}', "idle", "1 / 0", "rows", "{", "/", _word(rng))
    more = [("--load", rng.choice(terms)), ("--throughput", rng.choice(terms)), ("--response", rng.choice(terms))]
    more += [("--use", f"r={rng.choice(terms)} / 100"), ("--use", _word(rng)), ("--counter", rng.choice(terms))]
    said = rng.choice((0.0, 0.1, 0.35))
    chosen = [word for pair in more if rng.random() < said for word in pair]
    if kind != "csv" and said < 0.2:
        chosen = ["--load", "load" if kind == "prometheus" else "idle", "--throughput", "a_total / 1"][
            : rng.choice((2, 4))
        ]
    if rng.random() < 0.3:
        return Input(("predict", place, *chosen, "--at", "50", *_flags(rng)), stdin, check=check_forecast)
    return Input(("curve", place, *chosen, *_flags(rng)), stdin, check=check_curve)


def _rows_text(rng: random.Random) -> bytes:
    scale, rows = 10.0 ** rng.choice((0, 0, 0, -8, 12, 300)), [",".join(OBSERVED_NAMES)]
    for at in range(rng.choice((1, 39, 90, 200, 900))):
        load = scale * (1 + 50 * rng.random())
        cells = [60 * at, load, load * rng.choice((1, 1, 1, 0)), rng.random(), min(1.0, rng.random()), 0.2, 2]
        rows.append(",".join("" if rng.random() < 0.01 else repr(cell) for cell in cells))
    text = "\n".join(rows) + "\n"
    return text.encode() if rng.random() < 0.7 else mutate_text(rng, text)


def _matrix_text(rng: random.Random) -> bytes:
    values = [
        [15 * at, str(rng.choice((at, 50 * rng.random(), "NaN", "1e308")))] for at in range(rng.choice((2, 90, 90)))
    ]
    names = ("load", "a_total", "b")
    result = [{"metric": {"__name__": name, "x": str(at % 2)}, "values": values} for at, name in enumerate(names * 2)]
    answer: Any = {"status": "success", "data": {"resultType": "matrix", "result": result}}
    answer = answer if rng.random() < 0.5 else mutate_tree(rng, answer)
    return as_json(rng, answer).encode("utf-8", "surrogatepass")


def _sysstat_text(rng: random.Random) -> bytes:
    return SYSSTAT.encode() if rng.random() < 0.2 else mutate_text(rng, SYSSTAT)


LOAD_NAMES = ("entries", "seconds", "reads")


def _growth(rng: random.Random, folder: Path, corpus: Corpus) -> Input:
    place, stdin = _given(rng, folder, "load.csv", _load_text(rng, corpus))
    at = rng.choice(("1M,10M", "64", "1e15", "1e300", "1e-300", "3,3", "nan", "0", ",", "k", _word(rng)))
    more = [("--at", at), ("--up-to", rng.choice(("2", "40k", "1e9", "inf", _word(rng)))), ("--database", "8MiB")]
    more.append(("--memory", rng.choice(("a=1MiB", "a=1B", "=1B", "a=0B", _word(rng)))))
    chosen = [word for pair in more if rng.random() < 0.5 for word in pair]
    return Input(("growth", place, *chosen, *_flags(rng)), stdin, check=check_growth)


def _load_text(rng: random.Random, corpus: Corpus) -> bytes:
    """Mostly a load that goes on, at any scale."""
    if rng.random() < 0.3:
        return _csv_text(rng, corpus.curves, LOAD_NAMES)
    scale, total = 10.0 ** rng.choice((0, 0, -6, 4, 8, 12, 300)), [0.0, 0.0, 0.0]
    rows = [",".join(LOAD_NAMES)]
    for _ in range(rng.choice((2, 9, 30, 400))):
        steps = [10.0 ** rng.uniform(-3, 3), 10.0 ** rng.uniform(-8, 4), rng.choice((0.0, 1.0, 1e9)) * rng.random()]
        total = [have + step * scale for have, step in zip(total, steps, strict=True)]
        rows.append(",".join(map(repr, total)))
    return "\n".join(rows).encode()


def check_growth(answer: Any) -> str:
    """Values lie within their intervals."""
    for point in answer["at"]:
        for name in ("rate", "seconds"):
            one = point[name]
            if None in one.values() or not 0 <= one["low"] <= one["value"] <= one["high"]:
                return f"{name} {one}"
    return ""


def check_forecast(answer: Any) -> str:
    """Every value lies within its interval, and none is negative."""
    for point in answer["at"]:
        for name, found in point.items():
            if not isinstance(found, dict) or None in found.values() or not {"value", "low", "high"} <= found.keys():
                continue
            if not 0 <= found["low"] * (1 - 1e-9) <= found["value"] <= found["high"] * (1 + 1e-9):
                return f"{name} {found}"
    return "" if answer["at"] or answer["refused"] or answer["scored"] is not None else "neither forecast nor refused"


# --- MySQL Cluster ---


def _ndb(rng: random.Random, folder: Path, corpus: Corpus) -> Input:
    more: list[str] = []
    config = mutate_text(rng, rng.choice(corpus.configs)) if rng.random() < 0.8 else _odd_config(rng)
    if rng.random() < 0.4:
        more += ["--mysqld", _place(rng, folder, "my.cnf", mutate_text(rng, rng.choice(corpus.option_files)))]
    for name, values in (
        ("--cpus", ("1", "16", "65536", "65537", "-1", _word(rng))),
        ("--memory", ("64GiB", "1B", "9e9GiB", _word(rng))),
        ("--bound", ("mysqld=8-11", "x=0-65535", "=", f"a={_word(rng)}", _word(rng))),
        ("--set", ("ndbd default.DataMemory=1G", f"ndbd default.DataMemory={_word(rng)}", _word(rng))),
        ("--set", (f"ndbd.{_word(rng)}=1", f"{_word(rng)}.NodeId=1", f"mysqld.NodeId={_word(rng)}")),
    ):
        if rng.random() < 0.2:
            more += [name, rng.choice(values)]
    if rng.random() < 0.1:
        more += ["--write", str(folder / "written.ini")]
    path = _place(rng, folder, "config.ini", config)
    return Input(("ndb", path, *more, *_flags(rng)), check=check_ndb)


def _odd_config(rng: random.Random) -> bytes:
    number = rng.choice((10, 300, 5000))
    match rng.randrange(5):
        case 0:
            return "".join(f"[ndbd]\nNodeId={at}\nHostName=h{at}\n" for at in range(number)).encode()
        case 1:
            return ("[ndbd]\n" + "".join(f"Setting{at}={at}\n" for at in range(number))).encode()
        case 2:
            return ("[ndbd]\nThreadConfig=" + ",".join(["ldm={count=4,cpubind=0-9}"] * number) + "\n").encode()
        case 3:
            return ("[ndbd]\n" + "DataMemory=1G\n" * number).encode()
    return ("[mysqld]\n" * number + "[ndbd\n" * number).encode()


def check_ndb(answer: Any) -> str:
    """Counts that are none below zero, and findings with words."""
    wrong = [finding for finding in answer["findings"] if not finding["fact"] or not finding["remedy"]]
    return f"finding {wrong[0]}" if wrong else ""


# --- options ---

OPTIONS = (
    ("case", "show", "WORD"), ("case", "list"), ("case", "run", "WORD", "--set", "WORD"), ("study", "check", "WORD"),
    ("compare", "WORD", "WORD"), ("curve", "WORD"), ("curve", "WORD", "--treatment", "WORD"), ("predict", "WORD"),
    ("predict", "WORD", "--at", "WORD", "--up-to", "WORD"), ("report", "WORD"), ("changes", "list", "WORD"),
    ("changes", "list", "--runs", "WORD"), ("changes", "revert", "--runs", "WORD"), ("ndb", "WORD"), ("WORD",),
    ("limits", "--pid", "WORD"), ("limits", "--over", "WORD", "--pid", "999999999"), ("limits", "--attach", "WORD"),
    ("limits", "--attach", "mariadb:WORD"), ("limits", "--attach", "postgres:WORD"), ("limits", "--attach", "WORD:1"),
    ("limits", "--attach", "mariadb:127.0.0.1:WORD"),
    ("limits", "--attach", "mariadb:127.0.0.1:1", "--user", "WORD"), ("report", "WORD", "--speedscope", "WORD"),
    ("export", "WORD", "--format", "WORD"), ("export", "WORD", "--format", "curve.csv", "--to", "WORD"),
    ("limits", "--attach", "mariadb:127.0.0.1:1", "--option-file", "WORD"), ("case", "run", "WORD", "--study", "WORD"),
    ("limits", "--target", "WORD"), ("capacity", "WORD", "--guess", "WORD", "--hold", "WORD"), ("ladder", "WORD"),
    ("tune", "WORD", "--trials", "WORD", "--resume", "WORD"), ("measure", "WORD", "--runs", "WORD"), ("doctor", "WORD"),
)  # fmt: skip
"""Verbs that would start a server get words that are no study."""


def _options(rng: random.Random, folder: Path, _corpus: Corpus) -> Input:
    words = [word.replace("WORD", _word(rng)) if "WORD" in word else word for word in rng.choice(OPTIONS)]
    return Input((*words, *_flags(rng)))


# --- run folders ---


def _run(rng: random.Random, folder: Path, corpus: Corpus) -> Input:
    source = rng.choice(corpus.runs)
    run = folder / "run"
    shutil.copytree(source, run)
    files = sorted(path for path in run.rglob("*") if path.is_file() and path.suffix != ".html")
    for _ in range(rng.choice((1, 1, 1, 2))):
        _damage(rng, rng.choice(files))
    verb = rng.choice(RUN_VERBS)
    words = tuple(str(run) if word == "RUN" else str(source) if word == "OTHER" else word for word in verb)
    return Input((*words, *_flags(rng)), check=CHECKS.get(verb[0]))


RUN_VERBS = (
    ("report", "RUN"), ("report", "RUN"), ("curve", "RUN"), ("curve", "RUN"), ("predict", "RUN", "--at", "4,8"),
    ("compare", "RUN", "OTHER"), ("compare", "OTHER", "RUN"), ("changes", "list", "RUN"),
    ("export", "RUN", "--format", "openmetrics", "--to", "/dev/null"),
    ("export", "RUN", "--format", "limits.csv", "--to", "/dev/null"),
    ("export", "RUN", "--format", "steps.parquet", "--to", "/dev/null"),
    ("export", "RUN", "--format", "speedscope", "--to", "/dev/null"),
)  # fmt: skip
CHECKS: dict[str, Callable[[Any], str]] = {"curve": check_curve, "predict": check_forecast}


def _damage(rng: random.Random, path: Path) -> None:
    """A file of a run, of the state directory: other bytes, other values, or another kind of file."""
    kind = rng.randrange(40)
    if not path.is_file() or path.is_symlink():
        return
    data = path.read_bytes()
    if kind < 6:
        path.unlink()
        match kind:
            case 0:
                os.mkfifo(path)
            case 1:
                path.mkdir()
            case 2:
                path.symlink_to("/dev/zero")
            case 3:
                path.symlink_to("/nonexistent/x")
        return
    if path.suffix in (".json", ".jsonl") and kind < 32:
        text = data.decode(errors="replace")  # it may have been damaged before
        lines = text.splitlines() if path.suffix == ".jsonl" else [text]
        at = rng.randrange(len(lines)) if lines else 0
        if lines:
            try:
                tree = mutate_tree(rng, json.loads(lines[at]))
            except ValueError:
                tree = nasty(rng)
            if rng.random() < 0.05 and isinstance(tree, dict):
                tree["schema"] = str(tree.get("schema", "")).replace(
                    "/1", rng.choice(("/2", "/0", "/99999", "/²", "/"))
                )
            lines[at] = as_json(rng, tree)
        path.write_bytes(("\n".join(lines) + "\n").encode("utf-8", "surrogatepass"))
    elif path.suffix in (".json", ".jsonl", ".toml", ".folded", ".hlog"):
        path.write_bytes(mutate_text(rng, data.decode("utf-8", "replace")))
    else:
        path.write_bytes(_damaged(rng, data))


def _damaged(rng: random.Random, data: bytes) -> bytes:
    for _ in range(rng.choice((1, 1, 3, 20))):
        at = rng.randrange(len(data) + 1)
        match rng.randrange(5):
            case 0:
                data = data[:at]
            case 1:
                data = data[:at] + rng.randbytes(rng.choice((1, 4, 64))) + data[at + 4 :]
            case 2:
                data = data[:at] + b"\xff\xff\xff\xff" + data[at + 4 :]
            case 3:
                data = data[:at] + data[at : at + 200] + data[at:]
            case 4:
                data = data[at:]
    return data


# --- state ---


def _state(rng: random.Random, folder: Path, corpus: Corpus) -> Input:
    state = folder / "state"
    state.mkdir(mode=0o700)
    for name, text in corpus.state.items():
        if rng.random() < 0.7:
            path = state / name
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            path.write_text(text.replace("SCRATCH", str(folder)))
            if rng.random() < 0.8:
                _damage(rng, path)
    verb = rng.choice((("changes", "list"), ("changes", "revert"), ("case", "list"), ("predict", "POINTS")))
    (folder / "points.csv").write_text(corpus.curves[0])
    words = tuple(str(folder / "points.csv") if word == "POINTS" else word for word in verb)
    return Input((*words, *_flags(rng)))


# --- readers below the command line ---


def _recording(rng: random.Random, folder: Path, corpus: Corpus) -> Input:
    data = rng.choice(corpus.recordings)
    data = _damaged(rng, data) if rng.random() < 0.5 else api.damaged_within(rng, data)
    (folder / "x.lfr").write_bytes(data)
    return Input(call=lambda folder: api.read_recording(folder / "x.lfr"))


def _profile(rng: random.Random, folder: Path, corpus: Corpus) -> Input:
    data = mutate_text(rng, rng.choice(corpus.profiles))
    (folder / "profile.txt").write_bytes(data)
    return Input(call=lambda folder: api.read_profile(folder / "profile.txt"))


def _procfs(rng: random.Random, folder: Path, corpus: Corpus) -> Input:
    name = rng.choice(sorted(corpus.proc))
    data = mutate_text(rng, corpus.proc[name])
    (folder / "file").write_bytes(data)
    return Input(call=lambda folder: api.read_proc(name, (folder / "file").read_bytes()))


def _access_log(rng: random.Random, folder: Path, corpus: Corpus) -> Input:
    data = mutate_text(rng, corpus.access_log)
    data = _damaged(rng, gzip.compress(data)) if rng.random() < 0.2 else data
    (folder / "access.log").write_bytes(data)
    return Input(call=lambda folder: api.read_access_log(folder / "access.log"))


def _driver(rng: random.Random, folder: Path, corpus: Corpus) -> Input:
    kind, whole = rng.choice(sorted(corpus.drivers.items()))
    if kind in ("requests", "seconds", "k6") and rng.random() < 0.5:
        lines = whole.splitlines()
        at = rng.randrange(len(lines))
        lines[at] = as_json(rng, mutate_tree(rng, json.loads(lines[at])))
        data = "\n".join(lines).encode("utf-8", "surrogatepass")
    else:
        data = mutate_text(rng, whole)
    cut_off = rng.random() < 0.3
    return Input(call=lambda folder: api.read_driver(kind, data, cut_off))


def _har(rng: random.Random, folder: Path, corpus: Corpus) -> Input:
    data = as_json(rng, mutate_tree(rng, json.loads(corpus.har))).encode("utf-8", "surrogatepass")
    data = mutate_text(rng, corpus.har) if rng.random() < 0.3 else data
    return Input(call=lambda _: api.read_har(data))


def _change_log(rng: random.Random, folder: Path, corpus: Corpus) -> Input:
    kind, data = rng.choice(sorted(corpus.change_logs.items()))
    if kind == "recorded" and rng.random() < 0.7:
        line = rng.choice(data.decode().splitlines())
        data = as_json(rng, mutate_tree(rng, json.loads(line))).encode("utf-8", "surrogatepass")
    else:
        data = _damaged(rng, data)
    return Input(call=lambda _: api.read_change_log(kind, data))


def _exposition(rng: random.Random, folder: Path, corpus: Corpus) -> Input:
    answers = [mutate_text(rng, text) for text in rng.choices(corpus.expositions, k=rng.choice((1, 1, 2, 3)))]
    for number, data in enumerate(answers):
        (folder / f"{number}.txt").write_bytes(data)
    strict = rng.random() < 0.3
    return Input(call=lambda folder: api.read_expositions(sorted(folder.glob("*.txt")), strict=strict))


SETTINGS_FILES = {
    "toml": '# mine\n[pool]\nsize = 4 # four\nnames = ["a", "b"]\n[[pool.hosts]]\nname = "x"\n',
    "yaml": "# mine\npool: &p\n  size: 4 # four\n  names: [a, b]\nother:\n  <<: *p\n",
    "json": '{"pool": {"size": 4, "names": ["a", "b"]}}',
    "ini": "; mine\ntop = 1\n[pool]\nsize = 4\nempty =\n[other]\nsize: 5\n",
    "properties": "# mine\n! too\npool.size=4\npool.name : a\\\n  b\n",
}
SETTINGS_KEYS = ("pool.size", "pool", "size", "pool.size.x", "new.key", "pool.names", "top", ".", "", "pool..size")


def _settings_file(rng: random.Random, folder: Path, corpus: Corpus) -> Input:
    format_, key = rng.choice(sorted(SETTINGS_FILES)), rng.choice(SETTINGS_KEYS)
    text = mutate_text(rng, SETTINGS_FILES[format_]).decode("utf-8", "replace")
    value = rng.choice((4, 0.5, True, "word", *NASTY_TEXT))
    return Input(call=lambda _: api.read_settings_file(format_, key, value, text))


STAGES = """\
{"stage": "SCAN", "time": 1.5, "order": 0, "done": 10, "entries": 100, "workers": 2, "busy_s": 1.5, "idle_s": 0.5}
{"stage": "APPLY", "process": 7, "waiting": 3, "queue": 10, "current": 1, "ms_per_op": 2.5, "batch": 10, "idle": 0}
{"log": "changes", "read": 100, "applied": 90, "pending": 10, "lag_s": 0.25}
2026/11/25 01:02:00 robinhood@mds1[4101/2] STATS | Idle threads: 3
2026/11/25 01:02:00 robinhood@mds1[4101/2] STATS |  4: DB_APPLY       |  900 |   10 |    3 |      4000 |  2.00 |\
 75.00% batched (avg batch size: 10.0)
2026/11/25 01:02:00 robinhood@mds1[4101/2] STATS | ChangeLog reader #0:
2026/11/25 01:02:00 robinhood@mds1[4101/2] STATS |    records read        = 7000
2026/11/25 01:02:00 robinhood@mds1[4101/2] STATS |        commit speed: 80.00 rec/sec, log/real time ratio: 0.75
"""


def _stages(rng: random.Random, folder: Path, corpus: Corpus) -> Input:
    lines = [mutate_text(rng, line) if rng.random() < 0.3 else line.encode() for line in STAGES.splitlines()]
    if rng.random() < 0.3:
        at = rng.randrange(3)
        lines[at] = as_json(rng, mutate_tree(rng, json.loads(STAGES.splitlines()[at]))).encode("utf-8", "surrogatepass")
    rng.shuffle(lines)
    data = b"\n".join(lines * rng.choice((1, 1, 2, 5)))
    (folder / "stages.jsonl").write_bytes(data if rng.random() < 0.2 else data + b"\n")
    return Input(call=lambda folder: api.read_stages(folder / "stages.jsonl"))


WATCHED = """\
{"n":1,"kind":"head","at_s":1764000000.0,"up_s":1.0,"schema":"loadframe.watch/1","subject":"x","load":"jobs","pids":[7]}
{"n":2,"kind":"sample","at_s":1764000010.0,"up_s":11.0,"values":{"a":0.5},"use":{"pool":0.25},"load":4,"throughput":9.5}
{"n":3,"kind":"unit","at_s":1764000010.0,"up_s":11.0,"response_s":0.25,"late":0.0,"error":"","load":4}
{"n":4,"kind":"model","at_s":1764000011.0,"up_s":12.0,"rows":9,"limits":[{"id":"pool","at_load":{"load":9.5}}],\
"bend":null,"leaks":[]}
{"n":5,"kind":"alarm","at_s":1764000012.0,"up_s":13.0,"alarm":"leak","about":"x","title":"t","evidence":[{"text":"e"}],\
"try":["a"],"at_load":null,"ends_s":{"value":1764009999.0,"low":null,"high":null}}
{"n":6,"kind":"gap","at_s":1764000013.0,"up_s":14.0,"from_s":1.0,"to_s":2.0,"seconds":1.0,"reason":"late","words":"w"}
{"n":7,"kind":"cost","at_s":1764000014.0,"up_s":15.0,"cpu_s":0.5,"children_cpu_s":0.5,"elapsed_s":9.5,"rss_bytes":9}
"""


def _watch(rng: random.Random, folder: Path, corpus: Corpus) -> Input:
    """A day of a watch, damaged; enough samples for a fit now and then, and a compacted file."""
    lines = [mutate_text(rng, line) if rng.random() < 0.2 else line.encode() for line in WATCHED.splitlines()]
    at = rng.randrange(len(lines))
    if rng.random() < 0.5:
        tree = mutate_tree(rng, json.loads(WATCHED.splitlines()[at]))
        lines[at] = as_json(rng, tree).encode("utf-8", "surrogatepass")
    for n in range(rng.choice((0, 0, 90))):
        sample = json.loads(WATCHED.splitlines()[1])
        sample |= {"n": 10 + n, "at_s": 1764000060.0 + 60 * n, "load": n + 1, "use": {"pool": (n + 1) / 200}}
        lines.append(json.dumps(mutate_tree(rng, sample) if rng.random() < 0.05 else sample).encode("utf-8", "replace"))
    data = b"\n".join(lines) + b"\n"
    if rng.random() < 0.2:
        (folder / "2025-11-24.jsonl.zst").write_bytes(mutate_text(rng, data.decode("utf-8", "replace")))
    (folder / "2025-11-24.jsonl").write_bytes(data)
    if rng.random() < 0.5:
        return Input(call=api.read_watch)
    (folder / "state.json").write_bytes(mutate_text(rng, WATCH_STATE))
    return Input(call=api.read_watch_view)


WATCH_STATE = '{"schema":"loadframe.watch-state/1","n":7,"at_s":1764000014.0,"open":[],"told":{}}'


def _hsperfdata(rng: random.Random, folder: Path, corpus: Corpus) -> Input:
    (folder / "7").write_bytes(_damaged(rng, costs.hsperfdata(rng.choice((1, 3, 200)))))
    return Input(call=lambda folder: api.read_hsperfdata(folder / "7"))


# --- plans of load generators ---

PLANS = {
    "jmeter": (
        "plan.jmx",
        "<jmeterTestPlan><hashTree><TestPlan/>${__P(users)}</hashTree></jmeterTestPlan>",
    ),
    "k6": ("plan.js", "export default function () {}\n"),
    "locust": ("plan.py", "from locust import HttpUser\n"),
    "replay": ("plan.har", '{"log": {"entries": []}}'),
}
PLANNED = """\
[study]
name = "shop"
question = "How many?"
[target]
kind = "url"
authorised = true
owner = "us"
[target.settings]
url = "http://127.0.0.1:8080"
paths = "/"
[workload]
kind = "{kind}"
[workload.options]
file = {file}
[load]
axis = "users"
levels = [1, 2]
"""


def _plan(rng: random.Random, folder: Path, corpus: Corpus) -> Input:
    """A study whose plan is damaged, is no regular file, or has an odd path."""
    kind = rng.choice(sorted(PLANS))
    name, text = PLANS[kind]
    place = _place(rng, folder, name, mutate_text(rng, text)) if rng.random() < 0.7 else rng.choice(NASTY_TEXT)
    study = PLANNED.format(kind=kind, file=as_json(rng, place))
    (folder / "study.toml").write_bytes(study.encode("utf-8", "surrogatepass"))
    return Input(("study", "check", str(folder / "study.toml"), *_flags(rng)), check=check_study)


# --- fleets ---

FLEET = """\
[fleet]
name = "laboratory"
ssh_config = "ssh_config"
scheduler = "tls://scheduler.example:8786"
tls = { ca = "ca.pem", certificate = "client.pem", key = "client.key" }
[[host]]
name = "here"
roles = ["driver", "observer"]
here = true
[[host]]
name = "web"
roles = ["target"]
ssh = "us@web.example"
address = "192.0.2.7"
loadframe = "/opt/loadframe"
may_change = ["settings", "machine"]
authorised = true
owner = "the operators"
[[host]]
name = "space"
roles = ["driver"]
by = ["ip", "netns", "exec", "lab"]
address = "2001:db8::7"
authorised = true
owner = "the operators"
[[host]]
name = "one"
roles = ["trial"]
worker = "one"
cpus = "0-1,3"
authorised = true
owner = "the operators"
"""
GREETING = {
    "schema": "loadframe.agent/2", "loadframe": "0.1.0", "python": "3.11.7", "kernel": "6.1", "machine": "x86_64",
    "cpus": 2, "memory_bytes": 1 << 34, "boot": "ba85f981-549d-4156-929f-b5891a7bfdbc", "code": "5a93345a0687",
}  # fmt: skip
ANSWERS = (
    {"id": 1, "answer": {"wall_s": 1764000000.5, "monotonic_s": 7.5}},
    {"id": 2, "answer": {"busy_cpus": 0.5, "steal_cpus": 0.0, "loudest": "x", "loudest_cpus": 0.4}},
    {"beat": True},
    {"id": 3, "error": "KeyError: 'x'"},
    {"under_way": "a of b is being put back."},
)
QUESTIONS = ({"id": 1, "ask": "clock"}, {"beat": True}, {"id": 2, "ask": "sing", "seconds": 2.5})


def _fleet(rng: random.Random, folder: Path, corpus: Corpus) -> Input:
    if rng.random() < 0.5:
        data = mutate_text(rng, FLEET)
    else:
        data = toml_file(mutate_tree(rng, tomllib.loads(FLEET))).encode("utf-8", "surrogatepass")
    path = _place(rng, folder, "fleet.toml", data)
    return Input(call=lambda _: api.read_fleet(Path(path)))


def _messages(rng: random.Random, lines: Sequence[Mapping[str, Any]]) -> bytes:
    """Some of them damaged."""
    texts = [as_json(rng, mutate_tree(rng, line) if rng.random() < 0.4 else line) for line in lines]
    data = [mutate_text(rng, text) if rng.random() < 0.2 else text.encode("utf-8", "surrogatepass") for text in texts]
    return b"\n".join(data) + b"\n" * (rng.random() < 0.9)


def _wire(rng: random.Random, folder: Path, corpus: Corpus) -> Input:
    """Of a host's agent to its coordinator, or of a coordinator to an agent."""
    if rng.random() < 0.3:
        data = _messages(rng, rng.choices(QUESTIONS, k=rng.choice((1, 3, 50))))
        return Input(call=lambda _: api.read_questions(data))
    whole, answers = rng.random() < 0.5, rng.choices(ANSWERS, k=5) if rng.random() < 0.3 else ANSWERS
    greeting = _messages(rng, [GREETING]) if whole else json.dumps(GREETING).encode() + b"\n"
    (folder / "said").write_bytes(greeting + _messages(rng, answers))
    return Input(call=lambda folder: api.read_answers(folder / "said", whole=whole))


# --- servers' answers ---


def _peer(rng: random.Random, _folder: Path, _corpus: Corpus) -> Input:
    kind, way, part = answers.chosen(rng)
    return Input(call=lambda _: answers.ask(kind, way, part, rng))


SURFACES: dict[str, Surface] = {
    "study": Surface(_study, 0.17),
    "set": Surface(_set, 0.20),
    "compare": Surface(_compare, 0.10),
    "curve": Surface(_curve, 0.10),
    "predict": Surface(_predict, 0.08),
    "growth": Surface(_growth, 0.03),
    "observed": Surface(_observed, 0.03),
    "ndb": Surface(_ndb, 0.10),
    "options": Surface(_options, 0.05, confined=True),
    "run": Surface(_run, 0.03),
    "state": Surface(_state, 0.05, confined=True),
    "recording": Surface(_recording, 0.02),
    "profile": Surface(_profile, 0.04),
    "proc": Surface(_procfs, 0.04),
    "access-log": Surface(_access_log, 0.02),
    "har": Surface(_har, 0.02),
    "driver": Surface(_driver, 0.04),
    "exposition": Surface(_exposition, 0.04),
    "change-log": Surface(_change_log, 0.02),
    "settings-file": Surface(_settings_file, 0.03),
    "stages": Surface(_stages, 0.03),
    "watch": Surface(_watch, 0.02),
    "hsperfdata": Surface(_hsperfdata, 0.01),
    "plan": Surface(_plan, 0.02),
    "fleet": Surface(_fleet, 0.03),
    "wire": Surface(_wire, 0.01, waits_s=5.0),
    "peer": Surface(_peer, 0.005, confined=True, waits_s=30.0),
}
"""A server under load is waited for: 30 s for each statement (TIMEOUT_S of targets/*_control.py)."""


def finite(value: Any) -> bool:
    """Whether every number in an answer is finite."""
    if isinstance(value, dict):
        return all(map(finite, value.values()))
    if isinstance(value, list):
        return all(map(finite, value))
    return not isinstance(value, float) or math.isfinite(value)
