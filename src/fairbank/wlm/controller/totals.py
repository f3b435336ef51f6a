"""Totals since the start of the controller, for sdiag and the metrics."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable

from fairbank.wlm.core.effects import StoredRow
from fairbank.wlm.core.jobs import EndedRun, WlmJob


class Totals:
    """Totals of jobs, commits and requests.

    `submitted` and `started` count jobs and tasks of arrays, `ended` counts runs by state, and
    `requests` counts those of commands by kind and result. `request_seconds` are by kind.

    Invariant: `_running` are the jobs that run as of the last rows.
    """

    def __init__(self) -> None:
        self.submitted = self.started = self.commits = 0
        self.ended = Counter[str]()
        self.requests = Counter[tuple[str, str]]()
        self.commit_seconds = 0.0
        self.request_seconds = defaultdict[str, float](float)
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
        self._running = running

    def count_commit(self, seconds: float) -> None:
        self.commits += 1
        self.commit_seconds += seconds

    def count_request(self, kind: str, result: str, seconds: float) -> None:
        """Count a request: its kind, and `ok` or the name of the error."""
        self.requests[kind, result] += 1
        self.request_seconds[kind] += seconds
