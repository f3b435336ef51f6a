"""The clients' memory: every answer that they got, and what the books must therefore say."""

from __future__ import annotations

import asyncio
import random
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.faults.tables import Books
from tests.support.wire import Answer, Lost, Wire

PAUSE_SECONDS = 0.02
RESOLUTIONS, NOS = {"charge", "release"}, {"refusal", "declined"}
GOOD, REFUSED, AWAY = {200, 201}, {402, 404, 409}, 503


@dataclass
class Witness:
    """Requests by their keys, with the first whole answer to each. `left_open` are the jobs whose
    end is never reported; `lost` counts requests whose answer never came; `waits` are the seconds
    of every answer; `forgetful` is set where the database is replaced meanwhile, so that a key may
    get another answer.
    """

    told: dict[str, Answer] = field(default_factory=dict)
    asked: dict[str, dict[str, Any]] = field(default_factory=dict)
    waits: list[float] = field(default_factory=list)
    statuses: Counter[int] = field(default_factory=Counter)
    left_open: set[int] = field(default_factory=set)
    lost: int = 0
    forgetful: bool = False

    async def hear(
        self, wires: Sequence[Wire], rng: random.Random, path: str, body: dict[str, Any], key: str
    ) -> Answer:
        """Ask until there is an answer, always under the same key, each time at whichever server
        chance says.
        """
        report = path == "/job"  # reports carry their key, everything else has it in a header
        sent = {**body, "key": key} if report else body
        self.asked[key] = body
        while True:
            try:
                answer = await rng.choice(wires).ask(
                    "POST", path, sent, key=None if report else key
                )
            except Lost:
                self.lost += 1
                await asyncio.sleep(PAUSE_SECONDS)
                continue
            self.heard(answer)
            if answer.status != AWAY:
                return self.remembered(key, answer)
            await asyncio.sleep(PAUSE_SECONDS)

    def heard(self, answer: Answer) -> None:
        """Check an answer: the only failure allowed is 503, which must say when to retry."""
        self.waits.append(answer.seconds)
        self.statuses[answer.status] += 1
        assert answer.status < 500 or answer.status == AWAY, f"{answer.status}: {answer.body}"
        if answer.status == AWAY:
            assert int(answer.headers["retry-after"]) > 0

    def remembered(self, key: str, answer: Answer) -> Answer:
        """The answer, which must be the one that was given to this key before."""
        before = self.told.setdefault(key, answer)
        if before is not answer and entry_of(before) is not None and not self.forgetful:
            assert told(answer) == told(before), (
                f"{key} was answered {before.body}, then {answer.body}"
            )
        return answer

    def __or__(self, other: Witness) -> Witness:
        """Merge the records of both."""
        return Witness(
            told=self.told | other.told,
            asked=self.asked | other.asked,
            waits=self.waits + other.waits,
            statuses=self.statuses + other.statuses,
            left_open=self.left_open | other.left_open,
            lost=self.lost + other.lost,
        )

    def summary(self) -> str:
        waits = sorted(self.waits)
        middle, late, longest = (
            waits[min(len(waits) - 1, len(waits) * part // 100)] * 1_000 for part in (50, 99, 100)
        )
        refused = sum(number for status, number in self.statuses.items() if status in REFUSED)
        return (
            f"{len(self.told):,} operations acknowledged in {len(waits):,} answers ({refused:,}"
            f" refusals, {self.statuses[AWAY]:,} times 503, {self.lost:,} answers lost); waits:"
            f" median {middle:.0f} ms, 99% {late:.0f} ms, longest {longest:.0f} ms"
        )


def entry_of(answer: Answer) -> int | None:
    """The journal entry that an answer speaks of, where it speaks of one."""
    if answer.status in GOOD:
        return int(answer.data["entry"])
    found = answer.body.get("refusal", {}).get("entry")
    return None if found is None else int(found)


def told(answer: Answer) -> dict[str, Any]:
    """Return the part of an answer that a repeated answer must repeat."""
    if answer.status in GOOD:
        return {name: value for name, value in answer.data.items() if name != "again"}
    refusal: dict[str, Any] = answer.body["refusal"]
    return {name: value for name, value in refusal.items() if name != "remedies"}


# --- what the books must say ---


def check_books(witness: Witness, books: Books) -> dict[str, int]:
    """Every acknowledged operation is in the journal once, nothing else is, and all sums follow.
    Figures for the report.
    """
    journal = books.rows("SELECT * FROM journal ORDER BY book, seq")
    _check_answers(witness, journal)
    _check_resolutions(journal)
    _check_sums(journal, books)
    stuck = {row["job_id"] for row in books.rows("SELECT job_id FROM run WHERE state = 'held'")}
    assert stuck == witness.left_open, "a hold is stuck, or was let go unasked"
    kinds = Counter(entry["kind"] for entry in journal)
    lowest = min((left_of(entry) for entry in journal if entry["book"]), default=0)
    assert lowest >= 0, f"{lowest} SU-minutes were left at one commit"
    return {"entries": len(journal), "lowest": lowest, **kinds}


def _check_answers(witness: Witness, journal: list[dict[str, Any]]) -> None:
    asked = [entry for entry in journal if entry["key"] in witness.asked]
    by_key = {entry["key"]: entry for entry in asked}
    assert len(by_key) == len(asked), "what was asked once is in the journal twice"
    due = {key: answer for key, answer in witness.told.items() if entry_of(answer) is not None}
    assert by_key.keys() - due.keys() == set(), "the journal has what nobody was told of"
    assert due.keys() - by_key.keys() == set(), "what was acknowledged is not in the journal"
    for key, answer in due.items():
        entry = by_key[key]
        assert entry["id"] == entry_of(answer), f"{key}: {answer.body} is not {entry}"
        if answer.status in GOOD:
            said = answer.data
            facts = (said["amount"], said["allocation"], said["run"], said["available"])
            assert facts == (entry["amount"], entry["book"], entry["run"], left_of(entry)), (
                f"{key}: {said} is not {entry}"
            )
        else:
            assert entry["kind"] in NOS, f"{key} was refused: {entry}"


def _check_resolutions(journal: list[dict[str, Any]]) -> None:
    """One hold and one resolution for each run."""
    opened = Counter(entry["run"] for entry in journal if entry["kind"] == "hold")
    closed = Counter(entry["run"] for entry in journal if entry["kind"] in RESOLUTIONS)
    assert max(opened.values(), default=0) <= 1, opened.most_common(3)
    assert max(closed.values(), default=0) <= 1, closed.most_common(3)


def _check_sums(journal: list[dict[str, Any]], books: Books) -> None:
    """The rows say what the entries sum up to, counted here once more."""
    deposited: Counter[int] = Counter()
    drawn: dict[tuple[int, int], list[int]] = defaultdict(lambda: [0, 0])
    holds: dict[int, int] = {}
    for entry in journal:
        book, amount = entry["book"], entry["amount"]
        match entry["kind"]:
            case "deposit" | "transfer-in":
                deposited[book] += amount
            case "withdraw" | "transfer-out":
                deposited[book] -= amount
            case "hold" | "adjust":
                holds[entry["run"]] = holds.get(entry["run"], 0) + amount
                drawn[book, entry["owner"]][1] += amount
            case "charge" | "release" | "lapse":
                drawn[book, entry["owner"]][1] -= holds.pop(entry["run"], 0)
                drawn[book, entry["owner"]][0] += amount if entry["kind"] == "charge" else 0
            case "refund":
                drawn[book, entry["owner"]][0] -= amount
            case "recharge":
                drawn[book, entry["owner"]][0] += amount
    for row in books.rows("SELECT * FROM allocation"):
        mine = [sums for (book, _), sums in drawn.items() if book == row["id"]]
        charged, held = (sum(column) for column in zip(*mine, strict=True)) if mine else (0, 0)
        assert (row["deposited"], row["charged"], row["held"]) == (
            deposited[row["id"]],
            charged,
            held,
        ), f"allocation {row['id']}"
    users = {
        (row["allocation"], row["uid"]): [row["charged"], row["held"]]
        for row in books.rows("SELECT * FROM user_sum")
    }
    assert users == {pair: sums for pair, sums in drawn.items() if pair in users or sums != [0, 0]}
    assert {
        row["id"]: row["held"]
        for row in books.rows("SELECT id, held FROM run WHERE state = 'held'")
    } == holds


def left_of(entry: dict[str, Any]) -> int:
    """Return the available credit after an entry."""
    return int(entry["deposited"] + entry["credit_limit"] - entry["charged"] - entry["held"])
