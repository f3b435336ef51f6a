"""`fairbank undo`: takes back what an entry did, by another entry the other way round. Nothing is ever deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairbank.cli.command import Command
from fairbank.cli.options import add_writing, number
from fairbank.cli.people import user_name
from fairbank.cli.posting import Posting, entry, moved, post, tell
from fairbank.cli.terms import shown_terms
from fairbank.values.trouble import Conflict, Malformed, Unknown

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
        raise Malformed(f"entry {done['id']} is a {done['kind']}", field="ENTRY", remedy=INSTEAD[done["kind"]].format(**said))
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


EVENTS = {("active", "frozen"): "thaw", ("frozen", "active"): "freeze", ("active", "ended"): "reopen", ("ended", "active"): "end"}
"""What brings an allocation back, by the state before the entry and the state after it."""


def _terms(desk: Desk, done: Row, row: Row, comment: str) -> Posting:
    before = _before(desk, done, "terms")
    if before is None:
        raise Unknown(f"the terms before entry {done['id']} are not to be seen", field="ENTRY", remedy="fairbank audit verify")
    back = _changes(done, before)
    states = before["details"]["state"], done["details"]["state"]
    if states[0] != states[1] and states not in EVENTS:
        steps = f"fairbank alloc reopen {row['id']}, then fairbank alloc freeze {row['id']}, each with --reason '...'"
        raise Malformed(f"no one step leads from {states[1]} back to {states[0]}", field="ENTRY", remedy=steps)
    if states in EVENTS:
        back["event"] = EVENTS[states]
    told = [entry("terms", comment, {**shown_terms(desk, back), "undoes": done["id"]}, allocation=row)]
    body = {**{key: str(value) if key in ("start", "end") else value for key, value in back.items()}, "undoes": done["id"]}
    shown = shown_terms(desk, {**{key: value for key, value in back.items() if key != "event"}, **_state(back, states[0])})
    said = ", ".join(f"{key.replace('_', ' ')} {value}" for key, value in shown.items()) or "what it was already"
    question = f"undo of entry {done['id']}, new terms of {_name(row)}: back to {said}. Go on?"
    return Posting("PATCH", f"/alloc/{row['id']}", {**body, "comment": comment}, told, question)


def _state(back: Mapping[str, Any], before: str) -> dict[str, str]:
    return {"state": before} if "event" in back else {}


def _changes(done: Row, before: Row) -> dict[str, Any]:
    """The terms that the entry changed, as they were."""
    was, made = _facts(before), _facts(done)
    return {key: was[key] for key in ("start", "end", "shared", "credit_limit") if was[key] != made[key]}


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
    """The entry of its kind before this one. Raises Conflict when what this one said stands no more."""
    query: dict[str, object] = {"allocation": done["allocation"], "about": about, "limit": 1, **whose}
    (last,) = desk.get("/entry", query)["data"]
    if (last["details"] or {}).get("undoes") == done["id"]:
        raise Conflict(f"entry {done['id']} was taken back by entry {last['id']}", field="ENTRY", remedy=f"{_SEE} {done['allocation']}")
    if _facts(last) != _facts(done):
        remedy = f"undo that first: fairbank undo {last['id']} --reason '...'"
        raise Conflict(f"entry {last['id']} changed it after entry {done['id']}", field="ENTRY", remedy=remedy)
    return next(iter(desk.get("/entry", {**query, "after": done["id"]})["data"]), None)


_SEE = "look at both: fairbank statement"


def _facts(row: Row) -> dict[str, Any]:
    return {**row["details"], "undoes": None, "credit_limit": row["credit_limit"] if row["kind"] != "cap" else None}


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
