"""State of a job that does not wait, for `fairbank why`: refused by the bank, running, or ended."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from fairbank.cli.commands.bank.job_rows import jobs
from fairbank.cli.commands.slurm.slurm_options import print_unreadable
from fairbank.cli.framework.host import exit_text, user_name, with_user_names
from fairbank.cli.framework.output import source_line
from fairbank.cli.framework.selectors import SeveralClusters
from fairbank.core.errors import FairbankError, Unavailable
from fairbank.core.hostlist import compress
from fairbank.core.slurm_numbers import UNLIMITED_SECONDS
from fairbank.core.time import iso, parse_instant, show_duration, show_rounded
from fairbank.report.cells import folded, plain
from fairbank.report.columns import instant_of
from fairbank.report.explanation import labelled

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator

    from fairbank.cli.framework.context import Context
    from fairbank.report.columns import Row
    from fairbank.slurm.explain.waiting_job import NotListed, NotPending
    from fairbank.slurm.parsers.jobs import SlurmJob


def show_state(
    context: Context, options: Namespace, error: NotPending | NotListed | Unavailable
) -> int:
    """Show what Slurm and the bank know of a job that does not wait.

    The bank is asked for the cluster of Slurm's output only, whose job it is: every cluster has a
    job of this number. Without output it is that of -M or the settings, else the only one with it.

    Args:
        error: why the queue does not explain it. Raised again if the bank does not know it either.
    """
    from fairbank.slurm.explain.waiting_job import NotListed, NotPending

    runs = error if isinstance(error, NotPending) else None
    job = options.job
    number = str(runs.job.job_id) if runs else job
    if isinstance(error, NotListed) and error.number:
        number = error.number
    run, refusal, unknown = _ask_bank(context, options, number, error)
    if runs is None and run is None and refusal is None:
        raise _unknown_job(context, job, error, unknown)
    notes = [] if unknown is None else [f"nothing is known of its credit: {unknown}"]
    if runs is not None and run is not None and run["state"] != "held":
        run = None  # of an earlier start
    state = _state(runs, run, refusal)
    data = {
        "job": job,
        "state": state,
        "slurm": None if runs is None else _slurm_row(runs),
        "run": None if state == "refused" else run,
        "refusal": refusal if state == "refused" else None,
        "system_comment": "",
    }
    # Only the accounting of this host's cluster is that of the job.
    if state == "ended" and isinstance(error, NotListed) and options.directory is None:
        data["system_comment"] = _system_comment(context, run)
    if runs is not None:
        # "in 3 h" counts from Slurm's answer, not from that of the bank.
        context.as_of = iso(runs.as_of)
    if context.options.form == "json":
        context.print_json("fairbank.job-state/1", [data], notes)
    else:
        context.print_lines(source_line(context))
        for text in _lines(context, data, runs):
            context.print_lines(text)
        context.note(*notes)
    return 0 if runs is None else print_unreadable(context, runs.unreadable, "scontrol show job")


def _ask_bank(
    context: Context, options: Namespace, number: str, error: NotPending | NotListed | Unavailable
) -> tuple[Row | None, Row | None, FairbankError | None]:
    """Return the run of a job, its refusal, and why the bank does not say. Raises SeveralClusters.

    Args:
        context: the command's context, which gets the cluster of Slurm's output.
        number: the job, or a task of an array, which is known to slurmctld only.
        error: why the queue does not explain it.
    """
    from fairbank.slurm.explain.waiting_job import NotListed, NotPending
    from fairbank.slurm.output import cluster_missing

    cluster = context.settings.cluster
    if has_answered := isinstance(error, NotPending | NotListed):
        cluster = context.cluster = error.cluster
    if not (context.settings.is_configured and number.isdecimal()):
        return None, None, None
    try:
        if has_answered and cluster is None:
            raise cluster_missing(options.directory)
        return (*_find_in_bank(context, number, cluster), None)
    except SeveralClusters:
        raise
    except FairbankError as problem:
        context.bank = problem.bank or context.bank  # it may be another bank than was meant
        return None, None, problem


def _unknown_job(
    context: Context,
    job: str,
    error: NotPending | NotListed | Unavailable,
    unknown: FairbankError | None,
) -> FairbankError:
    """Return the error of a job that neither Slurm nor the bank knows, with both reasons.

    Args:
        job: as it was typed.
        error: why the queue does not explain it.
        unknown: why the bank does not say; None if it was not asked or has no such job.
    """
    if unknown is not None:
        error.message += f", and nothing is known of its credit: {unknown.message}"
        error.remedy = unknown.remedy
    elif isinstance(error, Unavailable):
        error.message = f"Slurm does not answer: {error.message}"
        if context.bank is not None:
            error.message = f"the bank knows no job {job} that you may see, and {error.message}"
    return error


def _find_in_bank(
    context: Context, number: str, cluster: str | None
) -> tuple[Row | None, Row | None]:
    """Return the newest run of a job in the bank, and its newest refusal if that is newer.

    Args:
        context: the command's context, which then names the cluster.
        cluster: name of the job's cluster; None if it is not known.

    Raises FairbankError, NotFound if the bank does not have the cluster, SeveralClusters.
    """
    from fairbank.rest.client.bank_client import BankClient

    query: dict[str, object] = {"job_id": number}
    if cluster is None:
        rows = [row for path in ("/job", "/failure") for row in context.rows(path, query)]
        if not rows:
            return None, None
        SeveralClusters.check(number, rows)
        cluster = rows[0]["cluster"]
    context.cluster = BankClient(context.client).cluster(cluster).name
    query["cluster"] = context.cluster
    run = next(iter(jobs(context, query, 1)), None)
    refused = next(iter(context.rows("/failure", query, 1)), None)
    if refused is not None and run is not None and _is_newer(run, refused):
        refused = None
    # Only the answer for a single refusal names other projects.
    refusal = None if refused is None else context.one(f"/failure/{refused['id']}")
    context.later_notes.clear()  # of several runs the newest counts
    return run, refusal


def _is_newer(run: Row, refused: Row) -> bool:
    """Return whether the bank entered a run after a refusal: another run that started later, or
    what it had refused before, such as the charge of a run that credit was granted for since.
    """
    from fairbank.cluster.job import Run

    submitted = parse_instant(run["submitted"])
    if refused["run"] == str(Run(run["cluster"], run["job_id"], submitted, run["restart"])):
        return bool(run["set_by"] > refused["id"])
    return bool(refused["at"] <= run["start"])


def _state(runs: NotPending | None, run: Row | None, refusal: Row | None) -> str:
    if runs is not None:
        return "running"
    if refusal is not None:
        return "refused"
    return "running" if run is not None and run["state"] == "held" else "ended"


def _slurm_row(runs: NotPending) -> dict[str, Any]:
    job = runs.job
    return {
        "as_of": iso(runs.as_of),
        "state": job.state,
        "user": job.user,
        "account": job.account,
        "partition": ",".join(job.partitions),
        "started": None if job.started is None else iso(job.started),
        "ends": None if job.ends is None else iso(job.ends),
        "nodes": _nodes(job),
    }


def _system_comment(context: Context, run: Row | None) -> str:
    """Return why Slurm could not run a job or ended it, such as a file that it could not open."""
    if run is None or run["outcome"] in (None, "COMPLETED"):
        return ""
    from fairbank.slurm.commands import SlurmCommands

    try:
        submitted = instant_of(run["submitted"])
        return SlurmCommands().system_comment(run["job_id"], submitted)
    except FairbankError as error:
        context.detail(f"Slurm's accounting does not answer: {error.message}")
        return ""


def _nodes(job: SlurmJob) -> str:
    return compress([name for allocated in job.allocated for name in allocated.nodes])


def _lines(context: Context, data: Row, runs: NotPending | None) -> Iterator[list[str]]:
    """Yield the lines for people: what the job does or did, then its credit."""
    job, run, refusal = (data[name] for name in ("job", "run", "refusal"))
    form = context.format
    if runs is not None:
        sentence = _slurm_sentence(context, job, runs)
    elif refusal is not None:
        about = f" (resource {refusal['resource']})" if refusal["resource"] else ""
        sentence = f"The bank refused job {job}{about} at {form.moment(instant_of(refusal['at']))}"
        sentence += f": {form.sentence(refusal['detail']).removesuffix('.')}"
    elif data["state"] == "running":
        sentence = _bank_sentence(context, job, run)
    else:
        sentence = _ended(context, job, run)
    yield folded(plain(f"{sentence}."), context.width)
    if comment := data["system_comment"]:
        yield list(labelled("Reason", comment, context.width))
    for place, text in enumerate([] if run is None else _credit(context, run)):
        yield list(labelled("" if place else "Credit", text, context.width))
    for place, remedy in enumerate([] if refusal is None else refusal["remedies"]):
        yield list(labelled("" if place else "Remedy", with_user_names(remedy), context.width))


def _slurm_sentence(context: Context, name: str, runs: NotPending) -> str:
    """Return what slurmctld says of a job that runs or is completing."""
    job, form = runs.job, context.format
    sentence = f"Job {name} of {job.user} is {job.state.lower()}"
    if job.started is not None:
        started = form.moment(job.started)
        if job.state == "RUNNING":
            sentence = f"Job {name} of {job.user} has been running since {started}"
        else:
            sentence += f", started at {started}"
    sentence += f" on {nodes}" if (nodes := _nodes(job)) else ""
    if job.state == "SUSPENDED":
        sentence += "; its time limit does not run meanwhile"
        if job.ran is None or job.limit in (None, UNLIMITED_SECONDS):
            return sentence
        return f"{sentence}: {show_duration(max(job.limit - job.ran, 0))} of it are left"
    return sentence if job.ends is None else sentence + _latest_end(context, job.ends, runs.as_of)


def _bank_sentence(context: Context, name: str, run: Row) -> str:
    """Return since when a job runs for the bank, and when it or its hold ends at the latest."""
    started, form = instant_of(run["start"]), context.format
    sentence = f"Job {name}{_of_user(run)} has been running since {form.moment(started)}"
    sentence += ", according to the bank"
    now, limit = context.bank_time, run["time_limit"]
    if limit is not None and started + limit > now:
        return sentence + _latest_end(context, started + limit, now)
    if limit is not None:
        sentence += f"; its time limit ended at {form.moment(started + limit)}"
    lapses = form.moment(instant_of(run["until"]))
    return f"{sentence}; without a report of its end its hold lapses at {lapses}"


def _of_user(run: Row) -> str:
    """Return ` of ayla`; empty if the user of the run has no uid."""
    user = user_name(run["owner_uid"])
    return f" of {user}" if user else ""


def _latest_end(context: Context, ends: int, now: int) -> str:
    latest = f"; it ends by {context.format.moment(ends)} at the latest"
    return f"{latest}, in {show_rounded(ends - now)}" if ends > now else latest


def _ended(context: Context, job: str, run: Row) -> str:
    """Return when and how a run ended."""
    who = f"Job {job}{_of_user(run)}"
    if run["ended"] is None:
        return f"{who}: the bank has no report of its end"
    ended = context.format.moment(instant_of(run["ended"]))
    lasted = "" if run["elapsed"] is None else f" after {show_duration(run['elapsed'])}"
    code = ""
    if run["exit_code"] is not None:
        code = f", {exit_text(run['exit_code'], run['exit_signal'])}"
    if run["outcome"] == "OUT_OF_MEMORY":
        code = _out_of_memory(run)
    outcome = f": {run['outcome']}{code}" if run["outcome"] else ""
    return f"{who} ended at {ended}{lasted}{outcome}"


def _out_of_memory(run: Row) -> str:
    """Return what the outcome means and the remedy. How much is enough is not known."""
    memory = re.search(r"\bmem=(\w+)", run["tres"] or "")
    had = f" ({memory[1]})" if memory else ""
    return f", a process used more memory than the job had{had}; request more with --mem"


def _credit(context: Context, run: Row) -> Iterator[str]:
    """Yield what the run holds, or cost."""
    su = context.format.su_text
    payer = f"allocation {run['allocation']} ({run['resource']}) of {run['account']}"
    match run["state"]:
        case "held":
            yield f"{su(run['held'])} of {payer} are held; what it does not use comes back"
        case "charged":
            whole, back = su(run["charged"]), su(run["refunded"])
            refund = f" ({whole}, of which {back} were refunded)" if run["refunded"] else ""
            yield f"{su(run['cost'])} were charged to {payer}{refund}"
        case "released":
            yield f"nothing was charged to {payer}"
        case _:
            yield f"the hold of {payer} lapsed, because no report of the end came"
    if run["written_off"]:
        yield f"{su(run['written_off'])} were written off"
