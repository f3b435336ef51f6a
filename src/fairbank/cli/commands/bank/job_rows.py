"""Rows of jobs and of refused jobs, and their columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairbank.cli.framework.host import user_name
from fairbank.cli.framework.listed_values import rows_of_each
from fairbank.cli.framework.output import caption
from fairbank.report.columns import (
    Amount,
    Column,
    DisplayFormat,
    Row,
    duration,
    if_any,
    instant_of,
    moment,
    su,
    text,
)
from fairbank.report.usage import efficiency

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairbank.cli.framework.context import Context

_STATE_REASONS = {"released": ["not charged"], "lapsed": ["no report of its end"]}


def _reason(row: Row, form: DisplayFormat) -> str:
    reasons = [
        f"{form.su(row[name])} {name.replace('_', ' ')}"
        for name in ("refunded", "written_off")
        if row[name]
    ]
    reasons += _STATE_REASONS.get(row["state"], ())
    return ", ".join(reasons)


def _exit(row: Row, form: DisplayFormat) -> str:
    """Return exit code and signal as Slurm writes them."""
    return "" if row["exit_code"] is None else f"{row['exit_code']}:{row['exit_signal']}"


COLUMNS = (
    Column("JOBID", text("job_id"), right=True),
    Column("CLUSTER", text("cluster"), extra=True),
    Column("NAME", text("name"), min_width=8),
    Column("PROJECT", text("account"), drop=6),
    Column("USER", text("user"), drop=5),
    Column("PART", text("partition"), drop=3),
    Column("RESOURCE", text("resource"), extra=True),
    Column("STATE", text("word")),
    Column("ELAPSED", duration("ran"), right=True, drop=1),
    Column("TIME-LIMIT", duration("time_limit"), right=True, drop=2),
    Column("SU", su("cost"), right=True),
    Column("HELD", su("held"), right=True, drop=8),
    Column("EFF%", efficiency, right=True, drop=7),
    Column("REASON", _reason, drop=4),
    Column("SUBMIT", moment("submitted"), extra=True),
    Column("START", moment("start"), extra=True),
    Column("WAITED", duration("waited"), right=True, extra=True),
    Column("NODES", text("nodes"), right=True, extra=True),
    Column("QOS", text("qos"), extra=True),
    Column("TRES", text("tres"), extra=True, min_width=8),
    Column("WASTED", if_any(su("wasted")), right=True, extra=True),
    Column("WRITTEN-OFF", su("written_off"), right=True, extra=True),
    Column("ALLOC", text("allocation"), right=True, extra=True),
    Column("EXIT", _exit, right=True, extra=True),
    Column("END", moment("ended"), extra=True),
    Column("RESTART", text("restart"), right=True, extra=True),
    Column("ID", text("id"), right=True, extra=True),
)


def columns(context: Context, rows: Sequence[Row], *, mine: bool) -> Sequence[Column]:
    """Return the columns; if a job runs, always its hold, and the users of the jobs of others.

    Args:
        context: the command, which asks for the clusters.
        rows: jobs to show.
        mine: all jobs are of one user, so that a narrow terminal needs no column for it.
    """
    running = any(row["state"] == "held" for row in rows)
    drops = ({"HELD": 0} if running else {}) | {"USER": 9 if mine else 0}
    shown = with_units(context, COLUMNS, rows)
    if any(column.head == "RESOURCE" and not column.extra for column in shown):
        # On a narrow terminal the resource takes the place of the partition, not of the reason.
        drops |= {"PART": 5, "TIME-LIMIT": 4, "ELAPSED": 3, "REASON": 2, "RESOURCE": 1}
    return tuple(column._replace(drop=drops.get(column.head, column.drop)) for column in shown)


def with_units(
    context: Context, columns: Sequence[Column], rows: Sequence[Row]
) -> Sequence[Column]:
    """Return the columns of jobs with those that tell whose SU and whose job numbers rows have.

    RESOURCE is shown if rows differ in it, else the caption names it (`caption_of_jobs`). CLUSTER
    is shown if the bank has several and the caption names none, LATER if a refused job was
    accepted later. Scripts get the same columns for all data.

    Args:
        context: the command, which asks for the clusters.
        columns: those of the command, with RESOURCE and CLUSTER as extra columns.
        rows: the rows of `GET /job` or `GET /failure`.
    """
    needed = set()
    is_script = context.options.form is not None
    if is_script or len({row["resource"] for row in rows}) > 1:
        needed.add("RESOURCE")
    if is_script or (rows and context.cluster is None and context.has_several_clusters):
        needed.add("CLUSTER")
    if is_script or any(row.get("later_state") for row in rows):
        needed.add("LATER")
    return [column._replace(extra=column.extra and column.head not in needed) for column in columns]


def caption_of_jobs(context: Context, rows: Sequence[Row]) -> str:
    """Return the caption of jobs, with the resource that their SU are of if it is just one."""
    resources = {row["resource"] for row in rows}
    of_resource = f" of {resources.pop()}" if len(resources) == 1 and resources != {None} else ""
    return caption(context) + of_resource


def _refusal_reason(row: Row, form: DisplayFormat) -> str:
    return str(row["reason"]).lower().replace("_", " ")


def _later(row: Row, form: DisplayFormat) -> str:
    """Return what became of a job that was accepted after its refusal."""
    state = row["later_state"]
    return "running" if state == "held" else str(state or ("" if form.exact else "-"))


def _short(row: Row, form: DisplayFormat) -> str:
    is_known = row["available"] is not None
    return form.lacking(row["requested"], row["available"]) if is_known else ""


SHORTFALL = if_any(Amount(_short))
"""Shortfall of a refused job."""
REFUSED: Sequence[Column] = (
    Column("TIME", moment("at")),
    Column("JOBID", text("job_id"), right=True),
    Column("CLUSTER", text("cluster"), extra=True),
    Column("PROJECT", text("account"), min_width=8),
    Column("RESOURCE", text("resource"), drop=2),
    Column("REQUEST", if_any(su("requested")), right=True),
    Column("AVAILABLE", if_any(su("available")), right=True, drop=3),
    Column("SHORT", SHORTFALL, right=True, drop=1),
    Column("REASON", _refusal_reason),
    Column("LATER", _later, extra=True),
    Column("USER", text("user"), extra=True),
    Column("ALLOC", text("allocation"), right=True, extra=True),
    Column("REFUSAL", text("id"), right=True, extra=True),
)


def jobs(context: Context, query: dict[str, object], limit: int) -> list[Row]:
    """Return job rows, the last entered first, with state, cost, run time and wait.

    Args:
        context: the command, which sends the requests.
        query: parameters of `GET /job`; a list stands for several requests.
        limit: maximum number of rows; 0: all.
    """
    return [_job_row(context, row) for row in rows_of_each(context, "/job", query, limit)]


def _job_row(context: Context, row: Row) -> Row:
    running = row["state"] == "held"
    ran = max(0, context.bank_time - instant_of(row["start"])) if running else row["elapsed"]
    return {
        **row,
        "user": user_name(row["owner_uid"]),
        "word": "RUNNING" if running else (row["outcome"] or row["state"].upper()),
        "ran": ran,
        "waited": max(0, instant_of(row["start"]) - instant_of(row["submitted"])),
        "cost": None if running else row["charged"] - row["refunded"],
    }


def refusals(context: Context, query: dict[str, object], limit: int) -> list[Row]:
    """Return refusal rows, newest first, with the user's name.

    Args:
        context: the command, which sends the requests.
        query: parameters of `GET /failure`; a list stands for several requests.
        limit: maximum number of rows; 0: all.
    """
    return [
        {**row, "user": user_name(row["owner_uid"])}
        for row in rows_of_each(context, "/failure", query, limit)
    ]
