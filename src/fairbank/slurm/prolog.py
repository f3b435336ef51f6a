"""Request for a hold from PrologSlurmctld, for a Slurm that does not load Fairbank's plug-in.

Ends are not reported from here: `fairbank reconcile` charges them from accounting.
docs/howto/install-next-to-slurm.md has the limits of this way.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from fairbank.agent.protocol import one_line
from fairbank.agent.reports.report import CLUSTER_DENIED, ResultKind, result_of
from fairbank.cluster.run_report import HoldReport, encode_report
from fairbank.core import ids
from fairbank.core.errors import FairbankError, InvalidInput, Unavailable
from fairbank.rest.client import Client
from fairbank.rest.client.bulk_reports import post_reports
from fairbank.rest.schemas.answers import ReportAnswer
from fairbank.slurm.commands import SlurmCommands
from fairbank.slurm.parsers.squeue import COMMENT_PREFIX, StartingJob

_MAY_RUN = frozenset(
    {ResultKind.GRANTED, ResultKind.HOLD_EXISTS, ResultKind.LAPSED, ResultKind.CLOSED}
)
"""Results with which the job runs: its price is held, or it is settled already, since a restarted
slurmctld asks again."""


class PrologCall(msgspec.Struct, frozen=True, kw_only=True):
    """Environment of a PrologSlurmctld.

    `name` is the job for Slurm's commands. For a task of an array the number alone would mean the
    whole array.
    """

    cluster: str
    name: str
    job_id: int
    restart: int
    uid: int
    account: str
    partition: str


def read_environment(environ: Mapping[str, str]) -> PrologCall:
    """Read the environment.

    Raises InvalidInput, naming the variable, outside of a PrologSlurmctld.
    """

    def number(name: str, default: str | None = None) -> int:
        text = environ.get(name, default)
        if text is None or not (text.isascii() and text.isdigit()):
            raise InvalidInput(
                "it is not a whole number",
                field=name,
                remedy="name this command in slurm.conf: PrologSlurmctld",
            )
        return int(text)

    array = "SLURM_ARRAY_JOB_ID"
    return PrologCall(
        name=(
            f"{number(array)}_{number('SLURM_ARRAY_TASK_ID')}"
            if array in environ
            else f"{number('SLURM_JOB_ID')}"
        ),
        cluster=ids.cluster(environ.get("SLURM_CLUSTER_NAME", ""), field="SLURM_CLUSTER_NAME"),
        job_id=number("SLURM_JOB_ID"),
        restart=number("SLURM_JOB_RESTART_COUNT", "0"),
        uid=number("SLURM_JOB_UID"),
        account=environ.get("SLURM_JOB_ACCOUNT", ""),
        partition=environ.get("SLURM_JOB_PARTITION", ""),
    )


def hold_request(call: PrologCall, job: StartingJob) -> HoldReport:
    """Return the report that requests a hold.

    Raises InvalidInput for a job without a time limit.
    """
    if job.limit_seconds is None:
        raise InvalidInput(
            "this job has no time limit, so its price is unknown",
            field="TimeLimit",
            remedy="-t HH:MM:SS",
        )
    return HoldReport(
        cluster=call.cluster,
        job_id=call.job_id,
        submitted=job.submitted,
        restart=call.restart,
        owner_uid=call.uid,
        account=call.account,
        partition=call.partition,
        qos=job.qos or None,
        start=job.start,
        time_limit=job.limit_seconds,
        tres=job.tres,
    )


def refusal_of(answer: ReportAnswer) -> str | None:
    """Return the refusal for the job's owner, or None if the job may run.

    Raises Unavailable if the answer says nothing about the job.
    """
    result = result_of(answer)
    if result.kind in _MAY_RUN:
        return None
    if result.kind in CLUSTER_DENIED:
        remedy = answer.remedy or "agents = [UID OF SlurmUser] in the bank's settings"
        raise Unavailable(f"we may not report runs: {answer.detail}", field="server", remedy=remedy)
    if result.kind is ResultKind.NEVER_STARTED:
        # Its hold is released, so this run would not be charged. Requeued, it is another run.
        return (
            "this start of the job was given up before. "
            "Try to release the job, or to submit it again"
        )
    return result.text


def run_prolog(
    slurm: SlurmCommands, client: Client, environ: Mapping[str, str], *, fail_open: bool
) -> str | None:
    """Decide on a starting job: return None if it runs, else the refusal.

    A refused job is held in the queue, or ended if it is not a batch job.

    Args:
        slurm: commands of the cluster.
        client: the client of a bank where SlurmUser may report runs.
        environ: environment of the PrologSlurmctld.
        fail_open: let jobs run while the bank does not answer; else they are refused.

    Raises:
        FairbankError: a command of Slurm failed. Slurm retries a prolog that fails every two
            minutes.
    """
    call = read_environment(environ)
    job = slurm.starting_job(call.name)
    try:
        report = encode_report(hold_request(call, job))
        (answer,) = post_reports(client, [report], field="server")
        refusal = refusal_of(answer)
    except InvalidInput as error:
        refusal = f"{error.message}. Remedy: {error.remedy}"
    except FairbankError:
        if fail_open:
            return None
        refusal = "the allocation bank does not answer now; release the job, or try again later"
    if refusal is None:
        return None
    refusal = one_line(f"{call.account or 'no account'}: {refusal}")
    text = f"{COMMENT_PREFIX}{refusal}"
    slurm.comment(call.name, text)
    try:
        if job.batch:
            slurm.requeue_and_hold(call.name)
            return refusal
    except Unavailable:
        pass  # a job with --no-requeue cannot wait
    slurm.end(call.name, text)
    return refusal
