"""`fairbank undo`: takes back what an entry did, by another entry the other way round. Nothing is ever deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairbank.cli.command import Command
from fairbank.cli.options import add_writing, number
from fairbank.cli.people import user_name
from fairbank.cli.posting import Posting, post, tell
from fairbank.cli.terms import shown_terms
from fairbank.report.columns import instant_of

if TYPE_CHECKING:
    from argparse import Namespace

    from fairbank.cli.desk import Desk
    from fairbank.cli.parser import Parser
    from fairbank.report.columns import Row


def add(parser: Parser) -> None:
    parser.add_argument("entry", metavar="ENTRY", type=number, help="the number that the command printed, or of a statement's line")
    add_writing(parser)


def run(desk: Desk, options: Namespace) -> int:
    path = f"/entry/{options.entry}/undo"
    planned = desk.get(path, {"comment": options.reason}, options.idempotency_key)["data"]
    told = [_shown(desk, row) for row in planned]  # the bank's own no, if it has one, came before
    what = f"undo of entry {options.entry}: {' and '.join(_said(desk, row) for row in told) or 'as before'}"
    answer = post(desk, Posting("POST", path, {"comment": options.reason}, told, f"{what}. Go on?"))
    if answer is None:
        return tell(desk, "fairbank.undo/1", None, "")
    left = "" if answer["allocation"] is None else f"; available {desk.look.left(answer['available'])} SU"
    return tell(desk, "fairbank.undo/1", answer, f"entry {answer['entry']}: {what}{left}")


def _shown(desk: Desk, row: Row) -> dict[str, Any]:
    """An entry that would be written, as people read it: with the names of its book, and what it says of which job, user or terms."""
    home = _home(desk, row)
    details = {"job": row["job_id"], "cluster": row["cluster"], **_details(desk, row)}
    moves = row["kind"] not in ("terms", "cap", "member")
    return {
        **row,
        "account": home.get("account"),
        "resource": home.get("resource"),
        "amount": row["amount"] if moves else None,
        "available": row["available"] if row["allocation"] is not None else None,
        "details": {key: value for key, value in details.items() if value is not None},
    }


def _home(desk: Desk, row: Row) -> Row:
    """The allocation, or for a role the project, that an entry is about."""
    if row["kind"] == "member":
        return desk.one(f"/project/{row['details']['project']}")
    return {} if row["allocation"] is None else desk.one(f"/alloc/{row['allocation']}")


def _details(desk: Desk, row: Row) -> dict[str, object]:
    said = row["details"] or {}
    match row["kind"]:
        case "terms":
            changed = {key: instant_of(value) if key in ("start", "end") else value for key, value in row["changed"].items()}
            return {**shown_terms(desk, changed), "undoes": said.get("undoes")}
        case "cap":
            return {"uid": row["owner_uid"], "cap": "none" if said["cap"] is None else desk.look.su(said["cap"]), "undoes": said["undoes"]}
        case "member":
            return {**said, "role": said["role"] or "none"}
        case _:
            return dict(said)


def _said(desk: Desk, row: Row) -> str:
    """What an entry does, in a few words."""
    name, details = f"allocation {row['allocation']} ({row['account']}/{row['resource']})", row["details"]
    match row["kind"]:
        case "terms":
            said = ", ".join(f"{key.replace('_', ' ')} {value}" for key, value in details.items() if key != "undoes")
            return f"{name} back to {said or 'what it was already'}"
        case "cap":
            unit = "" if details["cap"] == "none" else " SU"
            return f"the cap of {user_name(row['owner_uid'])} in {name} back to {details['cap']}{unit}"
        case "member":
            return f"the role of {user_name(row['owner_uid'])} in {row['account']} back to {details['role']}"
        case _:
            job = f" of job {row['job_id']}" if row["job_id"] is not None else ""
            return f"{row['kind']} of {desk.look.su(row['amount'])} SU{job}, {name}"


COMMAND = Command(
    "take back what an entry did, by one the other way round: credit, a refund, terms, a cap, a role",
    (
        'fairbank undo 9913533 --reason "wrong allocation"',
        'fairbank undo 9913533 --reason "wrong allocation" --dry-run',
        'fairbank undo 9913533 --reason "wrong allocation" --yes',
    ),
    add,
    run,
)
