"""EASY as one plain loop in Python over a list of pending jobs: the baseline of the simulator.

It checks, counts and shows nothing. The rules are those of the how-to page on simulation, so the
mean wait agrees to the last digit.
"""

from __future__ import annotations

import gzip
import sys
from bisect import insort
from collections.abc import Callable
from heapq import heappop, heappush
from pathlib import Path


def read(
    path: Path, processors: int | None, time: Callable[[str], int] = int
) -> tuple[list[tuple[int, int, int, int]], int]:
    """Return submit time, run time, size and estimate of each job, and the number of processors.

    `time` converts the times. `int` reads no decimals.
    """
    jobs = []
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as lines:
        for line in lines:
            if line.startswith(";"):
                if "MaxProcs:" in line and processors is None:
                    processors = int(line.split(":")[1])
                continue
            word = line.split()
            run, size = time(word[3]), int(word[7])
            if size <= 0:
                size = int(word[4])
            if run >= 0 and 0 < size <= (processors or 0):
                run = max(run, 1)
                jobs.append((time(word[1]), run, size, max(time(word[8]), run)))
    return jobs, processors or 0


def easy(jobs: list[tuple[int, int, int, int]], free: int) -> list[int]:
    """Return the start of each job."""
    starts = [0] * len(jobs)
    ends: list[tuple[int, int]] = []
    expected: list[tuple[int, int, int]] = []
    queue: list[int] = []
    coming = 0

    def start(number: int) -> None:
        starts[number] = now
        _, run, size, estimate = jobs[number]
        heappush(ends, (now + run, number))
        insort(expected, (now + estimate, size, number))

    while coming < len(jobs) or ends:
        now = min(
            ends[0][0] if ends else sys.maxsize,
            jobs[coming][0] if coming < len(jobs) else sys.maxsize,
        )
        while ends and ends[0][0] == now:
            number = heappop(ends)[1]
            free += jobs[number][2]
            expected.remove((starts[number] + jobs[number][3], jobs[number][2], number))
        while coming < len(jobs) and jobs[coming][0] == now:
            queue.append(coming)
            coming += 1
        while queue and jobs[queue[0]][2] <= free:
            free -= jobs[queue[0]][2]
            start(queue.pop(0))
        if len(queue) > 1 and free:
            spare, shadow = free - jobs[queue[0]][2], now
            for end, size, _ in expected:
                if spare >= 0 and end > shadow:
                    break
                spare += size
                shadow = end
            waiting = [queue[0]]
            for number in queue[1:]:
                _, _, size, estimate = jobs[number]
                if size <= free and (now + estimate <= shadow or size <= spare):
                    if now + estimate > shadow:
                        spare -= size
                    free -= size
                    start(number)
                else:
                    waiting.append(number)
            queue = waiting
    return starts


def main() -> None:
    """`python -m benchmarks.plain_easy TRACE [PROCS]`: print the mean wait in seconds."""
    jobs, processors = read(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else None)
    starts = easy(jobs, processors)
    print(sum(start - job[0] for start, job in zip(starts, jobs, strict=True)) / len(jobs))


if __name__ == "__main__":
    main()
