"""Command `fairbank eff`: used part of the processors of jobs, and what the rest cost."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from fairbank.cli.commands.bank.job_rows import caption_of_jobs, jobs, with_units
from fairbank.cli.framework.command import Command
from fairbank.cli.framework.exit_codes import DONE, NOT_FOUND
from fairbank.cli.framework.options import add_clusters, add_option, job_ids
from fairbank.cli.framework.output import Listing, show
from fairbank.cli.framework.selectors import check_job_names, job_names
from fairbank.core.errors import FairbankError, NotFound
from fairbank.core.units import counted
from fairbank.report.columns import Amount, Column, duration, if_any, instant_of, su, text
from fairbank.report.usage import efficiency

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator, Mapping, Sequence

    from fairbank.cli.framework.context import Context
    from fairbank.cli.framework.parser import Parser
    from fairbank.report.columns import DisplayFormat, Row
    from fairbank.slurm.parsers.values import MeasuredUsage


_GPUS = re.compile(r"\bgres/gpu=(\d+)")


def _enough(row: Row, form: DisplayFormat) -> str:
    """Return the processors, and GPUs and memory if they were measured."""
    enough = row["enough"]
    if enough is None:
        return "" if form.exact else "-"
    memory, had = (re.search(r"\bmem=(\w+)", text) for text in (enough["tres"], row["tres"] or ""))
    measured = [memory[1]] if memory and had and memory[1] != had[1] else []
    gpus, had_gpus = (_GPUS.search(text) for text in (enough["tres"], row["tres"] or ""))
    if had_gpus and (gpus is None or gpus[1] != had_gpus[1]):
        measured.insert(0, counted(int(gpus[1]) if gpus else 0, "GPU"))
    return ", ".join([counted(enough["cpus"], "CPU"), *measured])


def _enough_cost(row: Row, form: DisplayFormat) -> str:
    enough = row["enough"]
    return "" if enough is None or enough["cost"] is None else su("cost")(enough, form)


COLUMNS = (
    Column("JOBID", text("job_id"), right=True),
    Column("CLUSTER", text("cluster"), extra=True),
    Column("NAME", text("name"), min_width=8, drop=7),
    Column("USER", text("user"), drop=6),
    Column("STATE", text("word"), drop=1),
    Column("ELAPSED", duration("ran"), right=True, drop=5),
    Column("CPUS", text("cpus"), right=True, drop=2),
    Column("CPU-USED", duration("cpu_used"), right=True, drop=8),
    Column("GIVEN", duration("cpu_given"), right=True, drop=9),
    Column("EFF%", efficiency, right=True),
    Column("SU", su("cost"), right=True),
    Column("WASTED", if_any(su("wasted")), right=True),
    Column("ENOUGH", _enough, drop=4),
    Column("WOULD-COST", if_any(Amount(_enough_cost)), right=True, drop=3),
    Column("RESOURCE", text("resource"), extra=True),
    Column("RESTART", text("restart"), right=True, extra=True),
)
MEANING = (
    "EFF% = processor time used (CPU-USED) of the time given (GIVEN = CPUS x ELAPSED); WASTED ="
    " what the idle rest cost; ENOUGH = what would have been enough if it can use any number of"
    " CPUs and GPUs, with the most memory that sacct has, else with the memory that it had; none"
    " for a job that was out of memory. The use of GPUs is known where sacct has gres/gpuutil."
    " Resized jobs are not measured."
)


def add(parser: Parser) -> None:
    about = "the jobs, by their numbers in Slurm, or as CLUSTER/JOBID"
    add_option(parser, "jobs JOBID", about, type=job_ids, nargs="+")
    add_clusters(parser, "only of these clusters", several=True)


def run(context: Context, options: Namespace) -> int:
    wanted = [number for numbers in options.jobs for number in numbers]
    rows: Sequence[Row] = jobs(context, {"job_id": wanted, "cluster": options.clusters}, 0)
    rows = sorted(rows, key=lambda row: (wanted.index(row["job_id"]), row["id"]))
    check_job_names(context, "cluster", "--clusters", rows)
    known = {row["job_id"] for row in rows}
    missing = ", ".join(str(number) for number in dict.fromkeys(wanted) if number not in known)
    message = f"there is no job {missing} that you may see"
    remedy = f"a refused job used nothing: fairbank jobs --refused -j {missing.replace(', ', ',')}"
    if not rows:
        raise NotFound(message, field="JOBID", remedy=remedy)
    rows, sacct_cluster = _completed(context, rows)
    usages = _measured(context, rows, sacct_cluster)
    rows = [_with_enough(context, _used(row), usages) for row in rows]
    notes = [MEANING, *_unknown(context, rows, sacct_cluster)]
    warnings = [f"! {message}; {remedy}"] if missing else []
    shown = with_units(context, COLUMNS, rows)
    listing = Listing("fairbank.job/1", shown, rows, caption_of_jobs(context, rows), notes=notes)
    show(context, listing._replace(warnings=warnings if options.form == "json" else ()))
    if options.form != "json":
        context.note(*warnings)
    return NOT_FOUND if missing else DONE


def _completed(context: Context, rows: Sequence[Row]) -> tuple[Sequence[Row], str | None]:
    """Return the rows with the processor time that Slurm's accounting has, where the bank has none,
    and the cluster whose accounting has answered; None if none was asked.

    The agent's reports come before Slurm has added up the processor time of a job, so only runs
    that `reconcile` or an import charged have one. On a host of the cluster sacct tells the others.
    """
    from shutil import which

    unknown = [row["job_id"] for row in rows if _is_unknown(row)]
    if not unknown or which("sacct") is None:
        return rows, None
    from fairbank.slurm.commands import SlurmCommands

    slurm = SlurmCommands()
    try:
        cluster, ends = slurm.cluster, slurm.job_ends(unknown)
    except FairbankError as error:
        # Many hosts have Slurm's commands without a cluster. A note names the jobs.
        context.detail(f"Slurm's accounting does not answer: {error.message}")
        return rows, None
    context.note(*(f"! not read: {line}" for line in ends.unreadable))
    known = {(end.job_id, end.submitted): end.cpu_seconds for end in ends.rows}
    rows = [
        {**row, "cpu_seconds": known.get((row["job_id"], instant_of(row["submitted"])))}
        if _is_unknown(row) and row["cluster"] == cluster
        else row
        for row in rows
    ]
    return rows, cluster


def _measured(
    context: Context, rows: Sequence[Row], cluster: str | None
) -> Mapping[tuple[int, int], MeasuredUsage]:
    """Return the measured usage by job id and submission, as far as sacct tells it."""
    from shutil import which

    if which("sacct") is None:
        return {}
    from fairbank.slurm.commands import SlurmCommands

    slurm = SlurmCommands()
    try:
        own = [row["job_id"] for row in rows if row["cluster"] == (cluster or slurm.cluster)]
        return slurm.job_usage(own) if own else {}
    except FairbankError as error:
        context.detail(f"Slurm's accounting does not answer: {error.message}")
        return {}


def _with_enough(
    context: Context, row: dict[str, Any], usages: Mapping[tuple[int, int], MeasuredUsage]
) -> dict[str, Any]:
    """Return the row with the request that would have been enough, and what it would have cost.

    It is not known for a job that was ended for its memory: it wanted more than it used.
    """
    from fairbank.bank.efficiency import enough_cpus, enough_gpus

    if not row["cpu_given"] or row["word"] == "OUT_OF_MEMORY":
        return {**row, "enough": None}
    counts = {
        name: count
        for name, _, count in (item.partition("=") for item in (row["tres"] or "").split(","))
        if count and name != "billing"
    }
    cpus = enough_cpus(row["cpu_seconds"], row["elapsed"], row["cpus"])
    counts["cpu"] = str(cpus)
    measured = usages.get((row["job_id"], instant_of(row["submitted"])))
    if measured and measured.memory and "mem" in counts:
        counts["mem"] = f"{-(-measured.memory // 1_024)}M"
    if measured and measured.gpu_seconds is not None and counts.get("gres/gpu", "").isdecimal():
        gpus = enough_gpus(measured.gpu_seconds, row["elapsed"], int(counts["gres/gpu"]))
        for name in [name for name in counts if name.startswith("gres/gpu")]:
            # Of several types, none says which of them was busy.
            counts[name] = str(min(gpus, int(counts[name])))
            if counts[name] == "0":
                del counts[name]
    tres = ",".join(f"{name}={count}" for name, count in counts.items())
    cost = _cost_of(context, row, tres)
    return {**row, "enough": {"cpus": cpus, "tres": tres, "cost": cost}}


def _cost_of(context: Context, row: Row, tres: str) -> int | None:
    """Return what a run would have cost with other TRES: its cost in the proportion of the prices
    of today, which may have been others then. None if the bank has no price.
    """
    place = {
        "account": row["account"],
        "cluster": row["cluster"],
        "partition": row["partition"],
        "time_limit": row["elapsed"],
        "qos": row["qos"],
        "waiting": True,
    }
    try:
        enough, had = (
            context.client.post("/quote", {**place, "tres": text})["data"]["amount"]
            for text in (tres, row["tres"])
        )
    except FairbankError as error:  # the partition may be gone, for example
        context.detail(f"no price of {tres}: {error.message}")
        return None
    return -(-row["cost"] * enough // had) if had else None


def _is_unknown(row: Row) -> bool:
    return row["cpu_seconds"] is None and bool(row["elapsed"])  # one that never ran used nothing


def _used(row: Row) -> dict[str, Any]:
    """Return the row with used and given processor time, and with what the waste cost."""
    from fairbank.bank.efficiency import efficiency_of

    known = row["cpu_seconds"] is not None
    given = (row["cpus"] or 0) * (row["elapsed"] or 0)
    used = efficiency_of(row["cpu_seconds"] or 0, given if known else 0, row["cost"] or 0)
    return {
        **row,
        "cpu_used": used.used if used.given else None,
        "cpu_given": used.given or None,
        "wasted": used.wasted if used.given else None,
    }


def _unknown(context: Context, rows: Sequence[Row], sacct_cluster: str | None) -> Iterator[str]:
    """Yield sentences with the jobs whose processor time, or whose end, is not known.

    The bank does not know which jobs Slurm ran: others are entered by hand or from a file.

    Args:
        context: the command.
        rows: the jobs.
        sacct_cluster: the cluster whose accounting has answered; None if none was asked.
    """
    for has_answered, advice in (
        (False, "For a job that Slurm ran, ask on a host of its cluster with sacct."),
        (True, "Slurm's accounting has none either."),
    ):
        unknown = [
            row
            for row in rows
            if _is_unknown(row) and (row["cluster"] == sacct_cluster) == has_answered
        ]
        if unknown:
            names = dict.fromkeys(job_names(context, unknown))  # the runs of one job once
            yield f"Used processor time not known: {', '.join(names)}. {advice}"
    if running := [row for row in rows if row["state"] == "held"]:
        names = dict.fromkeys(job_names(context, running))
        yield (
            f"As far as the bank knows, these still run: {', '.join(names)}."
            " It learns of an end seconds after Slurm."
        )


COMMAND = Command(
    "show the used part of the processors that jobs were given, and what the waste cost",
    (
        "fairbank eff 812301                        a job that has ended",
        "fairbank eff 812301,812302 700004          several",
        "fairbank eff 812301 --json",
    ),
    add,
    run,
    columns=COLUMNS,
)
