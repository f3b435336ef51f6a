"""Language of stories about the bank: each line is a request and its outcome.

Amounts are in SU (`45`, `30m`), times in seconds. `physics/cpu` names the allocation of a project
on a resource, `physics/cpu:next` another one. After `->` comes the answer: `ok`, `again` or a
refusal, and figures of it: `remaining`, `amount`, `written_off`, `requested`, `available`,
`shortfall`, `from` (the allocation that pays), `for` (the project concerned; of a run, its
project).

    project physics
    open physics/cpu 0..1000 with 100
    hold 1 alice physics/cpu 60           -> ok remaining 40
    hold 2 bob physics/cpu 60 -> INSUFFICIENT_CREDIT requested 60 available 40 shortfall 20
    charge 1 45                           -> ok remaining 55
    remaining physics/cpu 55

A request may come `by` a user instead of staff, and from a `report`, which may have several prices.
A request without an answer expects `ok`. Lines with `remaining`, `held`, `charged`, `limit`,
`used`, `run` and `kept` only read.
`now 100` moves the clock; `policy observe` changes the rules. A `#` begins a comment.
"""

from __future__ import annotations

from itertools import count
from operator import attrgetter
from typing import Any

import msgspec

from fairbank.bank.allocation import Allocation
from fairbank.bank.entry import Kind
from fairbank.bank.policy import Overrun, Policy
from fairbank.bank.refusals import Refusal
from fairbank.bank.requests import SubmittedRequest
from fairbank.bank.rules import Done, Outcome, apply
from fairbank.bank.transaction_data import NewIds, RegistryHead, RegistryRows, TransactionData
from fairbank.core.time import Instant
from fairbank.core.units import show_su
from tests.bank.checks import check_ledger
from tests.bank.story_requests import USERS, StoryNames, options_of, run, su

STAFF = 0
POLICIES: dict[str, dict[str, Any]] = {
    "enforce": {"enforce": True},
    "observe": {"enforce": False},
    "write_off": {"overrun": Overrun.WRITE_OFF},
    "record": {"overrun": Overrun.RECORD},
    "late": {"late_charges": True},
    "no_late": {"late_charges": False},
}
FIGURES = {
    "remaining": "remaining",
    "held": "held",
    "charged": "charged",
    "limit": "terms.credit_limit",
    "deposited": "deposited",
}


def empty_data() -> TransactionData:
    """Return transaction data without rows, and with new ids for all kinds."""
    return TransactionData(
        registry=RegistryRows(head=RegistryHead()), ids=NewIds(*(count(1) for _ in range(4)))
    )


class StoryRunner:
    """Transaction data, policy and clock; plays the lines of a story."""

    def __init__(self, policy: Policy) -> None:
        self.work = empty_data()
        self.names = StoryNames()
        self.policy = policy
        self.now = Instant(0)
        self.overdraft = False
        self.outcome: Outcome | None = None

    def play(self, line: str) -> None:
        """Play one line. Raises AssertionError if the outcome differs."""
        command, _, answer = line.partition("->")
        match command.split():
            case ["now", at]:
                self.now = Instant(int(at))
            case ["policy", *words]:
                for word in words:
                    self.policy = msgspec.structs.replace(self.policy, **POLICIES[word])
            case [what, name, figure] if what in FIGURES:
                amount = attrgetter(FIGURES[what])(self.allocation(name))
                assert amount == su(figure), f"{what} is {show_su(amount)}"
            case ["used", user, name, figure]:
                sums = self.work.sums_of(self.names.allocations[name], USERS[user])
                assert sums.charged + sums.held == su(figure), f"{user} drew {sums}"
            case ["run", number, *expected]:
                self._check_run(number, expected)
            case ["kept", name, times]:
                journal = self.names.allocations.get(
                    name, 0
                )  # `registry`: refusals without an allocation
                assert sum(
                    entry.allocation == journal and entry.kind is Kind.REFUSAL
                    for entry in self.work.entries
                ) == int(times)
            case _:
                self.apply_line(command)
                self._compare(answer.split() or ["ok"])
        self.check()

    def apply_line(self, command: str) -> None:
        """Apply the request of a line without checking the outcome."""
        before = len(self.work.entries)
        _, options = options_of(command)
        actor = USERS[options["by"]] if "by" in options else STAFF
        report = options["report"].encode() if "report" in options else None
        self.outcome = apply(
            self.work,
            SubmittedRequest(
                self.names.request(command, self.now), self.now, actor, report_digest=report
            ),
            self.policy,
        )
        if isinstance(self.outcome, Done):
            self._remember(command.split(), self.outcome)
        else:  # a refusal changes nothing, but may be recorded
            assert [entry.id for entry in self.work.entries[before:]] in ([], [self.outcome.entry])

    def check(self) -> None:
        """Check all invariants."""
        self.overdraft |= not self.policy.enforce or self.policy.overrun is Overrun.RECORD
        check_ledger(self.work, overdraft=self.overdraft)

    def allocation(self, name: str) -> Allocation:
        return self.work.allocations[self.names.allocations[name]]

    def _check_run(self, number: str, expected: list[str]) -> None:
        record = self.work.runs[run(number)]
        actual = [record.state.value]
        for word, value in zip(expected[1::2], expected[2::2], strict=True):
            if word == "from":
                is_equal = record.allocation == self.names.allocations[value]
            elif word == "for":
                is_equal = record.reported.project == self.names.projects[value]
            else:
                is_equal = getattr(record, word) == su(value)
            actual += [word, value if is_equal else f"not {value}"]
        assert actual == expected, f"the run is {record}"

    def _remember(self, words: list[str], result: Done) -> None:
        if words[0] == "project" and result.project is not None:
            self.names.projects[words[1]] = result.project
            self.names.parents[result.project] = self.work.projects[result.project].parent
        if words[0] == "open" and result.allocation is not None:
            self.names.allocations[words[1]] = result.allocation
        if words[0] == "token" and result.token is not None:
            self.names.tokens[words[1]] = result.token

    def _compare(self, expected: list[str]) -> None:
        assert self.outcome is not None
        if isinstance(self.outcome, Refusal):
            actual = [self.outcome.reason.name]
            figures = {
                "available": self.outcome.available,
                "requested": self.outcome.requested,
                "shortfall": self.outcome.shortfall,
            }
        else:
            actual = ["again" if self.outcome.again else "ok"]
            figures = {
                "remaining": self.outcome.remaining,
                "written_off": self.outcome.written_off,
                "amount": self.outcome.amount,
            }
        for word, value in zip(expected[1::2], expected[2::2], strict=True):
            if word == "from":
                is_equal = self.outcome.allocation == self.names.allocations[value]
            elif word == "for":
                is_equal = self.outcome.project == self.names.projects[value]
            else:
                is_equal = figures[word] == su(value)
            actual += [word, value if is_equal else f"not {value}"]
        assert actual == expected, f"the bank answered {self.outcome}"


def play_story(story: str, policy: Policy | None = None) -> StoryRunner:
    """Play a whole story. Raises AssertionError with the line whose outcome differs."""
    runner = StoryRunner(policy or Policy())
    for number, line in enumerate(story.splitlines(), start=1):
        text = line.partition("#")[0].strip()
        if not text:
            continue
        try:
            runner.play(text)
        except Exception as wrong:
            raise AssertionError(f"line {number}: {text}\n{wrong!r}") from wrong
    return runner
