"""Verbs of `fairbank alloc` that create and change allocations, and limit their users."""

from __future__ import annotations

from functools import partial
from shlex import quote
from typing import TYPE_CHECKING

from fairbank.cli.framework.command import Command
from fairbank.cli.framework.host import uid_of, user_name
from fairbank.cli.framework.options import add_allocation, add_option, add_user, add_writing
from fairbank.cli.framework.selectors import allocation_to_change, find_project
from fairbank.cli.framework.write import LARGE, WriteRequest, allocation_name, write
from fairbank.core.errors import Conflict, InvalidInput
from fairbank.core.units import parse_su
from fairbank.report.columns import instant_of

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Mapping, Sequence

    from fairbank.cli.framework.context import Context
    from fairbank.cli.framework.parser import Parser
    from fairbank.report.columns import Row


def _add_create(parser: Parser) -> None:
    about = "its account, its group, or its number"
    add_option(parser, "-A, --account, --project PROJECT", about, required=True)
    about = "what is billed, such as cpu or gpu"
    add_option(parser, "-r, --resource NAME", about, required=True)
    about = "which committee and rules (default: research)"
    add_option(parser, "--category NAME", about, default="research")
    add_option(parser, "--start TIME", "valid from here on (default: today)", default="today")
    add_option(parser, "--end TIME", "valid up to here, not included", required=True)
    add_option(parser, "--amount AMOUNT", "what is deposited at once: 100, 12.5, 20k, 90m")
    add_option(parser, "--credit-limit AMOUNT", "how far below zero the remaining credit may go")
    add_option(parser, "--shared", "the project's children may draw on it too")
    about = "short-term allocation: during its period all jobs of the project run there, no others"
    add_option(parser, "--partition NAME", about)
    about = "the same for a reservation of Slurm; both may be given"
    add_option(parser, "--reservation NAME", about)
    add_writing(parser)


def _create(context: Context, options: Namespace) -> int:
    project = find_project(context, options.account, "--account")
    start, end = _span(context, options)
    body = {
        "project": project["id"],
        "resource": options.resource,
        "category": options.category,
        "start": start,
        "end": end,
        "amount": _limit(options.amount, "--amount") or 0,
        "credit_limit": _limit(options.credit_limit, "--credit-limit") or 0,
        "shared": options.shared,
        "partition": options.partition,
        "reservation": options.reservation,
    }
    period = f"{context.format.moment(int(start or 0))} .. {context.format.moment(int(end or 0))}"
    question = (
        f"Open an allocation of {options.resource} for {project['account']}, {period}, with"
        f" {context.format.su_text(body['amount'])}?"
    )
    is_large = body["amount"] >= LARGE or body["credit_limit"] >= LARGE
    request = WriteRequest("POST", "/alloc", body, question if is_large else None)
    return write(context, "fairbank.allocation/1", request, partial(_sentence, context))


def _span(
    context: Context, options: Namespace, row: Row | None = None
) -> tuple[str | None, str | None]:
    """Return --start and --end for the request, by default those of `row`. Raises InvalidInput."""
    start, end = context.moment(options.start, "--start"), context.moment(options.end, "--end")
    begins = int(start) if start is not None else instant_of(row["start"]) if row else 0
    ends = int(end) if end is not None else instant_of(row["end"]) if row else begins + 1
    if (start or end) and ends <= begins:
        span = f"{context.format.moment(begins)} .. {context.format.moment(ends)}"
        raise InvalidInput(
            f"the allocation would not end after it starts: {span}",
            field="--end" if end else "--start",
            remedy="name an end after the start" if end else "name a start before the end",
        )
    return start, end


def _limit(text: str | None, field: str) -> int | None:
    """Return an amount that may be 0."""
    return None if text is None else parse_su(text, field=field, least=0)


def _sentence(context: Context, row: Row) -> str:
    form = context.format
    period = form.days(instant_of(row["start"]), instant_of(row["end"]))
    limit = row["credit_limit"]
    lent = f", credit limit {form.su_text(limit)}" if limit else ""
    name = f"allocation {row['id']}: {row['account']}/{row['resource']}"
    return f"{name}, {period}, {row['state']}{lent}, {form.su_text(row['remaining'])} remaining"


