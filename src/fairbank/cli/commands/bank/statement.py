"""Command `fairbank statement`: entries of an allocation's journal, with the sums after each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairbank.cli.framework.command import Command
from fairbank.cli.framework.context import PAGE
from fairbank.cli.framework.host import user_name
from fairbank.cli.framework.options import add_account, add_limit, add_option, add_period, number
from fairbank.cli.framework.output import Listing, caption, show
from fairbank.cli.framework.selectors import find_allocation
from fairbank.report.allocation_terms import terms_in_words
from fairbank.report.cells import plain
from fairbank.report.columns import (
    Amount,
    Column,
    DisplayFormat,
    Row,
    Summand,
    instant_of,
    moment,
    text,
)

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Mapping, Sequence

    from fairbank.cli.framework.context import Context
    from fairbank.cli.framework.parser import Parser

_REFUSED_KINDS = ("refusal", "declined")


def _moved(key: str) -> Amount:
    """Show the amount; empty if it is 0, and for the opening and the closing balance."""
    return Amount(lambda row, form: form.su(row[key]) if row.get(key) else "")


def _reason(row: Row, form: DisplayFormat) -> str:
    parts = [_changed(row["changed"], form)] if row.get("changed") is not None else []
    parts += [row["comment"]] if row.get("comment") else []
    details = row.get("details") or {}
    # The comment of the other entry names this one: undo of entry 12.
    if row.get("undone_by"):
        how = "refunded" if row["kind"] == "charge" else "undone"
        parts.append(f"{how} by entry {row['undone_by']}")
    if row.get("kind") == "cap":
        cap = details.get("cap")
        limit = "none" if cap is None else form.with_unit(form.su(cap))
        parts.insert(0, f"cap of {row['owner']}: {limit}")
    if row.get("kind") in _REFUSED_KINDS and details:
        requested = form.with_unit(form.su(row["amount"]))
        parts.append(details["message"] + (f": requested {requested}" if row["amount"] else ""))
    if row.get("kind") == "charge":
        # As `jobs` shows the charge and the hold. What came back is IN.
        freed = row["amount"] + row["returned"]
        hold = f" of {form.su(freed)} held" if row["returned"] else ""
        parts.append(f"{form.su(row['amount'])} used{hold}")
    if details.get("written_off"):
        parts.append(f"{form.su(details['written_off'])} written off")
    return "; ".join(parts)


def _changed(terms: Mapping[str, Any], form: DisplayFormat) -> str:
    """Return the changed terms: `state frozen`, `credit limit 5 SU`."""
    words = terms_in_words(terms, form)
    return ", ".join(f"{name} {value}" for name, value in words.items()) or "nothing changed"


COLUMNS = (
    Column("TIME", lambda row, form: row.get("label") or moment("at")(row, form)),
    Column("ENTRY", text("id"), right=True, drop=4),
    Column("KIND", text("kind")),
    Column("JOB/REF", text("job_id"), right=True, drop=1),
    Column("IN", _moved("credit_in"), right=True),
    Column("OUT", _moved("credit_out"), right=True),
    Column("REMAINING", Summand("remaining"), right=True),
    Column("USED", Summand("used"), right=True, extra=True),
    Column("HELD", Summand("held"), right=True, extra=True),
    Column("GRANTED", Summand("granted"), right=True, extra=True),
    Column("OWNER", text("owner"), extra=True),
    Column("WHO", text("who"), extra=True),
    Column("SEQ", text("seq"), right=True, extra=True),
    Column("CLUSTER", text("cluster"), extra=True),
    Column("REASON", _reason, min_width=24, wraps=True),
)


def add(parser: Parser) -> None:
    about = "the number of the allocation"
    add_option(parser, "allocation ALLOC", about, nargs="?", type=number)
    add_account(parser)
    about = "also what moved no credit: new terms, caps, refusals; for scripts all columns"
    add_option(parser, "-l, --long", about)
    add_period(parser, "now-30days")
    add_limit(parser, PAGE, "maximum number of entries, the newest")


def run(context: Context, options: Namespace) -> int:
    allocation = find_allocation(context, options.allocation, options.account, options.resource)
    period = context.period("now-30days")
    page, whole = read_statement(context, allocation, options.limit, period, every=options.long)
    entries = rows = _named_entries(context, page)
    if options.form is None:
        if context.has_several_clusters:
            rows = [_of_cluster(row) for row in rows]
        opening = {**page["opening"], "label": "(opening)" if whole else "(before)"}
        rows = [opening, *rows, {**page["closing"], "label": "(closing)"}]
    parts = {part: page[part] for part in ("allocation", "opening", "closing")}
    notes = [_of_when(context, period, entries, whole), _proof(context, page["closing"])]
    if not options.long:
        notes.insert(0, "-l also shows what moved no credit: new terms, caps and refusals.")
    listing = Listing(
        "fairbank.statement-entry/1",
        _columns(is_script=options.form is not None),
        rows,
        f"{_caption(context, page['allocation'])}\n{caption(context)}",
        notes=notes,
        more={**parts, "whole": whole},
        fitted=True,
    )
    return show(context, listing)


def _of_cluster(row: Row) -> Row:
    """Return the row with its job as `darwin/812301`, as `usage --by job` has it."""
    return row if row["job_id"] is None else {**row, "job_id": f"{row['cluster']}/{row['job_id']}"}


def _columns(*, is_script: bool) -> Sequence[Column]:
    """Return the columns. Scripts get the cluster beside the number of the job."""
    return [
        column._replace(extra=column.extra and not (is_script and column.head == "CLUSTER"))
        for column in COLUMNS
    ]


def read_statement(
    context: Context, allocation: int, limit: int, period: Mapping[str, object], *, every: bool
) -> tuple[dict[str, Any], bool]:
    """Return the newest entries of a period with the sums around them, and True if these are all.

    Args:
        context: the command, which sends the requests.
        allocation: the number of the allocation.
        limit: maximum number of entries; 0: all.
        period: `since` and `until` in seconds since 1970 as text; None: no start, or no end.
        every: entries that move no credit are among them.
    """
    query = {**period, "all": every or None}
    first, *further = context.pages(f"/alloc/{allocation}/statement", query, limit)
    page: dict[str, Any] = first["data"]
    for older in further:
        page["entries"] = older["data"]["entries"] + page["entries"]
        page["opening"] = older["data"]["opening"]
    return page, not (further or [first])[-1]["next"]


def _of_when(
    context: Context, period: Mapping[str, str | None], entries: Sequence[Row], whole: bool
) -> str:
    """Return the times of the sums at the top and the bottom."""
    since, until = (
        (instant and context.format.moment(int(instant)))
        for instant in (period["since"], period["until"])
    )
    opening = (
        f"(opening): the sums before {since}."
        if whole
        else f"(before): the sums before entry {entries[0]['id']}; there are earlier entries."
    )
    return f"{opening}  (closing): those {f'before {until}' if until else 'of now'}."


def _named_entries(context: Context, page: Row) -> list[Row]:
    """Return the entries with names, and with what a charge released of its hold."""
    named: list[Row] = []
    before = page["opening"]
    for entry in page["entries"]:
        freed = before["held"] - entry["held"]
        returned = freed - entry["amount"] if entry["kind"] == "charge" else 0
        who = user_name(entry["actor"])
        if entry["acting_as"] is not None:
            who += f" as {user_name(entry['acting_as'])}"
        owner = user_name(entry["owner_uid"])
        named.append({**entry, "returned": max(0, returned), "who": who, "owner": owner})
        before = entry
    return named


def _proof(context: Context, sums: Row) -> str:
    """Return the line that shows that the figures add up."""
    parts = [sums[key] for key in ("deposited", "charged", "held", "remaining")]
    shown = context.format.for_sentences.sums(*parts)
    adds_up = sums["charged"] + sums["held"] + sums["remaining"] == (
        sums["deposited"] + sums["credit_limit"]
    )
    lent = f" + limit {shown.limit}" if sums["credit_limit"] else ""
    return (
        f"{'ok' if adds_up else '!! does not add up:'}  used {shown.used} + held {shown.held}"
        f" + remaining {shown.remaining} = granted"
        f" {context.format.with_unit(f'{shown.granted}{lent}')}"
    )


def _caption(context: Context, row: Row) -> str:
    form = context.format.for_sentences
    period = form.days(instant_of(row["start"]), instant_of(row["end"]))
    name = plain(f"{row['account']}/{row['resource']}  {row['category']}")
    shown = form.sums(row["deposited"], row["charged"], row["held"], row["remaining"])
    limit = f"  credit limit {shown.limit}" if row["credit_limit"] else ""
    state = "" if row["state"] == "active" else f"  {row['state']}"
    return f"Allocation {row['id']}  {name}  {period}  granted {shown.granted}{limit}{state}"


COMMAND = Command(
    "show what moved the credit of an allocation, in and out, with what remained after it",
    (
        "fairbank statement 1042                        the last 30 days",
        "fairbank statement -A chem_qmc -r cpu -S 2026-11-01",
        "fairbank statement 1042 -S 2026-07-01 --limit all --csv",
    ),
    add,
    run,
    watch=True,
    columns=COLUMNS,
)
