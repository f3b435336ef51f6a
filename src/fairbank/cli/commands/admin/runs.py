"""Commands `hold`, `charge` and `release`: runs that no agent reports, such as without Slurm.

They send the reports that an agent sends, to the same route, with the same refusals.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from fairbank.cli.commands.admin.run_checks import (
    amount_warnings,
    check_options,
    membership_warnings,
)
from fairbank.cli.framework.command import Command
from fairbank.cli.framework.host import uid_of
from fairbank.cli.framework.options import (
    add_clusters,
    add_option,
    add_writing,
    job_of_cluster,
    number,
)
from fairbank.cli.framework.selectors import find_cluster
from fairbank.cli.framework.write import (
    LARGE,
    WriteRequest,
    allocation_name,
    planned_entries,
    write,
)
from fairbank.core.errors import Conflict, InvalidInput, NotFound
from fairbank.core.ids import JOB_ID_MAX
from fairbank.core.time import parse_limit
from fairbank.core.units import parse_su
from fairbank.report.cells import plain
from fairbank.report.columns import instant_of

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Sequence

    from fairbank.cli.framework.context import Context
    from fairbank.cli.framework.parser import Parser
    from fairbank.report.columns import Row


def _add_run(parser: Parser) -> None:
    """Add what names a run."""
    about = (
        "the job's number, or CLUSTER/JOBID; the scheduler's own, or any other that is used once"
    )
    add_option(parser, "job JOBID", about, type=partial(job_of_cluster, number))
    add_clusters(parser, "the job's cluster, of the bank's settings (default: the only one)")
    about = "time of submission, where a number has been used again (default: the start)"
    add_option(parser, "--submitted TIME", about)


def _add_job(parser: Parser, *, required: bool) -> None:
    """Add what the hold of a run has; a charge needs it only without a hold."""
    unless = "" if required else "; without a hold"
    start = "now" if required else "that of its hold; without a hold it is needed"
    about = f"the project, by its account{unless}"
    add_option(parser, "-A, --account PROJECT", about, required=required)
    add_option(parser, "-u, --user USER", "who runs it, by name or number (default: you)")
    about = "partition, which gives the prices and the resource (default: the only one)"
    add_option(parser, "-p, --partition NAME", about)
    add_option(parser, "-q, --qos NAME", "QOS, whose factor the price has")
    add_option(parser, "-S, --starttime TIME", f"start of the run (default: {start})")
    price = parser.add_mutually_exclusive_group(required=required)
    about = "what the run has, such as cpu=8,mem=16G,gres/gpu=1: the bank prices it"
    add_option(price, "--tres TRES", about)
    about = "the price itself in SU, such as 12.5, or minutes: 90m"
    add_option(price, "--amount AMOUNT", about)


def _run(context: Context, options: Namespace) -> tuple[Row, Row | None]:
    """Return the cluster, and the run of this job that the bank has, if any.

    That is the one submitted at --submitted, else the newest.
    """
    if options.job > JOB_ID_MAX:
        raise InvalidInput(
            f"{options.job} is too large a job number",
            field="JOBID",
            remedy=f"at most {JOB_ID_MAX}",
        )
    cluster = find_cluster(context)
    rows = context.rows("/job", {"job_id": options.job, "cluster": cluster["name"]})
    submitted = context.moment(options.submitted, "--submitted")
    if submitted is not None:
        rows = [row for row in rows if instant_of(row["submitted"]) == int(submitted)]
    return cluster, max(rows, key=lambda row: int(row["id"]), default=None)


def _report(context: Context, options: Namespace, cluster: Row, run: Row | None) -> dict[str, Any]:
    """Return the fields of a report that name the run and its price.

    Repeated, a command sends the same report again: what was not typed is as the bank has it.
    """
    start = context.moment(getattr(options, "starttime", None), "--starttime")
    if run is not None:
        known = {
            "submitted": instant_of(run["submitted"]),
            "restart": run["restart"],
            "owner_uid": run["owner_uid"],
            "account": run["account"],
            "partition": run["partition"],
            "start": instant_of(run["start"]),
            "tres": run["tres"],
            "qos": run["qos"],
        }
    else:
        begin = context.bank_time if start is None else int(start)
        submitted = context.moment(options.submitted, "--submitted")
        known = {
            "submitted": begin if submitted is None else int(submitted),
            "owner_uid": uid_of(options.user) if options.user else context.me(),
            "partition": options.partition or _only_partition(options, cluster),
            "start": begin,
        }
    typed = {
        "account": getattr(options, "account", None),
        "partition": getattr(options, "partition", None),
        "qos": getattr(options, "qos", None),
        "start": None if start is None else int(start),
        "tres": getattr(options, "tres", None),
    }
    if getattr(options, "user", None):
        typed["owner_uid"] = uid_of(options.user)
    if getattr(options, "amount", None) is not None:
        typed["amount"] = parse_su(options.amount, field="--amount", least=0)
    fields = known | {name: value for name, value in typed.items() if value is not None}
    fields = {name: value for name, value in fields.items() if value is not None}
    return {"cluster": cluster["name"], "job_id": options.job, **fields}


def _only_partition(options: Namespace, cluster: Row) -> str:
    names = [str(row["name"]) for row in cluster["partitions"]]
    if len(names) == 1:
        return names[0]
    raise InvalidInput(
        f"cluster {plain(cluster['name'])} has {len(names)} partitions",
        field="--partition",
        remedy=f"name one with -p: {plain(', '.join(names[:8]))}",
    )


def _send(
    context: Context,
    verb: str,
    report: dict[str, Any],
    run: Row | None,
    *,
    question: str | None = None,
    needs_yes: bool = False,
    warnings: Sequence[str] = (),
) -> int:
    """Send a report and print the result."""
    request = WriteRequest("POST", "/job", report, question, needs_yes=needs_yes, keyed=False)
    if run is None:
        warnings = [*warnings, *membership_warnings(context, report)]
    sentence = partial(_sentence, context, verb, report, run)
    return write(context, "fairbank.granted/1", request, sentence, warnings)


def _sentence(
    context: Context, verb: str, report: dict[str, Any], run: Row | None, answer: Row
) -> str:
    """Return `charge of 4 SU for job 17 of cluster lab, allocation 1 (chem/cpu); ...`."""
    su = context.format.su_text
    if answer["allocation"] is None:
        return f"{verb} of job {report['job_id']}: nothing is held, as the bank only observes"
    row = context.one(f"/alloc/{answer['allocation']}")
    is_free = verb == "charge" and "released" in answer
    verb = "release" if is_free else verb
    parts = [
        f"{verb} of {su(answer['amount'])} for job {report['job_id']} of cluster"
        f" {report['cluster']}, {allocation_name(row)}"
    ]
    if is_free:
        parts.append("it cost nothing, so nothing is charged")
    held = 0 if run is None or answer["again"] else run["held"] - answer["amount"]
    if verb == "charge" and held > 0:
        parts.append(f"{su(held)} of its hold returned")
    if answer["written_off"]:
        parts.append(f"{su(answer['written_off'])} beyond the credit written off")
    return "; ".join([*parts, f"remaining {context.format.su_text(answer['remaining'])}"])


# --- hold ---


def _add_hold(parser: Parser) -> None:
    _add_run(parser)
    add_option(parser, "-t, --time LIMIT", "time limit: 12:00:00, 2-00:00:00", required=True)
    _add_job(parser, required=True)
    add_writing(parser, reason="optional", keyed=False)


def _hold(context: Context, options: Namespace) -> int:
    cluster, run = _run(context, options)
    if run is not None and run["state"] != "held" and options.submitted is None:
        raise Conflict(
            f"job {options.job} of cluster {plain(cluster['name'])} was {run['state']} already;"
            f" it started {context.format.moment(instant_of(run['start']))}",
            field="JOBID",
            remedy="for another job with this number name its submission: --submitted TIME",
        )
    report = _report(context, options, cluster, run)
    if "amount" in report:
        report.pop("tres", None)
    limit = parse_limit(options.time, field="--time")
    report = {"do": "hold", **report, "time_limit": limit}
    check_options(context, options, cluster, report)
    return _send(context, "hold", report, run)


HOLD = Command(
    "hold the highest cost of a job that starts without an agent; for superusers and agents",
    (
        "{} 17 -A chem -t 12:00:00 --tres cpu=8,mem=16G",
        "{} 17 -A chem -t 12:00:00 --tres cpu=8 -u ayla -p long --dry-run",
        "{} 18 -A chem -t 2:00:00 --amount 12.5",
    ),
    _add_hold,
    _hold,
)


# --- charge and release ---


def _add_charge(parser: Parser) -> None:
    _add_run(parser)
    add_option(parser, "-E, --endtime TIME", "end of the run (default: now)")
    about = "how it ended, as Slurm's states (default: COMPLETED); NODE_FAIL costs nothing"
    add_option(parser, "--state STATE", about, default="COMPLETED")
    _add_job(parser, required=False)
    add_writing(parser, reason="optional", keyed=False)


def _charge(context: Context, options: Namespace) -> int:
    cluster, run = _run(context, options)
    if run is None:
        _require_job(options, cluster)
    report = _report(context, options, cluster, run)
    if "amount" not in report and "tres" not in report:
        raise InvalidInput(
            f"the hold of job {options.job} was an amount, which gives no price of its time",
            field="--amount",
            remedy="name what the job used: --amount 12.5",
        )
    end = context.moment(options.endtime, "--endtime")
    if end is None and run is not None and run["ended"]:
        end, elapsed = str(instant_of(run["ended"])), run["elapsed"]
    else:
        end = str(context.bank_time) if end is None else end
        elapsed = max(0, int(end) - report["start"])
    ending = {"end": int(end), "elapsed": elapsed, "state": options.state}
    report = {"do": "complete", **report, **ending}
    check_options(context, options, cluster, report)
    if options.state in cluster["free_states"]:
        return _send(context, "release", report, run)
    entries = _planned_charge(context, options, report)
    beyond = sum(row["details"].get("written_off", 0) for row in entries)
    amount = beyond + sum(row["amount"] for row in entries if row["kind"] == "charge")
    warnings = amount_warnings(context, report["owner_uid"], amount, run, entries)
    is_large = amount >= LARGE
    question = None
    if warnings or beyond or is_large:
        su = context.format.su_text
        what = f"charge of {su(amount)} for job {options.job}"
        lost = [f"! {su(beyond)} of it exceed the credit and are written off"] if beyond else []
        question = f"{'. '.join([what, *warnings, *lost])}. Continue?"
    return _send(
        context,
        "charge",
        report,
        run,
        question=question,
        needs_yes=is_large or beyond > 0,
        warnings=warnings,
    )


def _planned_charge(
    context: Context, options: Namespace, report: dict[str, Any]
) -> list[dict[str, Any]]:
    """Return the entries of a charge whose amount or TRES were typed; empty if the bank has it
    already, or if it prices what the hold names.

    Raises the bank's refusal.
    """
    if options.amount is None and options.tres is None:
        return []
    request = WriteRequest("POST", "/job", report, keyed=False)
    return planned_entries(context, request, in_words=False)


def _require_job(options: Namespace, cluster: Row) -> None:
    """Check that a charge without a hold has all that the hold would have had.

    Raises NotFound: most likely the number is wrong.
    """
    needed = {
        "-A": options.account,
        "-S": options.starttime,
        "--tres or --amount": options.tres or options.amount,
    }
    missing = [name for name, value in needed.items() if value is None]
    if missing:
        raise NotFound(
            f"job {options.job} has no hold on cluster {plain(cluster['name'])}",
            field="JOBID",
            remedy=f"list holds with: fairbank jobs --running -a; or charge it without a hold,"
            f" with {', '.join(missing)}",
        )


CHARGE = Command(
    "charge a job that ended, and return the rest of its hold; for superusers and agents",
    ("{} 17", "{} 17 -E 2026-11-21T16:00 --state FAILED", "{} 18 --amount 9.5 --dry-run"),
    _add_charge,
    _charge,
)


def _add_release(parser: Parser) -> None:
    _add_run(parser)
    add_writing(parser, reason="optional", keyed=False)


def _release(context: Context, options: Namespace) -> int:
    cluster, run = _run(context, options)
    if run is None:
        raise NotFound(
            f"job {options.job} has no hold on cluster {plain(cluster['name'])}",
            field="JOBID",
            remedy="list holds with: fairbank jobs --running -a",
        )
    report = _report(context, options, cluster, run)
    report.pop("tres", None)
    end = max(context.bank_time, report["start"]) if not run["ended"] else instant_of(run["ended"])
    ending = {"end": end, "elapsed": 0, "state": run["outcome"] or "CANCELLED"}
    return _send(context, "release", {"do": "complete", **report, **ending}, run)


RELEASE = Command(
    "return the hold of a job that did not run; for superusers and agents",
    ("{} 17", '{} 17 --reason "never started"', "{} 17 --cluster lab --dry-run"),
    _add_release,
    _release,
)
