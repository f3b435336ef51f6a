"""Jobs of the embedded workload manager."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from fairbank.cli.commands.queue.jobs import QUOTE_SECONDS, JobInfo, unknown_job

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairbank.cli.framework.context import Context, Row

_STORED = ["user", "state", "exit_code", "std_out", "std_err", "account", "partition"]
_QUEUED = [*_STORED, "reason", "cpus", "limit", "requested_tres", "flag", "job_id", "array_job"]
_QUEUED += ["task"]


class EmbeddedManager:
    """Embedded workload manager of a cluster, in its directory."""

    def __init__(self, directory: str) -> None:
        from fairbank.wlm.client.connection import Controller

        self._directory, self._controller = directory, Controller(directory)

    def submit(self, options: Sequence[str], script: bytes) -> str:
        """Submit a job, and return its name. Raises the FairbankError that refuses it.

        Args:
            options: words of sbatch.
            script: the batch script.
        """
        return str(self._submit(options, script).job)

    def expected_start(self, options: Sequence[str], script: bytes) -> int | None:
        """Return when a job would start; None if that is not known. Arguments: `submit`."""
        start: int | None = self._submit(["--test-only", *options], script).start
        return start

    def _submit(self, options: Sequence[str], script: bytes) -> Any:
        from fairbank.wlm.client import requests
        from fairbank.wlm.commands.job_options import read_words
        from fairbank.wlm.commands.job_submission import job_to_submit

        job = job_to_submit("sbatch", read_words("sbatch", options), script)
        return requests.submit(self._controller, job)

    def jobs(self, name: str) -> list[JobInfo]:
        """Return a job, or the tasks of an array. Raises NotFound."""
        from fairbank.wlm.client import requests

        wanted = {"jobs": [name], "tasks": True}
        answer = requests.rows(self._controller, "jobs", _QUEUED, matching=wanted)
        jobs = [_queued(dict(zip(_QUEUED, row, strict=True))) for row in answer.rows or ()]
        if not jobs:  # the queue forgets a job some minutes after its end
            columns, wanted = ["label", "step", *_STORED], {"jobs": [name]}
            answer = requests.rows(self._controller, "accounting", columns, matching=wanted)
            jobs = [JobInfo(label, *row) for label, step, *row in answer.rows or () if not step]
        if not jobs:
            raise unknown_job(name)
        return jobs

    def cancel(self, name: str) -> None:
        """Cancel a job. Raises the FairbankError that refuses it."""
        from fairbank.wlm.client import requests

        for result in requests.change_jobs(self._controller, "cancel", [name]):
            if result.error is not None:
                raise result.error

    def warn(self, pid: int, number: int, seconds: int) -> tuple[str, int | None]:
        """Have a process signalled some seconds before the end of its job.

        Return the job, and its end by the time limit; None: it has no limit.
        """
        answer = self._controller.request("warn-process", pid=pid, signal=number, before=seconds)
        return answer["job"], answer["ends"]

    def quote(self, context: Context, request: Row) -> Row | None:
        """Return the quote of the cluster's own bank; None if it has none. Raises FairbankError."""
        from fairbank.rest.client import Client
        from fairbank.rest.client.address import UNIX, Address

        socket = os.path.join(self._directory, "bank", "fairbank.sock")
        if not os.path.exists(socket):
            return None
        bank = Client(Address(UNIX, socket), timeout_seconds=QUOTE_SECONDS)
        quote: Row = bank.post("/quote", request)["data"]
        return quote


def _queued(row: dict[str, Any]) -> JobInfo:
    job, array, task = (row.pop(name) for name in ("job_id", "array_job", "task"))
    row["state"] = row.pop("flag") or row["state"]
    name = str(job) if task is None else f"{array}_{task}"
    return JobInfo(name=name, tres=row.pop("requested_tres"), **row)
