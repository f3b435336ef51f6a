"""Requests to the controller that programs make; `Controller.request` sends any other.

`protocol/commands.py` has all requests, with their fields and answers. Jobs are named as in Slurm:
"7", "7_3", "7_[1-3,5]". Times are seconds since 1970.
"""

from binascii import a2b_base64, b2a_base64
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from fairbank.core.errors import FairbankError
from fairbank.wlm.client.connection import ANSWER_SECONDS, VERSION, Controller, error_of

Filter = Mapping[str, Any]
"""What rows or jobs must have: `users`, `partitions`, `states`, ..., each a list of names."""


class JobToSubmit(NamedTuple):
    """Job as it is submitted. Without a script, srun or salloc runs steps in it.

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
    """Id of an accepted job. With --test-only: when and where it would start.

    `start` is None if that is not foreseen, and `reason` is then why the job would wait.
    """

    job: int
    start: int | None = None
    reason: str = ""
    nodes: Sequence[str] = ()
    cpus: int = 0
    partition: str = ""


class StepToStart(NamedTuple):
    """Step as srun asks for it.

    `options` are those of srun by long name, as text. `arguments` are those of all tasks,
    `programs` those of single ranks. `environment` has entries NAME=value. `input` is a file that
    the tasks open; empty: srun gives it, to the task `input_rank` or to all. `terminal` are rows
    and columns of a terminal for the task 0; empty: none. `key` is of this step alone, for a
    `repeated` request, whose first answer was lost.
    """

    options: Mapping[str, str]
    arguments: Sequence[str]
    directory: str
    programs: Mapping[int, Sequence[str]] = {}
    environment: Sequence[bytes] = ()
    umask: int = 0o022
    limits: Mapping[str, int] = {}
    input: str = ""
    input_rank: int | None = None
    terminal: Sequence[int] = ()
    submit_line: str = ""
    key: str = ""
    repeated: bool = False


class StepNode(NamedTuple):
    """Node of a step: name, ranks of its tasks, directory of its step daemon.

    `is_running` is False if the controller knows that all of these tasks have ended.
    """

    node: str
    ranks: Sequence[int]
    directory: str
    is_running: bool


class StartedStep(NamedTuple):
    """Step that the controller has created."""

    job: int
    step: int
    nodes: Sequence[StepNode]

    def __str__(self) -> str:
        return f"StepId={self.job}.{self.step}"


class FoundStep(NamedTuple):
    """Step, its state, RUNNING or how it has ended, and its status of wait(2)."""

    step: StartedStep
    state: str
    status: int


class AwaitedJob(NamedTuple):
    """State of a job that was waited for; its `environment` when it runs, else empty.

    `step` is that which was requested with the wait, if it is created.
    """

    state: str
    reason: str
    environment: Mapping[str, str]
    step: StartedStep | None = None


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
    coded = {
        "script": b2a_base64(job.script, newline=False).decode(),
        "environment": b2a_base64(b"\0".join(job.environment), newline=False).decode(),
    }
    return SubmissionAnswer(**controller.request("submit", **{**job._asdict(), **coded}))


def wait_for_start(
    controller: Controller, job: int, seconds: float | None = None, step: StepToStart | None = None
) -> AwaitedJob:
    """Wait until a job runs or has ended, at most for some seconds; None: as long as it takes.

    `step` is created when it starts.
    """
    # The answer may come a moment after the time is over.
    silence = None if seconds is None else seconds + ANSWER_SECONDS
    wanted: dict[str, Any] = {}
    if step is not None:
        nested = {"request": "create-step", "version": VERSION, **_step_fields(job, step)}
        wanted["step"] = nested
    answer = controller.request("wait-start", seconds=silence, job=job, within=seconds, **wanted)
    created = answer.pop("step")
    return AwaitedJob(**answer, step=None if created is None else _started_step(job, created))


def complete(controller: Controller, job: int, status: int, step: int | None = None) -> None:
    """End a job without a script, with a status of wait(2), after its `step` if there is one."""
    controller.request("complete", job=job, status=status, step=step)


def create_step(controller: Controller, job: int, step: StepToStart) -> StartedStep:
    """Create a step of a running job. Raises the FairbankError that refuses it.

    Unavailable with the field `busy`: it must wait, such as for the cores that other steps have.
    """
    return _started_step(job, controller.request("create-step", **_step_fields(job, step)))


def _step_fields(job: int, step: StepToStart) -> dict[str, Any]:
    environment = b2a_base64(b"\0".join(step.environment), newline=False).decode()
    return {**step._asdict(), "job": job, "environment": environment}


def _started_step(job: int, answer: Mapping[str, Any]) -> StartedStep:
    nodes = [StepNode(**node) for node in answer["nodes"]]
    return StartedStep(job, answer["step"], nodes)


def find_step(controller: Controller, job: str, step: int | None = None) -> FoundStep:
    """Return a step of a job, also one that has ended; None: the only one that runs."""
    answer = controller.request("step-state", job=job, step=step)
    nodes = [StepNode(**node) for node in answer["nodes"]]
    step_of_job = StartedStep(answer["job"], answer["step"], nodes)
    return FoundStep(step_of_job, answer["state"], answer["status"])


def end_step(
    controller: Controller, step: StartedStep, signal: int = 0, *, lost_node: str = ""
) -> None:
    """End a step, or send its tasks a signal if it is not 0.

    `lost_node` is the node whose step daemon srun has lost; empty: none.
    """
    controller.request("end-step", job=step.job, step=step.step, signal=signal, lost_node=lost_node)


def own(controller: Controller, job: int) -> None:
    """Go on for the parent of this process, the srun of a job or of a step of it."""
    controller.close()  # the connection is that of the parent
    controller.request("own", job=job)


def change_jobs(
    controller: Controller, request: str, jobs: Sequence[str], **fields: Any
) -> list[JobResult]:
    """Make a request about several jobs, and return the result of each.

    The requests are cancel, hold, uhold, release, requeue, suspend, resume, top, notify and
    update-job.
    """
    return [
        JobResult(item["job"], None if item["error"] is None else error_of(item["error"]))
        for item in controller.request(request, jobs=jobs, **fields)["results"]
    ]


def rows(
    controller: Controller,
    of: str,
    columns: Sequence[str],
    *,
    matching: Filter | None = None,
    change: int | None = None,
    seconds: float | None = ANSWER_SECONDS,
) -> Rows:
    """Return rows of a table; all pages of it.

    Args:
        controller: the connection.
        of: jobs, nodes, partitions, reservations, licenses, accounting, priorities, shares,
            associations, users, qos or steps.
        columns: names of fields of the line class in report.slurm.
        matching: what the rows must have.
        change: number of the last change that is known. If it is the last one, there are no rows
            in the answer.
        seconds: how long the controller may be silent; None: as long as it needs.
    """
    fields: dict[str, Any] = {
        "of": of,
        "columns": columns,
        "filter": matching or {},
        "change": change,
        "seconds": seconds,
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


def settings(controller: Controller) -> dict[str, str]:
    """Return the settings by name, as `scontrol show config` prints them."""
    return dict(controller.request("config")["settings"])


def script(controller: Controller, job: str) -> bytes:
    """Return the batch script of a job."""
    return a2b_base64(controller.request("script", job=job)["script"])


def wait(controller: Controller, job: int) -> int:
    """Wait until a job has ended. Return its wait status, for arrays the highest."""
    status: int = controller.request("wait", seconds=None, job=job)["status"]
    return status
