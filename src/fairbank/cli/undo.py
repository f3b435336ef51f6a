"""`fairbank undo`: takes back what an entry did, by another entry the other way round. Nothing is ever deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairbank.cli.command import Command
from fairbank.cli.options import add_writing, number
from fairbank.cli.people import user_name
from fairbank.cli.posting import Posting, entry, moved, post, tell
from fairbank.cli.terms import shown_terms
from fairbank.values.trouble import Malformed, Unknown

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable, Mapping

    from fairbank.cli.desk import Desk
    from fairbank.cli.parser import Parser
    from fairbank.report.columns import Row

INSTEAD = {
    "transfer-in": "undo the entry that gave it: the one before, in the other allocation's statement",
    "hold": "a hold ends with its job",
    "adjust": "a hold is as large as its job's time limit says: change that",
    "charge": "give it back: fairbank refund {job} --reason '...'",
    "release": "nothing was charged; what a run cost after all is for its cluster to report",
    "lapse": "nothing was charged; what a run cost after all is for its cluster to report",
    "recharge": "refund it anew: fairbank refund {job} {amount} --reason '...'",
    "open": "end it before its time: fairbank alloc end {allocation} --reason '...'",
}
"""What to do instead, of the kinds that are not undone."""


def add(parser: Parser) -> None:
    parser.add_argument("entry", metavar="ENTRY", type=number, help="the number that the command printed, or of a statement's line")
    add_writing(parser)


def run(desk: Desk, options: Namespace) -> int:
    done = _the_entry(desk, options.entry)
    row = desk.one(f"/alloc/{done['allocation']}")
    comment = f"undo of entry {options.entry}: {options.reason}"
    if done["kind"] not in HOW:
        said = {"job": done["job_id"] or "JOBID", "amount": f"{done['amount']}m", "allocation": row["id"]}
        raise Malformed(
            f"entry {done['id']} is of the kind {done['kind']}, which is not undone",
            field="ENTRY",
            remedy=INSTEAD[done["kind"]].format(**said),
        )
    posting = HOW[done["kind"]](desk, done, row, comment)
    answer = post(desk, posting)
    what = posting.question.removesuffix(". Go on?")
    return tell(desk, "fairbank.undo/1", answer, moved(desk, answer, what))


def _the_entry(desk: Desk, number: int) -> Row:
    """The entry, in whichever book. Raises Unknown."""
    for found in desk.get("/entry", {"after": number + 1, "limit": 1})["data"]:
        row: Row = found
        if row["id"] == number:
            return row
    raise Unknown(
        f"there is no entry {number} in the book of an allocation, or you may not see it",
        field="ENTRY",
        remedy="the numbers are in the column ENTRY of: fairbank statement; members and tokens have commands of their own to go back",
    )


def _name(row: Row) -> str:
    return f"allocation {row['id']} ({row['account']}/{row['resource']})"


def _what(desk: Desk, done: Row) -> str:
    return f"undo of entry {done['id']}, a {done['kind'].removesuffix('-out')} of {desk.look.su(done['amount'])} SU"


# How each kind is taken back: the request that does the opposite. The bank sees to it that it is done once, whoever asks and however often.


def _credit(desk: Desk, done: Row, row: Row, comment: str) -> Posting:
    verb, sign, way = ("withdraw", -1, "out of") if done["kind"] == "deposit" else ("deposit", 1, "into")
    undoes = {"undoes": done["id"]}
    told = [entry(verb, comment, undoes, allocation=row, amount=sign * done["amount"])]
    body = {"amount": done["amount"], "comment": comment, **undoes}
    return Posting("POST", f"/alloc/{row['id']}/{verb}", body, told, f"{_what(desk, done)}: {verb} {way} {_name(row)}. Go on?")


def _transfer(desk: Desk, done: Row, row: Row, comment: str) -> Posting:
    other, undoes, amount = desk.one(f"/alloc/{done['details']['to']}"), {"undoes": done["id"]}, done["amount"]
    told = [
        entry("transfer-out", comment, allocation=other, amount=-amount),
        entry("transfer-in", comment, undoes, allocation=row, amount=amount),
    ]
    body = {"to": row["id"], "amount": amount, "comment": comment, **undoes}
    return Posting("POST", f"/alloc/{other['id']}/transfer", body, told, f"{_what(desk, done)}: back to {_name(row)}. Go on?")


def _refund(desk: Desk, done: Row, row: Row, comment: str) -> Posting:
    undoes = {"undoes": done["id"]}
    told = [entry("recharge", comment, {"job": done["job_id"], **undoes}, allocation=row, amount=-done["amount"])]
    question = f"{_what(desk, done)}: charge job {done['job_id']} again to {_name(row)}. Go on?"
    return Posting("POST", f"/job/{done['run']}/recharge", {"comment": comment, **undoes}, told, question)


def _terms(desk: Desk, done: Row, row: Row, comment: str) -> Posting:
    before = _before(desk, done, "terms")
    if before is None:
        raise Unknown(f"the terms before entry {done['id']} are not to be seen", field="ENTRY", remedy="fairbank audit verify")
    shown = shown_terms(desk, _changes(done, before))
    told = [entry("terms", comment, {**shown, "undoes": done["id"]}, allocation=row)]
    said = ", ".join(f"{key.replace('_', ' ')} {value}" for key, value in shown.items()) or "what it was already"
    question = f"undo of entry {done['id']}, new terms of {_name(row)}: back to {said}. Go on?"
    return Posting("PATCH", f"/alloc/{row['id']}", {"undoes": done["id"], "comment": comment}, told, question)


def _changes(done: Row, before: Row) -> dict[str, Any]:
    """The terms that the entry changed, as they were."""
    was, made = ({**each["details"], "credit_limit": each["credit_limit"]} for each in (before, done))
    return {key: was[key] for key in ("start", "end", "shared", "credit_limit", "state") if was[key] != made[key]}


def _cap(desk: Desk, done: Row, row: Row, comment: str) -> Posting:
    uid = done["owner_uid"]
    before = _before(desk, done, "caps", owner_uid=uid)
    cap = None if before is None else before["details"]["cap"]
    told = [entry("cap", comment, {"uid": uid, "cap": "none" if cap is None else desk.look.su(cap), "undoes": done["id"]}, allocation=row)]
    said = "none" if cap is None else f"{desk.look.su(cap)} SU"
    question = f"undo of entry {done['id']}, the cap of {user_name(uid)} in {_name(row)}: back to {said}. Go on?"
    body = {"cap": cap, "undoes": done["id"], "comment": comment}
    return Posting("PUT", f"/alloc/{row['id']}/cap/{uid}", body, told, question)


def _before(desk: Desk, done: Row, about: str, **whose: object) -> Row | None:
    """The entry before this one that said the same of its kind: what the bank puts back, if no later one stands against it."""
    query: dict[str, object] = {"allocation": done["allocation"], "about": about, "limit": 1, "after": done["id"], **whose}
    return next(iter(desk.get("/entry", query)["data"]), None)


HOW: Mapping[str, Callable[[Desk, Row, Row, str], Posting]] = {
    "deposit": _credit,
    "withdraw": _credit,
    "transfer-out": _transfer,
    "refund": _refund,
    "terms": _terms,
    "cap": _cap,
}

COMMAND = Command(
    "take back a deposit, withdrawal, transfer, refund, new terms or a cap, by an entry the other way round",
    (
        'fairbank undo 9913533 --reason "wrong allocation"',
        'fairbank undo 9913533 --reason "wrong allocation" --dry-run',
        'fairbank undo 9913533 --reason "wrong allocation" --yes',
    ),
    add,
    run,
)
