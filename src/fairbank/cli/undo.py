"""`fairbank undo`: takes back an entry that moved credit, by another entry the other way round. Nothing is ever deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairbank.cli.command import Command
from fairbank.cli.options import add_writing, number
from fairbank.cli.posting import Posting, entry, moved, post, tell
from fairbank.report.columns import instant_of
from fairbank.values.trouble import Malformed, Unknown

if TYPE_CHECKING:
    from argparse import Namespace

    from fairbank.cli.desk import Desk
    from fairbank.cli.parser import Parser
    from fairbank.report.columns import Row

HOW = {
    "transfer-in": "undo the entry that gave it: the one before, in the other allocation's statement",
    "hold": "a hold ends with its job",
    "charge": "give it back: fairbank refund JOBID",
}
"""What to do instead, of the kinds that are not undone."""


def add(parser: Parser) -> None:
    parser.add_argument("entry", metavar="ENTRY", type=number, help="the number of a deposit, a withdrawal or a transfer")
    add_writing(parser)


def run(desk: Desk, options: Namespace) -> int:
    done = _the_entry(desk, options.entry)
    posting = _reversed(desk, done, f"undo of entry {options.entry}: {options.reason}")
    answer = post(desk, posting)
    return tell(desk, "fairbank.undo/1", answer, moved(desk, answer, posting.question.removesuffix(". Go on?")))


def _the_entry(desk: Desk, number: int) -> Row:
    """The entry as its allocation's statement tells it. Raises Unknown."""
    for found in desk.get("/activity", {"after": number + 1, "limit": 1})["data"]:
        if found["activity_id"] == number:
            at, path = instant_of(found["at"]), f"/alloc/{found['allocation_id']}/statement"
            query: dict[str, object] = {"since": at, "until": at + 1, "limit": 1_000, "after": None}
            while True:
                page = desk.get(path, query)
                for row in page["data"]["entries"]:
                    if row["id"] == number:
                        return {**row, "allocation": page["data"]["allocation"]}
                if page["next"] is None:
                    break
                query["after"] = page["next"]
    raise Unknown(
        f"there is no entry {number} that moved credit, or you may not see it",
        field="ENTRY",
        remedy="the numbers are in the column ENTRY of: fairbank statement",
    )


def _reversed(desk: Desk, done: Row, comment: str) -> Posting:
    """The request that moves the same amount the other way. Raises Malformed where there is none."""
    row, amount, kind = done["allocation"], done["amount"], done["kind"]
    name = f"allocation {row['id']} ({row['account']}/{row['resource']})"
    undoes = {"undoes": done["id"]}  # the bank sees to it that an entry is undone once, whoever asks and however often
    body = {"amount": amount, "comment": comment, **undoes}
    what = f"undo of entry {done['id']}, a {kind.removesuffix('-out')} of {desk.look.su(amount)} SU"
    if kind in ("deposit", "withdraw"):
        verb, sign, way = ("withdraw", -1, "out of") if kind == "deposit" else ("deposit", 1, "into")
        told = [entry(verb, comment, undoes, allocation=row, amount=sign * amount)]
        return Posting("POST", f"/alloc/{row['id']}/{verb}", body, told, f"{what}: {verb} {way} {name}. Go on?")
    if kind == "transfer-out":
        other = desk.one(f"/alloc/{done['details']['to']}")
        told = [
            entry("transfer-out", comment, allocation=other, amount=-amount),
            entry("transfer-in", comment, undoes, allocation=row, amount=amount),
        ]
        return Posting("POST", f"/alloc/{other['id']}/transfer", {"to": row["id"], **body}, told, f"{what}: back to {name}. Go on?")
    remedy = HOW.get(kind, "only deposits, withdrawals and transfers are undone")
    raise Malformed(f"entry {done['id']} is a {kind}", field="ENTRY", remedy=remedy)


COMMAND = Command(
    "take back a deposit, a withdrawal or a transfer by an entry the other way round",
    (
        'fairbank undo 9913533 --reason "wrong allocation"',
        'fairbank undo 9913533 --reason "wrong allocation" --dry-run',
        'fairbank undo 9913533 --reason "wrong allocation" --yes',
    ),
    add,
    run,
)
