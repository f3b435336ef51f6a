"""Command `fairbank refund`: return the charge of a job to its allocation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairbank.cli.framework.command import Command
from fairbank.cli.framework.options import add_clusters, add_writing, number
from fairbank.cli.framework.write import LARGE, WriteRequest, moved, post, tell
from fairbank.core.errors import Conflict, InvalidInput, NotFound
from fairbank.core.units import parse_su
from fairbank.report.cells import plain

if TYPE_CHECKING:
    from argparse import Namespace

    from fairbank.cli.framework.context import Context, Row
    from fairbank.cli.framework.parser import Parser


def add(parser: Parser) -> None:
    parser.add_argument(
        "job",
        metavar="JOBID",
        type=number,
        help="the job's number on its cluster; with --id the bank's number of its run",
    )
    parser.add_argument(
        "amount",
        metavar="AMOUNT",
        nargs="?",
        help="SU: 100, 12.5, or minutes: 90m (default: all that is left of its charge)",
    )
    add_clusters(parser, "the job's cluster, where several have that number")
    parser.add_argument(
        "--id", action="store_true", help="JOBID is the number in the column ID of fairbank jobs"
    )
    add_writing(parser)


def run(context: Context, options: Namespace) -> int:
    amount = None if options.amount is None else parse_su(options.amount, field="AMOUNT")
    job = (
        context.one(f"/job/{options.job}")
        if options.id
        else _the_run(context, options.job, options.cluster)
    )
    row = context.one(f"/alloc/{job['allocation']}")
    back = job["charged"] - job["refunded"] if amount is None else amount
    what = (
        f"refund of {context.format.su(back)} SU of job {job['job_id']} to allocation {row['id']}"
        f" ({row['account']}/{row['resource']})"
    )
    before = (
        f"! {context.format.su(job['refunded'])} of its {context.format.su(job['charged'])} SU were"
        " refunded before"
    )
    warnings = [f"{before}; this is one refund more"] if job["refunded"] else []
    body = (
        {"comment": options.reason}
        if amount is None
        else {"amount": amount, "comment": options.reason}
    )
    question = f"{what}{''.join(f'. {line}' for line in warnings)}. Go on?"
    asks = back >= LARGE or warnings  # a second refund of one job is often a mistake
    answer = post(
        context, WriteRequest("POST", f"/job/{job['id']}/refund", body, question if asks else None)
    )
    return tell(
        context,
        "fairbank.refund/1",
        answer,
        moved(context, answer, what),
        [] if answer and answer.get("again") else warnings,
    )


def _the_run(context: Context, job_id: int, cluster: str | None) -> Row:
    """Return the charged run of this job; the newest if no run has anything to refund.

    Raises NotFound, Conflict while it runs, InvalidInput if there are several.
    """
    found = context.rows("/job", {"job_id": job_id, "cluster": cluster})
    if not found:
        where = "" if cluster is None else f" of cluster {plain(cluster)}"
        raise NotFound(
            f"there is no job {job_id}{where} that you may see",
            field="JOBID",
            remedy="list them with: fairbank jobs -a",
        )
    runs = [run for run in found if run["charged"] > run["refunded"]]
    if not runs and any(run["state"] == "held" for run in found):
        raise Conflict(
            f"job {job_id} still runs, so nothing was charged yet",
            field="JOBID",
            remedy="wait until it has ended; what it does not use comes back",
        )
    if not runs:
        return max(found, key=lambda run: int(run["id"]))
    if len(runs) > 1:
        which = ", ".join(
            f"{run['id']} ({plain(run['cluster'])}, started {run['start']})" for run in runs[:10]
        )
        raise InvalidInput(
            f"job {job_id} was charged {len(runs)} times: {which}",
            field="JOBID",
            remedy="name one run: --id NUMBER",
        )
    return runs[0]


COMMAND = Command(
    "refund a job's charge or a part of it; repeated, it refunds again, unless under one key; for"
    " staff",
    (
        'fairbank refund 812222 --reason "node n031 failed"',
        'fairbank refund 812222 60 --reason "half of it" --idempotency-key incident-17',
        'fairbank refund --id 9913377 --reason "node n031 failed"',
    ),
    add,
    run,
)
