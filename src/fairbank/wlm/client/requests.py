"""Requests to the controller: one function for each.

Jobs are named as in Slurm: "7", "7_3", "7_[1-3,5]". Times are seconds since 1970.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from fairbank.core.errors import FairbankError
from fairbank.wlm.client.connection import Controller, error_of

Filter = Mapping[str, Any]
"""What rows or jobs must have: `users`, `partitions`, `states`, ..., each a list of names."""


class JobToSubmit(NamedTuple):
    """Job as it is submitted.

    `options` are those of sbatch by long name, as text. `environment` has entries NAME=value.
    `limits` are soft limits by the names of setrlimit(2) without RLIMIT_, -1 for none.
    `script_name` is the path of the script; empty for --wrap and standard input. `submit_line` is
    the command line, for sacct.
    """

    script: bytes
    options: Mapping[str, str]
    directory: str
    environment: Sequence[bytes] = ()
    arguments: Sequence[str] = ()
    umask: int = 0o022
    limits: Mapping[str, int] = {}
    host: str = ""
    script_name: str = ""
    submit_line: str = ""
    command: str = "sbatch"


class SubmissionAnswer(NamedTuple):
    """Id of an accepted job. With --test-only: when and where it would start, None if unknown."""

    job: int
    start: int | None = None
    nodes: Sequence[str] = ()
    cpus: int = 0
    partition: str = ""


class JobResult(NamedTuple):
    """Result of a request for one job; `error` is None if it was carried out."""

    job: str
    error: FairbankError | None


class Rows(NamedTuple):
    """Rows of a table, and the number of its last change. None instead of rows: unchanged."""

    change: int
    columns: Sequence[str] = ()
    rows: Sequence[Sequence[Any]] | None = None
    now: int = 0
    cluster: str = ""


def submit(controller: Controller, job: JobToSubmit) -> SubmissionAnswer:
    """Submit a job. Raises the FairbankError that refuses it."""
    answer = controller.request(
        "submit",
        options=dict(job.options),
        script=b64encode(job.script).decode(),
        arguments=list(job.arguments),
        environment=b64encode(b"\0".join(job.environment)).decode(),
        directory=job.directory,
        umask=job.umask,
        limits=dict(job.limits),
        host=job.host,
        script_name=job.script_name,
        submit_line=job.submit_line,
        command=job.command,
    )
    known = {name: answer[name] for name in SubmissionAnswer._fields if name in answer}
    return SubmissionAnswer(**known)


def cancel(
    controller: Controller,
    jobs: Sequence[str] = (),
    *,
    matching: Filter | None = None,
    signal: int | None = None,
    batch: bool = False,
) -> list[JobResult]:
    """Cancel jobs, or send them a signal.

    Args:
        controller: the connection.
        jobs: the jobs; none: all that match the filter.
        matching: only jobs that match this.
        signal: number of a signal instead of the cancellation.
        batch: only the batch script gets the signal.
    """
    filters = dict(matching or {})
    return _results(
        controller, "cancel", jobs=list(jobs), filter=filters, signal=signal, batch=batch
    )


def hold(controller: Controller, jobs: Sequence[str]) -> list[JobResult]:
    """Hold pending jobs. Only an operator can release those that an operator holds."""
    return _results(controller, "hold", jobs=list(jobs))


def uhold(controller: Controller, jobs: Sequence[str]) -> list[JobResult]:
    """Hold pending jobs so that their owner can release them."""
    return _results(controller, "uhold", jobs=list(jobs))


def release(controller: Controller, jobs: Sequence[str]) -> list[JobResult]:
    """Release held jobs."""
    return _results(controller, "release", jobs=list(jobs))


def requeue(
    controller: Controller, jobs: Sequence[str], *, held: bool = False, special: bool = False
) -> list[JobResult]:
    """Requeue jobs. `held`: they are held then; `special`: with the state SPECIAL_EXIT."""
    return _results(controller, "requeue", jobs=list(jobs), held=held, special=special)


def top(controller: Controller, jobs: Sequence[str]) -> list[JobResult]:
    """Move jobs before the other pending jobs of their user."""
    return _results(controller, "top", jobs=list(jobs))


def notify(controller: Controller, jobs: Sequence[str], text: str) -> list[JobResult]:
    """Write a line to the error output of running jobs."""
    return _results(controller, "notify", jobs=list(jobs), text=text)


def update_job(
    controller: Controller, jobs: Sequence[str], fields: Mapping[str, str]
) -> list[JobResult]:
    """Change fields of jobs, by their names in scontrol: TimeLimit, Priority, ..."""
    return _results(controller, "update-job", jobs=list(jobs), fields=dict(fields))


def update_node(controller: Controller, nodes: str, fields: Mapping[str, str]) -> None:
    """Change State, Reason, Weight, ... of the nodes of a hostlist."""
    controller.request("update-node", nodes=nodes, fields=dict(fields))


def create(controller: Controller, entity: str, fields: Mapping[str, str]) -> str:
    """Create a `partition` or a `reservation`. Return its name."""
    name: str = controller.request("create", entity=entity, fields=dict(fields))["name"]
    return name


def update(controller: Controller, entity: str, fields: Mapping[str, str]) -> None:
    """Change a `partition` or a `reservation`."""
    controller.request("update", entity=entity, fields=dict(fields))


def delete(controller: Controller, entity: str, fields: Mapping[str, str]) -> None:
    """Delete a `partition` or a `reservation`."""
    controller.request("delete", entity=entity, fields=dict(fields))


def rows(
    controller: Controller,
    of: str,
    columns: Sequence[str],
    *,
    matching: Filter | None = None,
    change: int | None = None,
) -> Rows:
    """Return rows of a table; all pages of it.

    Args:
        controller: the connection.
        of: jobs, nodes, partitions, reservations, licenses, accounting, priorities, shares,
            associations, users or qos.
        columns: names of fields of the line class in report.slurm.
        matching: what the rows must have.
        change: number of the last change that is known. If it is the last one, there are no rows
            in the answer.
    """
    fields: dict[str, Any] = {
        "of": of,
        "columns": list(columns),
        "filter": dict(matching or {}),
        "change": change,
    }
    answer = controller.request("rows", **fields, after=None)
    if answer.get("unchanged"):
        return Rows(answer["change"])
    lines = answer["rows"]
    after = answer["after"]
    while after is not None:
        page = controller.request("rows", **fields, after=after)
        lines += page["rows"]
        after = page["after"]
    return Rows(answer["change"], answer["columns"], lines, answer["now"], answer["cluster"])


def configuration(controller: Controller) -> list[tuple[str, str]]:
    """Return names and values of the settings, as `scontrol show config` prints them."""
    return [(name, value) for name, value in controller.request("config")["settings"]]


def script(controller: Controller, job: str) -> bytes:
    """Return the batch script of a job."""
    return b64decode(controller.request("script", job=job)["script"])


def wait(controller: Controller, job: int) -> int:
    """Wait until a job has ended. Return its wait status, for arrays the highest."""
    status: int = controller.request("wait", seconds=None, job=job)["status"]
    return status


def statistics(controller: Controller) -> dict[str, Any]:
    """Return the figures of the controller, as `sdiag` prints them."""
    return controller.request("statistics")


def ping(controller: Controller) -> dict[str, Any]:
    """Return release, host, process id and seconds since the start of the controller."""
    return controller.request("ping")


def processes(controller: Controller, job: str) -> list[list[Any]]:
    """Return process id, job and step of each process of a job."""
    pids: list[list[Any]] = controller.request("processes", job=job)["processes"]
    return pids


def job_of_process(controller: Controller, pid: int) -> dict[str, Any]:
    """Return the job to which a process belongs, and when it ends."""
    return controller.request("job-of-process", pid=pid)


def check(controller: Controller) -> dict[str, Any]:
    """Return the `release` of the controller, and its `checks` with `what`, `ok` and `remedy`."""
    return controller.request("check")


def reconfigure(controller: Controller) -> list[str]:
    """Read the settings again. Return what the operator should know."""
    notes: list[str] = controller.request("reconfigure")["notes"]
    return notes


def set_debug(controller: Controller, level: str, nodes: str = "") -> None:
    """Set the debug level of the controller, or of the daemons of some nodes (a hostlist)."""
    controller.request("set-debug", level=level, nodes=nodes)


def shutdown(controller: Controller) -> None:
    """End the controller. Jobs go on."""
    controller.request("shutdown")


def _results(controller: Controller, name: str, **fields: Any) -> list[JobResult]:
    return [
        JobResult(item["job"], None if item["error"] is None else error_of(item["error"]))
        for item in controller.request(name, **fields)["results"]
    ]
