"""Verbs of `fairbank alloc` that create and change allocations."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from fairbank.cli.framework.command import Command
from fairbank.cli.framework.options import add_allocation, add_writing
from fairbank.cli.framework.selectors import find_project
from fairbank.cli.framework.write import LARGE, WriteRequest, post, tell
from fairbank.core.errors import Conflict, InvalidInput
from fairbank.core.units import parse_su
from fairbank.report.columns import instant_of

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Sequence

    from fairbank.cli.framework.context import Context
    from fairbank.cli.framework.parser import Parser
    from fairbank.report.columns import Row


def _add_create(parser: Parser) -> None:
    parser.add_argument(
        "-A",
        "--account",
        "--project",
        metavar="PROJECT",
        required=True,
        help="its account, its group, or its number",
    )
    parser.add_argument(
        "-r", "--resource", metavar="NAME", required=True, help="what is billed, such as cpu or gpu"
    )
    parser.add_argument(
        "--category",
        metavar="NAME",
        default="research",
        help="which committee and rules (default: research)",
    )
    parser.add_argument(
        "--start", metavar="TIME", default="today", help="valid from here on (default: today)"
    )
    parser.add_argument(
        "--end", metavar="TIME", required=True, help="valid up to here, not included"
    )
    parser.add_argument(
        "--amount", metavar="AMOUNT", help="what is deposited at once: 100, 12.5, 20k, 1.5M, 90m"
    )
    parser.add_argument(
        "--credit-limit", metavar="AMOUNT", help="how far below zero it may be drawn"
    )
    parser.add_argument(
        "--shared", action="store_true", help="the project's children may draw on it too"
    )
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
        "comment": options.reason,
    }
    period = f"{context.format.moment(int(start or 0))} .. {context.format.moment(int(end or 0))}"
    question = (
        f"Open an allocation of {options.resource} for {project['account']}, {period}, with"
        f" {context.format.su(body['amount'])} SU?"
    )
    is_large = body["amount"] >= LARGE or body["credit_limit"] >= LARGE
    answer = post(context, WriteRequest("POST", "/alloc", body, question if is_large else None))
    return tell(context, "fairbank.allocation/1", answer, _sentence(context, answer))


def _span(
    context: Context, options: Namespace, row: Row | None = None
) -> tuple[str | None, str | None]:
    """Return --start and --end for the request, by default those of `row`. Raises InvalidInput."""
    start, end = context.moment(options.start, "--start"), context.moment(options.end, "--end")
    begins = int(start) if start is not None else instant_of(row["start"]) if row else 0
    ends = int(end) if end is not None else instant_of(row["end"]) if row else begins + 1
    if (start or end) and ends <= begins:
        span = f"{context.format.moment(begins)} .. {context.format.moment(ends)}"
        field, remedy = (
            ("--end", "say an end after the start")
            if end
            else ("--start", "say a start before the end")
        )
        raise InvalidInput(
            f"the allocation would not end after it starts: {span}", field=field, remedy=remedy
        )
    return start, end


def _limit(said: str | None, field: str) -> int | None:
    """Return an amount that may be 0."""
    if said is None:
        return None
    return parse_su(said, field=field, least=0)


def _sentence(context: Context, row: Row | None) -> str:
    if row is None:
        return ""
    look = context.format
    period = f"{look.day(instant_of(row['start']))} .. {look.day(instant_of(row['end']))}"
    limit = f", credit limit {look.su(row['credit_limit'])} SU" if row["credit_limit"] else ""
    name = f"allocation {row['id']}: {row['account']}/{row['resource']}"
    return (
        f"entry {row['entry']}: {name}, {period}, {row['state']}{limit},"
        f" {look.left(row['available'])} SU available"
    )


def _add_set(parser: Parser) -> None:
    add_allocation(parser)
    parser.add_argument("--start", metavar="TIME", help="valid from here on")
    parser.add_argument("--end", metavar="TIME", help="valid up to here, not included")
    parser.add_argument(
        "--credit-limit", metavar="AMOUNT", help="how far below zero it may be drawn; 0 for none"
    )
    shared = parser.add_mutually_exclusive_group()
    shared.add_argument(
        "--shared",
        dest="shared",
        action="store_true",
        default=None,
        help="the project's children may draw on it too",
    )
    shared.add_argument(
        "--not-shared", dest="shared", action="store_false", default=None, help="they may not"
    )
    add_writing(parser)


def _set(context: Context, options: Namespace) -> int:
    row = context.one(f"/alloc/{options.allocation}")
    start, end = _span(context, options, row)
    wanted = {
        "start": start,
        "end": end,
        "credit_limit": _limit(options.credit_limit, "--credit-limit"),
        "shared": options.shared,
    }
    changes = {key: value for key, value in wanted.items() if value is not None}
    if not changes:
        raise InvalidInput(
            "nothing is to change",
            field="--end",
            remedy="say --start, --end, --credit-limit, --shared or --not-shared",
        )
    return _amend(context, options, row, changes, "Change", _begun_before(context, row, start))


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
    parser.add_argument(
        "end", metavar="TIME", help="valid up to here, not included: 2027-09-01, now+90days"
    )
    add_writing(parser)


def _extend(context: Context, options: Namespace) -> int:
    end = context.moment(options.end, "TIME")
    row = context.one(f"/alloc/{options.allocation}")
    if int(end or 0) <= instant_of(row["end"]):
        remedy = (
            f"name a later time, or shorten it: fairbank alloc set {row['id']} --end {options.end}"
        )
        raise InvalidInput(
            f"allocation {row['id']} is valid longer already: to {row['end']}",
            field="TIME",
            remedy=remedy,
        )
    if row["state"] == "ended":
        remedy = f"reopen it: fairbank alloc reopen {row['id']} --end {options.end} --reason '...'"
        raise Conflict(
            f"allocation {row['id']} has ended, and a longer period alone does not bring it back",
            field="TIME",
            remedy=remedy,
        )
    return _amend(context, options, row, {"end": end}, "Extend")


def _add_event(parser: Parser) -> None:
    add_allocation(parser)
    add_writing(parser)


def _event(event: str, context: Context, options: Namespace) -> int:
    return _amend(
        context,
        options,
        context.one(f"/alloc/{options.allocation}"),
        {"event": event},
        event.capitalize(),
    )


def _add_reopen(parser: Parser) -> None:
    add_allocation(parser)
    parser.add_argument(
        "--end",
        metavar="TIME",
        help="valid up to here, not included; needed where the period is over",
    )
    add_writing(parser)


def _reopen(context: Context, options: Namespace) -> int:
    end = context.moment(options.end, "--end")
    changes: dict[str, object] = (
        {"event": "reopen"} if end is None else {"event": "reopen", "end": end}
    )
    return _amend(context, options, context.one(f"/alloc/{options.allocation}"), changes, "Reopen")


def _amend(
    context: Context,
    options: Namespace,
    row: Row,
    changes: dict[str, object],
    verb: str,
    warnings: Sequence[str] = (),
) -> int:
    question = f"{verb} allocation {row['id']} ({row['account']}/{row['resource']})?"
    end, limit = changes.get("end"), changes.get("credit_limit")
    ends = changes.get("event") == "end" or (
        end is not None and int(str(end)) < instant_of(row["end"])
    )
    is_large = isinstance(limit, int) and limit >= LARGE
    body = {**changes, "comment": options.reason}
    answer = post(
        context,
        WriteRequest("PATCH", f"/alloc/{row['id']}", body, question if ends or is_large else None),
    )
    return tell(context, "fairbank.allocation/1", answer, _sentence(context, answer), warnings)


def _event_command(event: str, about: str, name: str | None = None) -> Command:
    call = f'fairbank alloc {name or event} 1042 --reason "asked by the PI"'
    return Command(
        about, (call, f"{call} --dry-run", f"{call} --yes"), _add_event, partial(_event, event)
    )


VERBS = {
    "create": Command(
        "open an allocation; for staff",
        (
            'fairbank alloc create -A chem -r cpu --end 2027-07-01 --amount 100k --reason "call 2"',
            (
                "fairbank alloc create -A chem -r gpu --start 2027-01-01 --end 2028-01-01 --reason"
                ' "call 2"'
            ),
            (
                'fairbank alloc create -A chem -r cpu --end 2027-07-01 --shared --reason "all of'
                ' us" --dry-run'
            ),
        ),
        _add_create,
        _create,
    ),
    "set": Command(
        "change period, credit limit or sharing; for staff",
        (
            'fairbank alloc set 1042 --end 2027-09-01 --reason "extended"',
            'fairbank alloc set 1042 --credit-limit 500 --reason "bridging"',
            'fairbank alloc set 1042 --not-shared --reason "own use" --dry-run',
        ),
        _add_set,
        _set,
    ),
    "extend": Command(
        "extend an allocation; for staff",
        (
            'fairbank alloc extend 1042 2027-09-01 --reason "renewed"',
            'fairbank alloc extend 1042 now+90days --reason "renewed"',
            'fairbank alloc extend 1042 2027-09-01 --reason "renewed" --dry-run',
        ),
        _add_extend,
        _extend,
    ),
    "freeze": _event_command("freeze", "let nothing be drawn for now; for staff"),
    "thaw": _event_command("thaw", "let it be drawn on again; for staff"),
    "end": _event_command("end", "end an allocation before its time; for staff"),
    "close": _event_command("end", "the same as end; for staff", "close"),
    "reopen": Command(
        "open an ended allocation again; for staff",
        (
            'fairbank alloc reopen 1042 --end 2027-09-01 --reason "extended"',
            'fairbank alloc reopen 1042 --end 2027-09-01 --reason "extended" --dry-run',
            'fairbank alloc reopen 1042 --reason "ended by mistake" --yes',
        ),
        _add_reopen,
        _reopen,
    ),
}
