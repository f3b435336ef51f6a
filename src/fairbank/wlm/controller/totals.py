"""Totals since the start of the controller, for sdiag and the metrics."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable

from fairbank.report.slurm.sdiag import message_type
from fairbank.wlm.core.effects import StoredRow
from fairbank.wlm.core.events import Caller
from fairbank.wlm.core.jobs import EndedRun, WlmJob
from fairbank.wlm.core.steps.step import EndedStep


class RequestTotal:
    """Number of requests, and the time that they took in microseconds."""

    def __init__(self) -> None:
        self.count = self.microseconds = 0

    def add(self, seconds: float) -> None:
        self.count += 1
        self.microseconds += int(seconds * 1_000_000)


class Totals:
    """Totals of jobs, commits and requests.

    `submitted` and `started` count jobs and tasks of arrays, `ended` and `ended_steps` count runs
    and steps by state, and `requests` counts those of commands by kind and result.
    `request_seconds` are by kind.
    `by_message` and `by_user` have what sdiag lists, by the name and number of each.

    Invariant: `_running` are the jobs that run as of the last rows.
    """

    def __init__(self) -> None:
        self.submitted = self.started = self.commits = 0
        self.ended, self.ended_steps = Counter[str](), Counter[str]()
        self.requests = Counter[tuple[str, str]]()
        self.commit_seconds = 0.0
        self.request_seconds = defaultdict[str, float](float)
        self.by_message = defaultdict[tuple[str, int], RequestTotal](RequestTotal)
        self.by_user = defaultdict[tuple[str, int], RequestTotal](RequestTotal)
        self._running: set[int] | None = None

    def count_rows(self, rows: Iterable[StoredRow]) -> None:
        """Count starts and ends of jobs. The first rows are those that were stored before."""
        is_first, running = self._running is None, self._running or set()
        for table, _, value in rows:
            if isinstance(value, WlmJob):
                run = value.active_run
                if run is None or run.started is None:
                    running.discard(value.number)
                elif value.number not in running:
                    running.add(value.number)
                    self.started += not is_first
            elif table == "runs" and isinstance(value, EndedRun):
                self.ended[value.state] += 1
            elif isinstance(value, EndedStep):
                self.ended_steps[value.state] += 1
        self._running = running

    def count_commit(self, seconds: float) -> None:
        self.commits += 1
        self.commit_seconds += seconds

    def count_request(
        self, kind: str, result: str, seconds: float, *, user: Caller, of: str = ""
    ) -> None:
        """Count a request that took some seconds; the result is `ok`, or the name of the error.

        `of` is the kind of the objects that it is about, where a kind of requests has several.
        """
        self.requests[kind, result] += 1
        self.request_seconds[kind] += seconds
        if kind != "wait":  # it takes as long as the job: no mean would tell anything
            self.by_message[message_type(f"{kind} {of}".strip())].add(seconds)
            self.by_user[user.name, user.uid].add(seconds)
