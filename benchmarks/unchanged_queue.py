"""Unchanged queue of 10,000 jobs: the answer to a request with the number of its last change."""

from __future__ import annotations

from benchmarks.full_controller import COLUMNS, WAITING, waiting_controller
from benchmarks.measure import Figure, Say, Table, at_most
from fairbank.wlm.client import requests
from fairbank.wlm.client.connection import Controller
from fairbank.wlm.stepd.processes import TICKS_PER_SECOND, read_process

REQUESTS, MILLISECONDS = 2_000, 1
ABOUT = (
    f"{WAITING:,} jobs wait, and a program asks for all of them with the change number of its last"
    f" answer, {REQUESTS:,} times a round, over one connection. CPU time of the controller, its"
    " passes included."
)


def measure(*, short: bool, say: Say) -> list[Table]:
    taken = list[float]()
    with waiting_controller(say, WAITING) as (directory, pid), Controller(directory) as controller:
        for _ in range(3 if short else 9):
            taken.append(_round(controller, pid))
    figure = Figure("an unchanged queue", "ms", tuple(taken))
    promise = at_most(figure.name, figure, MILLISECONDS)
    return [Table("Workload manager: unchanged queue", ABOUT, (figure,), (promise,))]


def _round(controller: Controller, pid: int) -> float:
    """Return the CPU time of one answer in milliseconds."""
    change, begun, unchanged = requests.rows(controller, "jobs", COLUMNS).change, _ticks(pid), 0
    while unchanged < REQUESTS:
        answer = requests.rows(controller, "jobs", COLUMNS, change=change)
        if answer.rows is not None:  # a pass has changed a reason
            change, begun, unchanged = answer.change, _ticks(pid), 0
        else:
            unchanged += 1
    return (_ticks(pid) - begun) / TICKS_PER_SECOND / REQUESTS * 1_000


def _ticks(pid: int) -> int:
    process = read_process(pid)
    assert process is not None
    return process.cpu_ticks
