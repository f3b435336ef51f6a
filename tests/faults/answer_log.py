"""Answers that clients received, and the check that the ledger agrees with them."""

from __future__ import annotations

import asyncio
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.faults.ledger_tables import LedgerTables
from tests.support.wire import Answer, ResponseLost, Wire

PAUSE_SECONDS = 0.02
RESOLUTIONS, REFUSALS = {"charge", "release"}, {"refusal", "declined"}
SUCCESS, REFUSED, UNAVAILABLE = {200, 201}, {402, 404, 409}, 503


@dataclass
class AnswerLog:
    """Requests and first complete answers by key. `left_open` has jobs whose end is never reported;
    `lost` counts requests without an answer; `latencies` are in seconds; `replaced` is set if the
    database is replaced, so that a key may get another answer.
    """

    answers: dict[str, Answer] = field(default_factory=dict)
    requests: dict[str, dict[str, Any]] = field(default_factory=dict)
    latencies: list[float] = field(default_factory=list)
    statuses: Counter[int] = field(default_factory=Counter)
    left_open: set[int] = field(default_factory=set)
    lost: int = 0
    replaced: bool = False

    async def request(
        self, wires: Sequence[Wire], rng: random.Random, path: str, body: dict[str, Any], key: str
    ) -> Answer:
        """Send a request with the same key until it is answered, each time to a random server."""
        report = path == "/job"  # the key of a report is in its body, all others are in a header
        sent = {**body, "key": key} if report else body
        self.requests[key] = body
        while True:
            try:
                answer = await rng.choice(wires).ask(
                    "POST", path, sent, key=None if report else key
                )
            except ResponseLost:
                self.lost += 1
                await asyncio.sleep(PAUSE_SECONDS)
                continue
            self.check_answer(answer)
            if answer.status != UNAVAILABLE:
                return self.check_repeated(key, answer)
            await asyncio.sleep(PAUSE_SECONDS)

    def check_answer(self, answer: Answer) -> None:
        """Check an answer: the only failure allowed is 503, which must say when to retry."""
        self.latencies.append(answer.seconds)
        self.statuses[answer.status] += 1
        assert answer.status < 500 or answer.status == UNAVAILABLE, (
            f"{answer.status}: {answer.body}"
        )
        if answer.status == UNAVAILABLE:
            assert int(answer.headers["retry-after"]) > 0

    def check_repeated(self, key: str, answer: Answer) -> Answer:
        """Return the answer, and check that it equals the first one of this key."""
        before = self.answers.setdefault(key, answer)
        if before is not answer and entry_of(before) is not None and not self.replaced:
            assert repeated_part(answer) == repeated_part(before), (
                f"{key} was answered {before.body}, then {answer.body}"
            )
        return answer

    def has_answers(self, number: int) -> Callable[[], bool]:
        """Return a condition: so many keys have an answer."""
        return lambda: len(self.answers) >= number

    def has_latencies(self, number: int) -> Callable[[], bool]:
        """Return a condition: so many answers arrived, repeated ones included."""
        return lambda: len(self.latencies) >= number

    def __or__(self, other: AnswerLog) -> AnswerLog:
        """Merge two logs."""
        return AnswerLog(
            answers=self.answers | other.answers,
            requests=self.requests | other.requests,
            latencies=self.latencies + other.latencies,
            statuses=self.statuses + other.statuses,
            left_open=self.left_open | other.left_open,
            lost=self.lost + other.lost,
        )

    def summary(self) -> str:
        latencies = sorted(self.latencies)
        middle, slow, longest = (
            latencies[min(len(latencies) - 1, len(latencies) * part // 100)] * 1_000
            for part in (50, 99, 100)
        )
        refused = sum(number for status, number in self.statuses.items() if status in REFUSED)
        return (
            f"{len(self.answers):,} operations acknowledged in {len(latencies):,} answers"
            f" ({refused:,} refusals, {self.statuses[UNAVAILABLE]:,} times 503,"
            f" {self.lost:,} answers lost); latency:"
            f" median {middle:.0f} ms, 99% {slow:.0f} ms, longest {longest:.0f} ms"
        )


def entry_of(answer: Answer) -> int | None:
    """Return the number of the answer's journal entry, if it has one."""
    if answer.status in SUCCESS:
        return int(answer.data["entry"])
    result = answer.body.get("refusal", {}).get("entry")
    return None if result is None else int(result)


def repeated_part(answer: Answer) -> dict[str, Any]:
    """Return the part of an answer that a repeated answer must repeat."""
    if answer.status in SUCCESS:
        return {name: value for name, value in answer.data.items() if name != "again"}
    refusal: dict[str, Any] = answer.body["refusal"]
    return {name: value for name, value in refusal.items() if name != "remedies"}


# --- check of the ledger ---


def check_ledger(answer_log: AnswerLog, tables: LedgerTables) -> dict[str, int]:
    """Check that every acknowledged request is in the journal once, that nothing else is, and that
    all sums agree. Return figures for the summary.
    """
    journal = tables.rows("SELECT * FROM journal ORDER BY allocation, seq")
    _check_answers(answer_log, journal)
    _check_resolutions(journal)
    _check_sums(journal, tables)
    open_holds = {
        row["job_id"] for row in tables.rows("SELECT job_id FROM run WHERE state = 'held'")
    }
    assert open_holds == answer_log.left_open, (
        "a hold was not closed, or was closed without a report"
    )
    kinds = Counter(entry["kind"] for entry in journal)
    lowest = min((available_after(entry) for entry in journal if entry["allocation"]), default=0)
    assert lowest >= 0, f"{lowest} SU-minutes were left at one commit"
    return {"entries": len(journal), "lowest": lowest, **kinds}


def _check_answers(answer_log: AnswerLog, journal: list[dict[str, Any]]) -> None:
    answered = [entry for entry in journal if entry["key"] in answer_log.requests]
    by_key = {entry["key"]: entry for entry in answered}
    assert len(by_key) == len(answered), "a request is in the journal twice"
    due = {
        key: answer for key, answer in answer_log.answers.items() if entry_of(answer) is not None
    }
    assert by_key.keys() - due.keys() == set(), "an entry of the journal was not acknowledged"
    assert due.keys() - by_key.keys() == set(), "an acknowledged request is not in the journal"
    for key, answer in due.items():
        entry = by_key[key]
        assert entry["id"] == entry_of(answer), f"{key}: {answer.body} is not {entry}"
        if answer.status in SUCCESS:
            data = answer.data
            facts = (data["amount"], data["allocation"], data["run"], data["available"])
            assert facts == (
                entry["amount"],
                entry["allocation"],
                entry["run"],
                available_after(entry),
            ), f"{key}: {data} is not {entry}"
        else:
            assert entry["kind"] in REFUSALS, f"{key} was refused: {entry}"


def _check_resolutions(journal: list[dict[str, Any]]) -> None:
    """Check that each run has at most one hold and one resolution."""
    opened = Counter(entry["run"] for entry in journal if entry["kind"] == "hold")
    closed = Counter(entry["run"] for entry in journal if entry["kind"] in RESOLUTIONS)
    assert max(opened.values(), default=0) <= 1, opened.most_common(3)
    assert max(closed.values(), default=0) <= 1, closed.most_common(3)


def _check_sums(journal: list[dict[str, Any]], tables: LedgerTables) -> None:
    """Check that the rows equal the sums of the entries."""
    deposited: Counter[int] = Counter()
    used: dict[tuple[int, int], list[int]] = defaultdict(lambda: [0, 0])
    holds: dict[int, int] = {}
    for entry in journal:
        number, amount = entry["allocation"], entry["amount"]
        match entry["kind"]:
            case "deposit" | "transfer-in":
                deposited[number] += amount
            case "withdraw" | "transfer-out":
                deposited[number] -= amount
            case "hold" | "adjust":
                holds[entry["run"]] = holds.get(entry["run"], 0) + amount
                used[number, entry["owner"]][1] += amount
            case "charge" | "release" | "lapse":
                used[number, entry["owner"]][1] -= holds.pop(entry["run"], 0)
                used[number, entry["owner"]][0] += amount if entry["kind"] == "charge" else 0
            case "refund":
                used[number, entry["owner"]][0] -= amount
            case "recharge":
                used[number, entry["owner"]][0] += amount
    for row in tables.rows("SELECT * FROM allocation"):
        user_sums = [sums for (number, _), sums in used.items() if number == row["id"]]
        charged, held = (
            (sum(column) for column in zip(*user_sums, strict=True)) if user_sums else (0, 0)
        )
        assert (row["deposited"], row["charged"], row["held"]) == (
            deposited[row["id"]],
            charged,
            held,
        ), f"allocation {row['id']}"
    users = {
        (row["allocation"], row["uid"]): [row["charged"], row["held"]]
        for row in tables.rows("SELECT * FROM user_sum")
    }
    assert users == {pair: sums for pair, sums in used.items() if pair in users or sums != [0, 0]}
    assert {
        row["id"]: row["held"]
        for row in tables.rows("SELECT id, held FROM run WHERE state = 'held'")
    } == holds


def available_after(entry: dict[str, Any]) -> int:
    """Return the available credit after an entry."""
    return int(entry["deposited"] + entry["credit_limit"] - entry["charged"] - entry["held"])
