"""Command `fairbank alloc cap`: limit of one user."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairbank.cli.framework.command import Command
from fairbank.cli.framework.host import uid_of, user_name
from fairbank.cli.framework.options import add_allocation, add_writing
from fairbank.cli.framework.write import WriteRequest, numbered, post, tell
from fairbank.core.units import parse_su

if TYPE_CHECKING:
    from argparse import Namespace

    from fairbank.cli.framework.context import Context
    from fairbank.cli.framework.parser import Parser


def _add(parser: Parser) -> None:
    add_allocation(parser)
    parser.add_argument("user", metavar="USER", help="a user, by name or number")
    parser.add_argument(
        "amount", metavar="AMOUNT", help="the most that the user may draw in all; or: none"
    )
    add_writing(parser, reason="optional")


def _run(context: Context, options: Namespace) -> int:
    uid = uid_of(options.user, "USER")
    cap = None if options.amount == "none" else parse_su(options.amount, field="AMOUNT", least=0)
    row = context.one(f"/alloc/{options.allocation}")
    said = "no cap" if cap is None else f"a cap of {context.format.su(cap)} SU"
    what = (
        f"{user_name(uid)} has {said} in allocation {row['id']}"
        f" ({row['account']}/{row['resource']})"
    )
    body = {"cap": cap} | ({"comment": options.reason} if options.reason else {})
    answer = post(context, WriteRequest("PUT", f"/alloc/{row['id']}/cap/{uid}", body))
    return tell(context, "fairbank.drawn/1", answer, numbered(answer, what))


COMMAND = Command(
    "limit what a user may use; for PIs, coordinators, staff",
    (
        "fairbank alloc cap 1042 ayla 5000",
        "fairbank alloc cap 1042 1234 none",
        "fairbank alloc cap 1042 ayla 5k --dry-run",
    ),
    _add,
    _run,
)
