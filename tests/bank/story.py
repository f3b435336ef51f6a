"""Language of stories about the bank: each line is a request and its outcome.

Amounts are in SU (`45`, `30m`), times in seconds. `physics/cpu` names the allocation of a project
on a resource, `physics/cpu:next` another one. After `->` comes the answer: `ok`, `again` or a
refusal, and figures of it: `left`, `amount`, `off` (written off), `asked`, `short`, `from` (the
allocation that pays), `for` (the project concerned; of a run, its project).

    project physics
    open physics/cpu 0..1000 with 100
    hold 1 alice physics/cpu 60           -> ok left 40
    hold 2 bob physics/cpu 60             -> INSUFFICIENT_CREDIT asked 60 left 40 short 20
    charge 1 45                           -> ok left 55
    left physics/cpu 55

A request may come `by` a user instead of staff, and from a `report`, which may have several prices.
A request without an answer expects `ok`. Lines with `left`, `held`, `charged`, `limit`, `used`,
`run` and `kept` only read.
`now 100` moves the clock; `policy observe` changes the rules. A `#` begins a comment.
"""

from __future__ import annotations

from itertools import count
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
from tests.bank.cast import USERS, Cast, options_of, run, su
from tests.bank.checks import check_books

STAFF = 0
POLICIES: dict[str, dict[str, Any]] = {
    "enforce": {"enforce": True},
    "observe": {"enforce": False},
    "write_off": {"overrun": Overrun.WRITE_OFF},
    "record": {"overrun": Overrun.RECORD},
    "late": {"late_charges": True},
    "no_late": {"late_charges": False},
}
LOOKS = {
    "left": "available",
    "held": "held",
    "charged": "charged",
    "limit": "credit_limit",
    "deposited": "deposited",
}


def nothing_yet() -> TransactionData:
    """Return transaction data without rows, and with new ids for all kinds."""
    return TransactionData(
        registry=RegistryRows(head=RegistryHead()), ids=NewIds(*(count(1) for _ in range(4)))
    )


class Teller:
    """Transaction data, policy and clock; plays the lines of a story."""

    def __init__(self, policy: Policy) -> None:
        self.work = nothing_yet()
        self.cast = Cast()
        self.policy = policy
        self.now = Instant(0)
        self.overdraft = False
        self.said: Outcome | None = None

    def play(self, line: str) -> None:
        """Play one line. Raises AssertionError if the outcome is another."""
        deed, _, answer = line.partition("->")
        match deed.split():
            case ["now", at]:
                self.now = Instant(int(at))
            case ["policy", *words]:
                for word in words:
                    self.policy = msgspec.structs.replace(self.policy, **POLICIES[word])
            case [what, name, figure] if what in LOOKS:
                amount = getattr(self.allocation(name), LOOKS[what])
                assert amount == su(figure), f"{what} is {show_su(amount)}"
            case ["used", user, name, figure]:
                sums = self.work.sums_of(self.cast.allocations[name], USERS[user])
                assert sums.charged + sums.held == su(figure), f"{user} drew {sums}"
            case ["run", number, *expected]:
                self._look_at_run(number, expected)
            case ["kept", name, times]:
                book = self.cast.allocations.get(
                    name, 0
                )  # `the registry` keeps what met no allocation
                assert sum(
                    entry.book == book and entry.kind is Kind.REFUSAL for entry in self.work.entries
                ) == int(times)
            case _:
                self.hear(deed)
                self._compare(answer.split() or ["ok"])
        self.check()

    def hear(self, deed: str) -> None:
        """Apply the request of a line, whatever the outcome."""
        before = len(self.work.entries)
        _, options = options_of(deed)
        actor = USERS[options["by"]] if "by" in options else STAFF
        report = options["report"].encode() if "report" in options else None
        self.said = apply(
            self.work,
            SubmittedRequest(
                self.cast.request(deed, self.now), self.now, actor, report_digest=report
            ),
            self.policy,
        )
        if isinstance(self.said, Done):
            self._remember(deed.split(), self.said)
        else:  # a refusal moves nothing; at most it is kept
            assert [entry.id for entry in self.work.entries[before:]] in ([], [self.said.entry])

    def check(self) -> None:
        """Check all invariants."""
        self.overdraft |= not self.policy.enforce or self.policy.overrun is Overrun.RECORD
        check_books(self.work, overdraft=self.overdraft)

    def allocation(self, name: str) -> Allocation:
        return self.work.allocations[self.cast.allocations[name]]

    def _look_at_run(self, number: str, expected: list[str]) -> None:
        record = self.work.runs[run(number)]
        found = [record.state.value]
        for word, value in zip(expected[1::2], expected[2::2], strict=True):
            if word == "from":
                right = record.allocation == self.cast.allocations[value]
            elif word == "for":
                right = record.project == self.cast.projects[value]
            else:
                right = getattr(record, {"off": "written_off"}.get(word, word)) == su(value)
            found += [word, value if right else f"not {value}"]
        assert found == expected, f"the run is {record}"

    def _remember(self, words: list[str], yes: Done) -> None:
        if words[0] == "project" and yes.project is not None:
            self.cast.projects[words[1]] = yes.project
            self.cast.parents[yes.project] = self.work.projects[yes.project].parent
        if words[0] == "open" and yes.allocation is not None:
            self.cast.allocations[words[1]] = yes.allocation
        if words[0] == "token" and yes.token is not None:
            self.cast.tokens[words[1]] = yes.token

    def _compare(self, expected: list[str]) -> None:
        assert self.said is not None
        if isinstance(self.said, Refusal):
            found = [self.said.reason.name]
            figures = {
                "left": self.said.available,
                "asked": self.said.asked,
                "short": self.said.shortfall,
            }
        else:
            found = ["again" if self.said.again else "ok"]
            figures = {
                "left": self.said.available,
                "off": self.said.written_off,
                "amount": self.said.amount,
            }
        for word, value in zip(expected[1::2], expected[2::2], strict=True):
            if word == "from":
                right = self.said.allocation == self.cast.allocations[value]
            elif word == "for":
                right = self.said.project == self.cast.projects[value]
            else:
                right = figures[word] == su(value)
            found += [word, value if right else f"not {value}"]
        assert found == expected, f"the bank said {self.said}"


def tell(story: str, policy: Policy | None = None) -> Teller:
    """Play a whole story. Raises AssertionError with the line whose outcome is another."""
    teller = Teller(policy or Policy())
    for number, line in enumerate(story.splitlines(), start=1):
        text = line.partition("#")[0].strip()
        if not text:
            continue
        try:
            teller.play(text)
        except Exception as wrong:
            raise AssertionError(f"line {number}: {text}\n{wrong!r}") from wrong
    return teller
