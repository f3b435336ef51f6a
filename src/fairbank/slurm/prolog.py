"""Asking the bank from PrologSlurmctld, where Slurm loads no plug-in of ours: one job, one question, and what Slurm is told of the answer.

Ends are not told from here: reconciling charges them from accounting. Its limits are in docs/howto/install-next-to-slurm.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from fairbank.core import ids
from fairbank.core.errors import Malformed, Trouble, Unreachable
from fairbank.rest.bodies.answers import ReportAnswer
from fairbank.rest.client import Client
from fairbank.slurm.commands import SlurmCommands
from fairbank.slurm.frames import shortened
from fairbank.slurm.parsers.held_jobs import COMMENT_PREFIX
from fairbank.slurm.parsers.starting_job import StartingJob
from fairbank.slurm.report_results import ReportResult, judged, no_bank

_MAY_RUN = frozenset(
    {ReportResult.GRANTED, ReportResult.TAKEN, ReportResult.RESOLVED, ReportResult.OVER}
)
"""Its price is held, or it is settled already: Slurm was restarted, and asks once more."""


class PrologCall(msgspec.Struct, frozen=True, kw_only=True):
    """What Slurm says to a PrologSlurmctld in its environment, all of it its own words. `name` is what its commands know the job by: the
    number alone would mean the whole array for one of its tasks."""

    cluster: str
    name: str
    job_id: int
    restart: int
    uid: int
    account: str
    partition: str


def read_environment(environ: Mapping[str, str]) -> PrologCall:
    """Raises Malformed, naming the variable, when this is no PrologSlurmctld."""

    def whole(name: str, usual: str | None = None) -> int:
        said = environ.get(name, usual)
        if said is None or not (said.isascii() and said.isdigit()):
            raise Malformed(
                "it is not a whole number",
                field=name,
                remedy="name this command in slurm.conf: PrologSlurmctld",
            )
        return int(said)

    array = "SLURM_ARRAY_JOB_ID"
    return PrologCall(
        name=f"{whole(array)}_{whole('SLURM_ARRAY_TASK_ID')}"
        if array in environ
        else f"{whole('SLURM_JOB_ID')}",
        cluster=ids.name(environ.get("SLURM_CLUSTER_NAME", ""), field="SLURM_CLUSTER_NAME"),
        job_id=whole("SLURM_JOB_ID"),
        restart=whole("SLURM_JOB_RESTART_COUNT", "0"),
        uid=whole("SLURM_JOB_UID"),
        account=environ.get("SLURM_JOB_ACCOUNT", ""),
        partition=environ.get("SLURM_JOB_PARTITION", ""),
    )


def hold_request(call: PrologCall, job: StartingJob) -> dict[str, Any]:
    """What the bank is asked. Raises Malformed for a job without a finite limit."""
    if job.limit_seconds is None:
        raise Malformed(
            "this job has no time limit, so nobody knows what it may cost",
            field="TimeLimit",
            remedy="-t HH:MM:SS",
        )
    return {
        "do": "hold",
        "cluster": call.cluster,
        "job_id": call.job_id,
        "submitted": job.submitted,
        "restart": call.restart,
        "owner_uid": call.uid,
        "account": call.account,
        "partition": call.partition,
        **({"qos": job.qos} if job.qos else {}),
        "start": job.start,
        "time_limit": job.limit_seconds,
        "tres": job.tres,
    }


def refusal_text(answer: ReportAnswer) -> str | None:
    """None lets the job run; else why it may not, for people. Raises Unreachable where the answer says nothing of the job."""
    judgement = judged(answer)
    if judgement.came in _MAY_RUN:
        return None
    if judgement.came is ReportResult.NOT_ALLOWED:
        remedy = answer.remedy or "agents = [UID OF SlurmUser] in the bank's settings"
        raise Unreachable(f"we may not report runs: {answer.detail}", field="server", remedy=remedy)
    if (
        judgement.came is ReportResult.NEVER_BEGAN
    ):  # nobody would pay for it; put back, it comes again as another run
        return "this start of the job was given up before. Try to release the job, or to submit it again"
    return judgement.text


class Prolog:
    """One question. `open_`: what becomes of a job when the bank cannot be asked: it runs, or it is refused."""

    def __init__(self, slurm: SlurmCommands, client: Client, *, is_open: bool) -> None:
        self._slurm, self._client, self._open = slurm, client, is_open

    def run(self, environ: Mapping[str, str]) -> str | None:
        """None when the job runs; else what its owner is told. A refused job is held in the queue, or ended where somebody waits for it.

        Raises what Slurm's commands raise: a prolog that fails is tried again by Slurm, every two minutes.
        """
        call = read_environment(environ)
        job = self._slurm.starting_job(call.name)
        try:
            why = refusal_text(self._answer(hold_request(call, job)))
        except Malformed as bad:
            why = f"{bad.message}. Try {bad.remedy}"
        except Trouble:
            if self._open:
                return None
            why = (
                "the allocation bank cannot be asked just now; release the job, or try again later"
            )
        if why is not None:
            why = shortened(f"{call.account or 'no account'}: {why}")
            self._refuse(call.name, f"{COMMENT_PREFIX}{why}", batch=job.batch)
        return why

    def _refuse(self, name: str, text: str, *, batch: bool) -> None:
        self._slurm.comment(name, text)
        try:
            if batch:
                return self._slurm.requeue_and_hold(name)
        except Unreachable:
            pass  # --no-requeue: it cannot wait
        return self._slurm.end(name, text)

    def _answer(self, body: Mapping[str, Any]) -> ReportAnswer:
        return only_answer(self._client.post("/job/bulk", {"reports": [dict(body)]}).get("data"))


def only_answer(rows: object) -> ReportAnswer:
    """What the bank says to the one report. Raises Unreachable where this is not one answer to a report."""
    try:
        (answer,) = msgspec.convert(rows, list[ReportAnswer])
    except (msgspec.ValidationError, ValueError) as bad:
        raise no_bank(bad, field="server") from bad
    return answer
