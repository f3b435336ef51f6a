"""PrologSlurmctld script: reading the job from Slurm, the request to the bank, and the decision on
its answer.
"""

from __future__ import annotations

import msgspec
import pytest

from fairbank.core.errors import InvalidInput, Unavailable
from fairbank.rest.schemas.answers import Granted, RefusalDetails, ReportAnswer, RunResolution
from fairbank.slurm.parsers.squeue import STARTING_FORMAT, StartingJob, read_starting_job
from fairbank.slurm.prolog import PrologCall, hold_request, read_environment, refusal_of

ENVIRONMENT = {
    "SLURM_CLUSTER_NAME": "lab",
    "SLURM_JOB_ID": "7",
    "SLURM_JOB_UID": "60601",
    "SLURM_JOB_ACCOUNT": "wg_astro",
    "SLURM_JOB_PARTITION": "cpu",
    "SLURM_JOB_RESTART_COUNT": "1",
    "SLURM_JOB_NAME": "x\nSLURM_JOB_ACCOUNT=rich",
}
CALL = PrologCall(
    cluster="lab", name="7", job_id=7, restart=1, uid=60_601, account="wg_astro", partition="cpu"
)
JOB = StartingJob(
    submitted=1_795_278_540,
    start=1_795_278_542,
    limit_seconds=600,
    batch=True,
    qos="normal",
    tres="cpu=2,mem=2000M,node=1",
)

GRANTED = ReportAnswer(
    status=201, granted=Granted(entry=1, amount=60, allocation=7, run=1, available=30)
)


def squeue_line(limit: str = "10:00", batch: str = "1") -> str:
    """Return a line as squeue prints it."""
    cells = (
        "2026-11-21T16:29:00",
        "2026-11-21T16:29:02",
        limit,
        batch,
        "normal",
        "cpu=2,mem=2000M,node=1,billing=2",
    )
    widths = [int(column.partition(":")[2]) for column in STARTING_FORMAT.split(",")]
    return "".join(f"{cell:<{width}}" for cell, width in zip(cells, widths, strict=True)) + "\n"


@pytest.mark.parametrize(
    ("limit", "seconds"),
    [
        ("5:00", 300),
        ("59:59", 3_599),
        ("10:00:00", 36_000),
        ("1-00:30:00", 88_200),
        ("UNLIMITED", None),
    ],
)
def test_starting_job_is_read(limit: str, seconds: int | None) -> None:
    job = read_starting_job(squeue_line(limit))
    assert job.limit_seconds == seconds
    assert (job.tres, job.qos, job.batch) == ("cpu=2,mem=2000M,node=1", "normal", True)
    assert job.start - job.submitted == 2
    assert read_starting_job(squeue_line(batch="0")).batch is False
    assert read_starting_job(squeue_line(batch="2")).batch is True  # its first node failed


@pytest.mark.parametrize(
    "text",
    [
        "",
        squeue_line() * 2,
        squeue_line("soon"),
        "slurm_load_jobs error: Invalid job id specified\n",
    ],
)
def test_invalid_squeue_line_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        read_starting_job(text)


def test_job_owner_and_nodes_come_from_slurms_environment() -> None:
    assert read_environment(ENVIRONMENT) == CALL
    assert read_environment({**ENVIRONMENT, "SLURM_JOB_RESTART_COUNT": "0"}).restart == 0
    task = {
        "SLURM_ARRAY_JOB_ID": "7",
        "SLURM_ARRAY_TASK_ID": "3",
    }  # Slurm gives the last task the number of the array
    assert read_environment({**ENVIRONMENT, **task}).name == "7_3"
    with pytest.raises(InvalidInput) as error:
        read_environment({**ENVIRONMENT, "SLURM_JOB_UID": "root"})
    assert error.value.field == "SLURM_JOB_UID"


def test_hold_request_of_a_job() -> None:
    report = hold_request(CALL, JOB)
    assert (report.submitted, report.restart, report.time_limit, report.tres) == (
        1_795_278_540,
        1,
        600,
        "cpu=2,mem=2000M,node=1",
    )
    with pytest.raises(InvalidInput, match="no time limit"):
        hold_request(
            CALL,
            StartingJob(
                submitted=1, start=1, limit_seconds=None, batch=True, qos=None, tres="cpu=1"
            ),
        )


def refusal_answer(reason: str) -> ReportAnswer:
    figures = {"requested": 60, "available": 30, "shortfall": 30}
    nobody = dict.fromkeys(("allocation", "project", "resource", "owner", "run", "entry"))
    details = msgspec.convert(
        {"reason": reason, "remedies": ["-t 0:30"], **figures, **nobody}, RefusalDetails
    )
    return ReportAnswer(status=402, detail="not enough credit", refusal=details)


def test_answers_of_the_bank_are_understood() -> None:
    assert refusal_of(GRANTED) is None
    assert refusal_of(refusal_answer("INSUFFICIENT_CREDIT")) == "not enough credit. Remedy: -t 0:30"
    assert (
        refusal_of(refusal_answer("HOLD_EXISTS")) is None
    )  # a repeated prolog, after a restart of Slurm
    assert (
        refusal_of(ReportAnswer(status=400, detail="no partition x", remedy="there are: cpu"))
        == "no partition x. Remedy: there are: cpu"
    )


@pytest.mark.parametrize("status", [401, 403])
def test_permission_error_counts_as_unavailable(status: int) -> None:
    with pytest.raises(Unavailable, match="we may not report runs: not for you"):
        refusal_of(ReportAnswer(status=status, detail="not for you"))


@pytest.mark.parametrize(
    ("state", "elapsed", "runs"),
    [
        ("charged", 60, True),
        ("released", 60, True),
        ("lapsed", None, True),
        ("released", 0, False),
        ("released", None, False),
    ],
)
def test_closed_run_starts_unless_it_never_began(
    state: str, elapsed: int | None, runs: bool
) -> None:
    """A run that was released before it began would be paid by no one. As in the agent, the job is
    requeued and starts as another run.
    """
    resolution = msgspec.convert(
        {"state": state, "outcome": None, "elapsed": elapsed}, RunResolution
    )
    refusal = refusal_answer("RUN_CLOSED")
    details = refusal.refusal
    assert details is not None
    answer = msgspec.structs.replace(
        refusal, refusal=msgspec.structs.replace(details, resolution=resolution)
    )
    message = refusal_of(answer)
    assert (message is None) is runs
    assert message is None or message.startswith("this start of the job was given up before")
