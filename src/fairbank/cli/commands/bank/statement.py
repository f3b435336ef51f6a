"""Command `fairbank statement`: entries of an allocation's journal, with the sums after each."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

from fairbank.cli.framework.command import Command
from fairbank.cli.framework.context import PAGE
from fairbank.cli.framework.host import user_name
from fairbank.cli.framework.options import add_account, add_limit, add_option, add_period, number
from fairbank.cli.framework.output import Listing, caption, show
from fairbank.cli.framework.selectors import find_allocation
from fairbank.core.units import WORTH
from fairbank.report.cells import plain
from fairbank.report.columns import (
    UNITS,
    Amount,
    Column,
    DisplayFormat,
    Row,
    RunningColumn,
    instant_of,
    moment,
    text,
)

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Mapping, Sequence

    from fairbank.cli.framework.context import Context
    from fairbank.cli.framework.parser import Parser

_SIGNS = {1: "+", -1: "-"}
_SAYS_NO = ("refusal", "declined")


def _amount(row: Row, form: DisplayFormat) -> str:
    """Return the change of a sum; empty if none changed."""
    if row.get("sign") is None:
        return ""
    sign = _SIGNS.get(row["sign"], "") if row["amount"] > 0 else ""
    return ("" if form.exact and sign == "+" else sign) + _moved(row, form)


def _moved(row: Row, form: DisplayFormat) -> str:
    """Return the change as the difference of the rounded sums shown in two rows."""
    for name in ("charged", "deposited", "held"):
        before, after = row["before"][name], row[name]
        if row["amount"] and abs(after - before) == abs(row["amount"]):
            return ("-" if row["amount"] < 0 else "") + form.moved(
                (before, after), owed=name != "deposited"
            )
    return form.su(row["amount"])


def _reason(row: Row, form: DisplayFormat) -> str:
    parts = [_changed(row["changed"], form)] if row.get("changed") is not None else []
    parts += [row["comment"]] if row.get("comment") else []
    details = row.get("details") or {}
    if row.get("kind") == "cap":
        cap = details.get("cap")
        limit = "none" if cap is None else f"{form.su(cap)} {_unit(form)}"
        parts.insert(0, f"cap of {row['owner']}: {limit}")
    if row.get("kind") in _SAYS_NO and details:
        asked = f"requested {form.su(row['amount'])} {_unit(form)}" if row["amount"] else None
        parts += [": ".join(filter(None, (details["message"], asked)))]
    if row.get("returned"):
        back = "back" if form.short else "returned"
        held, used = ((row["before"][name], row[name]) for name in ("held", "charged"))
        parts.append(f"{form.moved(held, used, owed=True)} of {form.moved(held, owed=True)} {back}")
    if details.get("written_off"):
        parts.append(f"{form.su(details['written_off'])} written off")
    return "; ".join(parts)


def _unit(form: DisplayFormat) -> str:
    return UNITS[form.units]


def _changed(terms: Mapping[str, Any], form: DisplayFormat) -> str:
    """Return the changed terms: `state frozen`, `credit limit 5`."""
    return ", ".join(_term(name, value, form) for name, value in terms.items()) or "nothing changed"


def _term(name: str, value: Any, form: DisplayFormat) -> str:
    if name == "shared":
        return "shared" if value else "not shared"
    if name in ("start", "end"):
        value = form.moment(instant_of(value))
    return f"{name.replace('_', ' ')} {form.su(value) if name == 'credit_limit' else value}"


COLUMNS = (
    Column("TIME", lambda row, form: row.get("label") or moment("at")(row, form)),
    Column("ENTRY", text("id"), right=True, drop=4),
    Column("KIND", text("kind")),
    Column("JOB/REF", text("job_id"), right=True, drop=1),
    Column("AMOUNT", Amount(_amount), right=True),
    Column("USED", RunningColumn("used"), right=True, drop=1),
    Column("HELD", RunningColumn("held"), right=True, drop=2),
    Column("AVAILABLE", RunningColumn("available"), right=True),
    Column("GRANTED", RunningColumn("granted"), right=True, extra=True),
    Column("OWNER", text("owner"), extra=True),
    Column("WHO", text("who"), extra=True),
    Column("SEQ", text("seq"), right=True, extra=True),
    Column("REASON", _reason, drop=3, least=12),
)


def add(parser: Parser) -> None:
    about = "the number of the allocation"
    add_option(parser, "allocation ALLOC", about, nargs="?", type=number)
    add_account(parser)
    add_period(parser, "now-30days")
    add_limit(parser, PAGE)


def run(context: Context, options: Namespace) -> int:
    allocation = find_allocation(context, options.allocation, options.account, options.resource)
    period = context.period("now-30days")
    page, whole = read_statement(context, allocation, options.limit, period)
    entries = rows = _named_entries(context, page)
    if options.form != "json":
        rows = [{**row, "before": before} for before, row in pairwise([page["opening"], *entries])]
    if options.form is None:
        opening = {**page["opening"], "label": "(opening)"}
        closing = {**page["closing"], "label": "(closing)" if whole else "(so far)"}
        rows = [opening, *rows, closing]
    parts = {part: page[part] for part in ("allocation", "opening", "closing")}
    listing = Listing(
        "fairbank.statement/1",
        COLUMNS,
        rows,
        f"{_caption(context, page['allocation'])}\n{caption(context)}",
        notes=[_of_when(context, period, entries, whole), _proof(context, page["closing"])],
        more={**parts, "whole": whole},
    )
    return show(context, listing)


def read_statement(
    context: Context, allocation: int, limit: int, period: Mapping[str, object]
) -> tuple[dict[str, Any], bool]:
    """Return the entries of a period, at most `limit` (0: all), and the sums around them."""
    first, *further = context.pages(f"/alloc/{allocation}/statement", period, limit)
    page: dict[str, Any] = first["data"]
    for answer in further:
        page["entries"] += answer["data"]["entries"]
        if answer["data"]["entries"]:
            page["closing"] = answer["data"]["closing"]
    return page, not (further or [first])[-1]["next"]


def _of_when(
    context: Context, period: Mapping[str, str | None], entries: Sequence[Row], whole: bool
) -> str:
    """Return the times of the sums at the top and the bottom."""
    since, until = (
        (each and context.format.moment(int(each))) for each in (period["since"], period["until"])
    )
    opening = f"(opening): the sums before {since}."
    if not whole:
        last = entries[-1]["id"]
        return f"{opening}  (so far): those after entry {last}; more entries follow."
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
    keys = ("charged", "held", "available", "deposited", "credit_limit")
    parts = [sums[key] for key in keys]
    # Rounded figures would not add up.
    rounded = any(each * 100 % WORTH[context.format.units] for each in parts)
    form = context.format._replace(units="m") if rounded else context.format
    used, held, available, granted, limit = (form.su(each) for each in parts)
    mark = "ok" if sum(parts[:3]) == sum(parts[3:]) else "!! does not add up:"
    lent = f" + limit {limit}" if parts[4] else ""
    return (
        f"{mark}  used {used} + held {held} + available {available} = granted {granted}{lent}"
        f" {_unit(form)}"
    )


def _caption(context: Context, row: Row) -> str:
    form = context.format
    period = f"{form.day(instant_of(row['start']))} .. {form.day(instant_of(row['end']))}"
    name = plain(f"{row['account']}/{row['resource']}  {row['category']}")
    limit = f"  credit limit {form.su(row['credit_limit'])}" if row["credit_limit"] else ""
    state = "" if row["state"] == "active" else f"  {row['state']}"
    granted = form.su(row["deposited"])
    return f"Allocation {row['id']}  {name}  {period}  granted {granted}{limit}{state}"


COMMAND = Command(
    "show the journal of an allocation, with the sums after each entry",
    (
        "fairbank statement 1042                        the last 30 days",
        "fairbank statement -A chem_qmc -r cpu -S 2026-11-01",
        "fairbank statement 1042 -S 2026-07-01 --limit 0 --csv",
    ),
    add,
    run,
    watch=True,
    columns=COLUMNS,
)
