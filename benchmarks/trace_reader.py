"""CPU time of reading a trace of integers, and traces with decimals in half of their lines, beside
the reader of the plain loop.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from itertools import cycle, islice
from math import floor
from pathlib import Path
from time import process_time

import msgspec

from benchmarks import plain_easy
from benchmarks.measure import Figure, Say, Table, Target, ratio, time_each
from fairbank.service.simulation.trace_files import in_file

LINES = 10_000
INTEGERS = "integers"
CPU_TIME, RUN_TIME = DECIMALS = ("decimals in average CPU time", "decimals in run time")
PLACES = {INTEGERS: None, CPU_TIME: 5, RUN_TIME: 3}
ABOUT = f"""{LINES:,} lines, CPU time: integers; every second line with decimals in a column that no
schedule depends on (average CPU time); every second line with decimals in the run time, which is
rounded. The plain loop checks nothing and reads four of the 18 columns, times by `int`, or rounded
if the run time has decimals."""


def table(trace: Path, folder: Path, *, rounds: int, say: Say) -> Table:
    """Measure with the first lines of a trace of integers."""
    say(f"reading {LINES:,} lines with decimals")
    with trace.open() as file:
        lines = list(islice(file, LINES))
    contenders: dict[str, Callable[[], object]] = {}
    for name, place in PLACES.items():
        path = folder / f"{place}.swf"
        path.write_text("".join(map(_with_decimals, lines, cycle((None, place)))))
        time = _rounded if name == RUN_TIME else int
        contenders[f"Fairbank, {name}"] = partial(_read, path)
        contenders[f"a plain loop, {name}"] = partial(plain_easy.read, path, None, time)
    figures = time_each(contenders, rounds, process_time)
    ours, plain = (dict(zip(PLACES, figures[at::2], strict=True)) for at in range(2))
    targets = [
        *(_at_most(f"{name} / integers", ours[name], ours[INTEGERS], 1.1) for name in DECIMALS),
        *(_at_most(f"Fairbank / a plain loop, {name}", ours[name], plain[name]) for name in PLACES),
    ]
    return Table("Reading a trace", ABOUT, tuple(figures), tuple(targets))


def _at_most(name: str, figure: Figure, other: Figure, bound: float | None = None) -> Target:
    return msgspec.structs.replace(ratio(name, figure, other, bound), at_most=True)


def _with_decimals(line: str, place: int | None) -> str:
    """Return a line with decimals in a column that has a value."""
    if place is None or line.startswith(";"):
        return line
    words = line.split()
    words[place] += "" if words[place] == "-1" else ".25"
    return " ".join(words) + "\n"


def _rounded(word: str) -> int:
    return floor(float(word) + 0.5)


def _read(path: Path) -> None:
    with in_file(path) as (trace, _):
        deque(trace.jobs, maxlen=0)