def _add_set(parser: Parser) -> None:
    add_allocation(parser)
    add_option(parser, "--start TIME", "valid from here on")
    add_option(parser, "--end TIME", "valid up to here, not included")
    about = "how far below zero the remaining credit may go; 0 for none"
    add_option(parser, "--credit-limit AMOUNT", about)
    add_option(parser, "--category NAME", "its category from now on; while nothing was charged")
    about = "what it is of from now on, such as gpu; while nothing was charged"
    add_option(parser, "--new-resource NAME", about)
    shared = parser.add_mutually_exclusive_group()
    about = "the project's children may draw on it too"
    add_option(shared, "--shared", about, action="store_true", default=None)
    add_option(shared, "--not-shared", "they may not", dest="shared", action="store_false")
    add_writing(parser)


def _set(context: Context, options: Namespace) -> int:
    row = allocation_to_change(context)
    start, end = _span(context, options, row)
    wanted = {
        "start": start,
        "end": end,
        "credit_limit": _limit(options.credit_limit, "--credit-limit"),
        "shared": options.shared,
        "category": options.category,
        "resource": options.new_resource,
    }
    changes = {key: value for key, value in wanted.items() if value is not None}
    if not changes:
        raise InvalidInput(
            "nothing is to change",
            field="--end",
            remedy="add --start, --end, --credit-limit, --category, --new-resource, --shared or"
            " --not-shared",
        )
    return _amend(context, row, changes, "Change", _begun_before(context, row, start))


def _begun_before(context: Context, row: Row, start: str | None) -> list[str]:
    """Return a warning if jobs that hold credit began before the new start."""
    query = {"allocation": row["id"], "state": "held", "until": start, "limit": 1}
    if start is None or not context.get("/job", query)["data"]:
        return []
    return [
        f"Jobs that began before {context.format.moment(int(start))} hold credit here: they go on,"
        " and are charged here all the same."
    ]


def _add_extend(parser: Parser) -> None:
    add_allocation(parser)
    add_option(parser, "end TIME", "valid up to here, not included: 2027-09-01, now+90days")
    add_writing(parser)


def _extend(context: Context, options: Namespace) -> int:
    row = allocation_to_change(context)
    end = context.moment(options.end, "TIME")
    if int(end or 0) <= instant_of(row["end"]):
        raise InvalidInput(
            f"allocation {row['id']} is valid longer already: to {row['end']}",
            field="TIME",
            remedy="name a later time, or shorten it:"
            f" fairbank alloc set {row['id']} --end {quote(options.end)}",
        )
    if row["state"] == "ended":
        raise Conflict(
            f"allocation {row['id']} has ended, and a longer period alone does not bring it back",
            field="TIME",
            remedy="reopen it:"
            f" fairbank alloc reopen {row['id']} --end {quote(options.end)} --reason '...'",
        )
    return _amend(context, row, {"end": end}, "Extend")


def _add_event(parser: Parser) -> None:
    add_allocation(parser)
    add_writing(parser)


def _event(event: str, context: Context, options: Namespace) -> int:
    row = allocation_to_change(context)
    return _amend(context, row, {"event": event}, event.capitalize())


def _add_reopen(parser: Parser) -> None:
    add_allocation(parser)
    about = "valid up to here, not included; needed where the period is over"
    add_option(parser, "--end TIME", about)
    add_writing(parser)


def _reopen(context: Context, options: Namespace) -> int:
    end = context.moment(options.end, "--end")
    changes = {"event": "reopen"} if end is None else {"event": "reopen", "end": end}
    return _amend(context, allocation_to_change(context), changes, "Reopen")


def _add_removal(parser: Parser) -> None:
    add_allocation(parser)
    add_writing(parser, reason="optional")


def _remove(context: Context, options: Namespace) -> int:
    row = allocation_to_change(context)
    name = allocation_name(row)
    question = f"Remove {name}? Staff still read its journal."
    request = WriteRequest("DELETE", f"/alloc/{row['id']}", None, question, needs_yes=True)

    def sentence(answer: Row) -> str:
        return f"{name} is removed; bring it back: fairbank undo {answer['entry']} --reason '...'"

    return write(context, "fairbank.granted/1", request, sentence)


