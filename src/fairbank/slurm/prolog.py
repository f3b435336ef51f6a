"""Asking the bank from PrologSlurmctld, where Slurm loads no plug-in of ours: one job, one question, and what Slurm is told of the answer.

Ends are not told from here: reconciling charges them from accounting. Its limits are in docs/howto/install-next-to-slurm.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from fairbank.agent.protocol.codec import one_line
from fairbank.agent.reports.results import ResultKind, read_answers, result_of
from fairbank.core import ids
from fairbank.core.errors import FairbankError, InvalidInput, Unavailable
from fairbank.rest.client import Client
from fairbank.rest.schemas.job import ReportAnswer
from fairbank.slurm.commands import SlurmCommands
from fairbank.slurm.parsers.held_jobs import MARK
from fairbank.slurm.parsers.starting_job import Starting

_RUNS = frozenset(
    {ResultKind.GRANTED, ResultKind.HOLD_EXISTS, ResultKind.LAPSED, ResultKind.CLOSED}
)
"""Its price is held, or it is settled already: Slurm was restarted, and asks once more."""


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """What Slurm says to a PrologSlurmctld in its environment, all of it its own words. `name` is what its commands know the job by: the
    number alone would mean the whole array for one of its tasks."""

    cluster: str
    name: str
    job_id: int
    restart: int
    uid: int
    account: str
    partition: str


def call_of(environ: Mapping[str, str]) -> Call:
    """Raises InvalidInput, naming the variable, when this is no PrologSlurmctld."""

    def whole(name: str, usual: str | None = None) -> int:
        said = environ.get(name, usual)
        if said is None or not (said.isascii() and said.isdigit()):
            raise InvalidInput(
                "it is not a whole number",
                field=name,
                remedy="name this command in slurm.conf: PrologSlurmctld",
            )
        return int(said)

    array = "SLURM_ARRAY_JOB_ID"
    return Call(
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


def hold(call: Call, job: Starting) -> dict[str, Any]:
    """What the bank is asked. Raises InvalidInput for a job without a finite limit."""
    if job.limit_seconds is None:
        raise InvalidInput(
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


def refusal_of(answer: ReportAnswer) -> str | None:
    """None lets the job run; else why it may not, for people. Raises Unavailable where the answer says nothing of the job."""
    result = result_of(answer)
    if result.kind in _RUNS:
        return None
    if result.kind is ResultKind.FORBIDDEN:
        remedy = answer.remedy or "agents = [UID OF SlurmUser] in the bank's settings"
        raise Unavailable(f"we may not report runs: {answer.detail}", field="server", remedy=remedy)
    if (
        result.kind is ResultKind.NEVER_STARTED
    ):  # nobody would pay for it; put back, it comes again as another run
        return "this start of the job was given up before. Try to release the job, or to submit it again"
    return result.text


class Prolog:
    """One question. `open_`: what becomes of a job when the bank cannot be asked: it runs, or it is refused."""

    def __init__(self, slurm: SlurmCommands, client: Client, *, open_: bool) -> None:
        self._slurm, self._client, self._open = slurm, client, open_

    def ask(self, environ: Mapping[str, str]) -> str | None:
        """None when the job runs; else what its owner is told. A refused job is held in the queue, or ended where somebody waits for it.

        Raises what Slurm's commands raise: a prolog that fails is tried again by Slurm, every two minutes.
        """
        call = call_of(environ)
        job = self._slurm.starting(call.name)
        try:
            why = refusal_of(self._answer(hold(call, job)))
        except InvalidInput as bad:
            why = f"{bad.message}. Try {bad.remedy}"
        except FairbankError:
            if self._open:
                return None
            why = (
                "the allocation bank cannot be asked just now; release the job, or try again later"
            )
        if why is not None:
            why = one_line(f"{call.account or 'no account'}: {why}")
            self._refuse(call.name, f"{MARK}{why}", batch=job.batch)
        return why

    def _refuse(self, name: str, text: str, *, batch: bool) -> None:
        self._slurm.comment(name, text)
        try:
            if batch:
                return self._slurm.send_back(name)
        except Unavailable:
            pass  # --no-requeue: it cannot wait
        return self._slurm.end(name, text)

    def _answer(self, body: Mapping[str, Any]) -> ReportAnswer:
        return only_answer(self._client.post("/job/bulk", {"reports": [dict(body)]}).get("data"))


def only_answer(rows: object) -> ReportAnswer:
    """Return the bank's answer to the one report. Raises Unavailable if it is no such answer."""
    (answer,) = read_answers(rows, 1, field="server")
    return answer
