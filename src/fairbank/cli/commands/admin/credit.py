"""Commands that move credit: `deposit`, `withdraw`, `transfer`, `refund` and `undo`.

Nothing is deleted: `undo` reverses an entry by another entry.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from fairbank.cli.framework.command import Command
from fairbank.cli.framework.host import user_name
from fairbank.cli.framework.options import (
    add_allocation,
    add_clusters,
    add_option,
    add_writing,
    job_of_cluster,
    number,
)
from fairbank.cli.framework.selectors import (
    AllocationWords,
    SeveralClusters,
    allocation_to_change,
    named_allocation,
)
from fairbank.cli.framework.write import (
    LARGE,
    WriteRequest,
    allocation_name,
    planned_entries,
    post,
    show_result,
    write,
)
from fairbank.core.errors import Conflict, InvalidInput, NotFound
from fairbank.core.units import WORTH, counted, parse_su
from fairbank.report.cells import plain
from fairbank.report.columns import instant_of

if TYPE_CHECKING:
    from argparse import Namespace

    from fairbank.cli.framework.context import Context
    from fairbank.cli.framework.parser import Parser
    from fairbank.report.columns import Row

SOURCE, TARGET = AllocationWords("FROM", "-A"), AllocationWords("TO", "--to")
AMOUNT = "SU: 100, 12.5, 20k; or minutes: 90m"


def _amount(context: Context, minutes: int) -> str:
    """Return `400 SU`, or `0.02 SU (1 minute)` if two decimals do not give the exact amount."""
    form = context.format
    exact = "" if minutes * 100 % WORTH[form.units] == 0 else f" ({counted(minutes, 'minute')})"
    return f"{form.su_text(minutes)}{exact}"


def _moved(context: Context, what: str, answer: Row, of: str = "") -> str:
    """Return `deposit of 400 SU into ...; remaining 662 SU`."""
    return f"{what}; remaining {context.format.su_text(answer['remaining'])}{of}"


def _add_change(parser: Parser) -> None:
    add_allocation(parser)
    add_option(parser, "amount AMOUNT", AMOUNT)
    add_writing(parser)


def _change(verb: str, direction: str, sign: int, context: Context, options: Namespace) -> int:
    """Post a deposit, or with `sign` -1 a withdrawal."""
    row = allocation_to_change(context)
    amount = parse_su(options.amount, field="AMOUNT")
    form = context.format.for_sentences
    noun = "withdrawal" if sign < 0 else verb
    what = f"{noun} of {_amount(context, amount)} {direction} {allocation_name(row)}"
    question = (
        f"{what}: remaining {form.su(row['remaining'])} ->"
        f" {form.su(row['remaining'] + sign * amount)}. Continue?"
    )
    request = WriteRequest(
        "POST",
        f"/alloc/{row['id']}/{verb}",
        {"amount": amount},
        question if sign < 0 or amount >= LARGE else None,
        needs_yes=sign < 0,
    )
    answer = post(context, request)
    # Staff may deposit all the same: to cover a late charge, or before they reopen it.
    warnings = _unusable(context, row) if sign > 0 else []
    return show_result(
        context, "fairbank.granted/1", answer, partial(_moved, context, what), warnings
    )


def _unusable(context: Context, row: Row) -> list[str]:
    """Return a warning if the allocation cannot be used, and the remedy."""
    match row["state"]:
        case "frozen":
            state, remedy = "is frozen", f"thaw {row['id']}"
        case "ended":
            ended = context.format.last_day(instant_of(row["end"]))
            state, remedy = f"ended {ended}", f"reopen {row['id']} --end"
        case _:
            return []
    return [
        f"! allocation {row['id']} {state}: no job can use this credit before"
        f" fairbank alloc {remedy}"
    ]


DEPOSIT = Command(
    "put credit into an allocation; for staff",
    (
        '{} 1042 20k --reason "committee 2026-11"',
        '{} -A chem_qmc -r cpu 20k --reason "committee 2026-11" --dry-run',
        '{} 1042 90m --reason "correction" --idempotency-key corr-17',
    ),
    _add_change,
    partial(_change, "deposit", "into", 1),
)

WITHDRAW = Command(
    "take credit out of an allocation; for staff",
    (
        '{} 1042 500 --reason "moved to next year"',
        '{} 1042 500 --reason "moved to next year" --dry-run',
        '{} 1042 30m --reason "correction"',
    ),
    _add_change,
    partial(_change, "withdraw", "out of", -1),
)


def _add_transfer(parser: Parser) -> None:
    about = "the number of the allocation that gives; or name it with -A and -r"
    add_option(parser, "source FROM", about, nargs="?", type=number)
    about = "the number of the allocation that takes; or name it with --to and -r"
    add_option(parser, "target TO", about, nargs="?", type=number)
    add_option(parser, "amount AMOUNT", AMOUNT)
    add_option(parser, "-A, --account PROJECT", "the project that gives, by its Slurm account")
    add_option(parser, "--to PROJECT", "the project that takes, by its Slurm account")
    add_option(parser, "-r, --resource NAME", "the resource of both, if they have several")
    add_writing(parser)


def _transfer(context: Context, options: Namespace) -> int:
    # The command has two allocations, so an error names the one that does not exist.
    source = named_allocation(context, options.source, options.account, SOURCE)
    target = named_allocation(context, options.target, options.to, TARGET)
    amount = parse_su(options.amount, field="AMOUNT")
    what = (
        f"transfer of {_amount(context, amount)} from {allocation_name(source)}"
        f" to {allocation_name(target)}"
    )
    request = WriteRequest(
        "POST",
        f"/alloc/{source['id']}/transfer",
        {"to": target["id"], "amount": amount},
        f"{what}. Continue?" if amount >= LARGE else None,
    )
    sentence = partial(_moved, context, what, of=f" in allocation {source['id']}")
    return write(context, "fairbank.granted/1", request, sentence)


TRANSFER = Command(
    "move credit between two allocations of one resource; for staff, and PIs of both",
    (
        '{} 1042 1051 500 --reason "joint runs"',
        '{} -A chem_qmc --to bio_fold -r gpu 500 --reason "joint runs" --dry-run',
        '{} 1042 1051 2k --reason "joint runs" --yes',
    ),
    _add_transfer,
    _transfer,
)


def _add_refund(parser: Parser) -> None:
    about = (
        "the job's number on its cluster, or CLUSTER/JOBID; with --id the bank's number of its run"
    )
    add_option(parser, "job JOBID", about, type=partial(job_of_cluster, number))
    about = "SU: 100, 12.5, or minutes: 90m (default: all that is left of its charge)"
    add_option(parser, "amount AMOUNT", about, nargs="?")
    add_clusters(parser, "the job's cluster, where several have that number")
    add_option(parser, "--id", "JOBID is the number in the column ID of fairbank jobs")
    add_writing(parser)


def _of_run(job: Row) -> str:
    """Return `of job 17 of cluster darwin`. Measured use has no job: its number is the project."""
    cluster = plain(job["cluster"])
    if job["owner_uid"] is None:
        return f"of use of {cluster} measured on {job['submitted'][:10]}"
    return f"of job {job['job_id']} of cluster {cluster}"


def _refund(context: Context, options: Namespace) -> int:
    amount = None if options.amount is None else parse_su(options.amount, field="AMOUNT")
    if options.id and options.cluster is not None:
        raise InvalidInput(
            "the bank's number of a run has no cluster",
            field="--id",
            remedy="name the job and its cluster without --id, or the number in ID alone",
        )
    job = (
        context.one(f"/job/{options.job}")
        if options.id
        else _charged_run(context, options.job, options.cluster)
    )
    row = context.one(f"/alloc/{job['allocation']}")
    form = context.format.for_sentences
    back = job["charged"] - job["refunded"] if amount is None else amount
    of = _of_run(job)
    what = f"refund of {_amount(context, back)} {of} to {allocation_name(row)}"
    question = what
    warnings = []
    if job["refunded"]:
        before = (
            f"! {form.su(job['refunded'])} of its {form.su_text(job['charged'])} were refunded"
            " before; this is one refund more"
        )
        question = f"{what}. {before}"
        warnings = [before]
    asks = back >= LARGE or warnings  # a second refund of one job is often a mistake
    request = WriteRequest(
        "POST",
        f"/job/{job['id']}/refund",
        {} if amount is None else {"amount": amount},
        f"{question}. Continue?" if asks else None,
    )
    answer = post(context, request)
    if answer and answer.get("again"):
        warnings = []
    return show_result(
        context, "fairbank.granted/1", answer, partial(_moved, context, what), warnings
    )


def _charged_run(context: Context, job_id: int, cluster: str | None) -> Row:
    """Return the charged run of this job; the newest if no run has anything to refund.

    Raises NotFound, Conflict while it runs, InvalidInput if there are several.
    """
    runs = context.rows("/job", {"job_id": job_id, "cluster": cluster})
    if not runs:
        where = "" if cluster is None else f" of cluster {plain(cluster)}"
        raise NotFound(
            f"there is no job {job_id}{where} that you may see",
            field="JOBID",
            remedy="list them with: fairbank jobs -a",
        )
    charged = [run for run in runs if run["charged"] > run["refunded"]]
    if not charged and any(run["state"] == "held" for run in runs):
        raise Conflict(
            f"job {job_id} still runs, so nothing was charged yet",
            field="JOBID",
            remedy="wait until it has ended; what it does not use comes back",
        )
    SeveralClusters.check(job_id, charged or runs)
    if len(charged) > 1:
        which = ", ".join(
            f"{run['id']} ({plain(run['cluster'])}, started {run['start']})" for run in charged[:10]
        )
        raise InvalidInput(
            f"job {job_id} was charged {len(charged)} times: {which}",
            field="JOBID",
            remedy="name one run: --id NUMBER",
        )
    return charged[0] if charged else max(runs, key=lambda run: int(run["id"]))


REFUND = Command(
    "refund a job's charge or a part of it; repeated, it refunds again, unless under one key; for"
    " staff",
    (
        '{} 812222 --reason "node n031 failed"',
        '{} 812222 60 --reason "half of it" --idempotency-key incident-17',
        '{} --id 9913377 --reason "node n031 failed"',
    ),
    _add_refund,
    _refund,
)


def _add_undo(parser: Parser) -> None:
    about = "the number that the command printed, or of a statement's line"
    add_option(parser, "entry ENTRY", about, type=number)
    add_writing(parser)


def _undo(context: Context, options: Namespace) -> int:
    request = WriteRequest("POST", f"/entry/{options.entry}/undo", {})
    entries = [] if options.dry_run else planned_entries(context, request)
    changes = " and ".join(_describe(context, row) for row in entries)
    what = f"undo of entry {options.entry}: {changes or 'as before'}"

    is_transfer = len({row["allocation"] for row in entries}) > 1

    def sentence(answer: Row) -> str:
        if answer["allocation"] is None:
            return what
        of = f" in allocation {answer['allocation']}" if is_transfer else ""
        return _moved(context, what, answer, of)

    request = request._replace(
        question=f"{what}. Continue?", needs_yes=any(_removes(context, row) for row in entries)
    )
    return write(context, "fairbank.granted/1", request, sentence)


def _removes(context: Context, row: Row) -> bool:
    """Return True for an entry that takes credit out, or ends or removes something."""
    match row["kind"]:
        case "withdraw" | "recharge":
            return True
        case "member":
            return bool(row["details"]["role"] == "none")
        case "terms":
            changed = row["changed"]
            if changed.get("state") in ("ended", "cancelled", "removed"):
                return True
            before = context.one(f"/alloc/{row['allocation']}")
            return "end" in changed and instant_of(changed["end"]) < instant_of(before["end"])
        case _:
            return False


def _describe(context: Context, row: Row) -> str:
    """Return a short description of an entry."""
    name = f"allocation {row['allocation']} ({row['account']}/{row['resource']})"
    details = row["details"]
    match row["kind"]:
        case "terms":
            terms = ", ".join(
                f"{key.replace('_', ' ')} {value}"
                for key, value in details.items()
                if key != "undoes"
            )
            return f"{name} back to {terms or 'what it was already'}"
        case "cap":
            user = user_name(row["owner_uid"])
            return f"the cap of {user} in {name} back to {details['cap']}"
        case "member":
            user = user_name(row["owner_uid"])
            return f"the role of {user} in {row['account']} back to {details['role']}"
        case _:
            job = f" of job {row['job_id']}" if row["job_id"] is not None else ""
            return f"{row['kind']} of {_amount(context, row['amount'])}{job}, {name}"


UNDO = Command(
    "reverse an entry by a new one: credit, a refund, terms, a cap, a role",
    (
        '{} 9913533 --reason "wrong allocation"',
        '{} 9913533 --reason "wrong allocation" --dry-run',
        '{} 9913533 --reason "wrong allocation" --yes',
    ),
    _add_undo,
    _undo,
)