def _amend(
    context: Context,
    row: Row,
    changes: Mapping[str, object],
    verb: str,
    warnings: Sequence[str] = (),
) -> int:
    end, limit = changes.get("end"), changes.get("credit_limit")
    ends = changes.get("event") == "end" or (
        end is not None and int(str(end)) < instant_of(row["end"])
    )
    is_large = isinstance(limit, int) and limit >= LARGE
    question = f"{verb} {allocation_name(row)}?" if ends or is_large else None
    request = WriteRequest("PATCH", f"/alloc/{row['id']}", changes, question, needs_yes=ends)
    sentence = partial(_sentence, context)
    return write(context, "fairbank.allocation/1", request, sentence, warnings)


def _add_cap(parser: Parser) -> None:
    add_allocation(parser)
    add_user(parser)
    add_option(parser, "amount AMOUNT", "the most that the user may use in all; or: none")
    add_writing(parser, reason="optional")


def _cap(context: Context, options: Namespace) -> int:
    row = allocation_to_change(context)
    uid = uid_of(options.user, "USER")
    cap = None if options.amount == "none" else parse_su(options.amount, field="AMOUNT", least=0)
    limit = "no cap" if cap is None else f"a cap of {context.format.su_text(cap)}"
    what = f"{user_name(uid)} has {limit} in {allocation_name(row)}"
    request = WriteRequest("PUT", f"/alloc/{row['id']}/cap/{uid}", {"cap": cap})
    return write(context, "fairbank.granted/1", request, what)


def _event_command(event: str, about: str) -> Command:
    call = '{} 1042 --reason "asked by the PI"'
    return Command(
        about, (call, f"{call} --dry-run", f"{call} --yes"), _add_event, partial(_event, event)
    )


VERBS = {
    "create": Command(
        "open an allocation; for staff",
        (
            '{} -A chem -r cpu --end 2027-07-01 --amount 100k --reason "call 2"',
            '{} -A chem -r gpu --start 2027-01-01 --end 2028-01-01 --reason "call 2"',
            '{} -A course -r gpu --end now+3days --partition course --reason "spring school"',
        ),
        _add_create,
        _create,
    ),
    "set": Command(
        "change the terms of an allocation; for staff",
        (
            '{} 1042 --end 2027-09-01 --reason "extended"',
            '{} 1042 --category startup --new-resource gpu --reason "granted by mistake"',
            '{} 1042 --not-shared --reason "own use" --dry-run',
        ),
        _add_set,
        _set,
    ),
    "extend": Command(
        "extend an allocation; for staff",
        (
            '{} 1042 2027-09-01 --reason "renewed"',
            '{} 1042 now+90days --reason "renewed"',
            '{} 1042 2027-09-01 --reason "renewed" --dry-run',
        ),
        _add_extend,
        _extend,
    ),
    "freeze": _event_command("freeze", "stop the use of the credit for now; for staff"),
    "thaw": _event_command("thaw", "allow the use of the credit again; for staff"),
    "end": _event_command("end", "end an allocation before its time; for staff"),
    "reopen": Command(
        "open an ended allocation again; for staff",
        (
            '{} 1042 --end 2027-09-01 --reason "extended"',
            '{} 1042 --end 2027-09-01 --reason "extended" --dry-run',
            '{} 1042 --reason "ended by mistake" --yes',
        ),
        _add_reopen,
        _reopen,
    ),
    "remove": Command(
        "remove an allocation in which no credit has moved; for staff",
        ("{} 1042", "{} -A chem -r gpu --yes", "{} 1042 --dry-run"),
        _add_removal,
        _remove,
    ),
    "cap": Command(
        "limit what a user may use; for PIs, coordinators, staff",
        ("{} 1042 ayla 5000", "{} 1042 1234 none", "{} 1042 ayla 5k --dry-run"),
        _add_cap,
        _cap,
    ),
}
