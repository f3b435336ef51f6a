"""The bank against its model: both give the same answers and rows for any requests in any order."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)

from fairbank.bank.policy import Overrun, Policy
from fairbank.bank.refusals import Reason, Refusal
from fairbank.bank.requests import (
    Amend,
    BaseRequest,
    Refund,
    Release,
    SubmittedRequest,
    Undo,
    undo_of,
)
from fairbank.bank.rules import Done, Outcome
from fairbank.core.time import Instant
from fairbank.core.units import SuMinutes
from tests.bank import requests
from tests.bank.checks import check_books
from tests.bank.model.model import Model
from tests.bank.model.undo import NOWHERE, Recharge
from tests.bank.shelf import Shelf


def word(outcome: Outcome) -> str:
    """Return the answer in the model's words."""
    if isinstance(outcome, Refusal):
        return outcome.reason.name
    return "again" if outcome.again else "ok"


def against(request: BaseRequest, outcome: Outcome) -> int | None:
    """Return the later entry that prevents an undo, by the answer."""
    if (
        not isinstance(request, Undo)
        or not isinstance(outcome, Refusal)
        or outcome.reason not in (Reason.CHANGED_SINCE, Reason.ALREADY_UNDONE)
    ):
        return None
    named = (outcome.facts or {})["by_entry"]
    assert named > request.entry
    return named


def _said_again(first: Outcome) -> Outcome:
    """Return the answer to the same request when it is repeated."""
    return first if isinstance(first, Refusal) else msgspec.structs.replace(first, again=True)


class Bank(RuleBasedStateMachine):
    """A model and two stores: one gets batches, the other single requests."""

    def __init__(self) -> None:
        super().__init__()
        self.together, self.apart = Shelf(), Shelf()
        self.asked: list[SubmittedRequest] = []
        self.outcomes: list[Outcome] = []
        self.now = Instant(0)

    @initialize(
        enforce=st.sampled_from([True, True, False]),
        overrun=st.sampled_from(Overrun),
        late=st.booleans(),
    )
    def found(self, enforce: bool, overrun: Overrun, late: bool) -> None:
        self.policy = Policy(enforce=enforce, overrun=overrun, late_charges=late)
        self.model = Model(enforce=enforce, write_off=overrun is Overrun.WRITE_OFF, late=late)
        self.ask([requests.asked_by(0, None, request) for request in requests.PROJECTS])
        self.ask([requests.asked_by(0, None, request) for request in requests.GRANTS])

    @rule(batch=st.lists(requests.arriving(requests.of_runs), min_size=2, max_size=8))
    def runs_start_change_and_end(self, batch: list[SubmittedRequest]) -> None:
        self.ask(batch)

    @rule(batch=st.lists(requests.arriving(requests.of_credit), min_size=1, max_size=3))
    def credit_moves(self, batch: list[SubmittedRequest]) -> None:
        self.ask(batch)

    @rule(batch=st.lists(requests.arriving(requests.of_terms), min_size=1, max_size=3))
    def terms_change(self, batch: list[SubmittedRequest]) -> None:
        self.ask(batch)

    @rule(batch=st.lists(requests.arriving(requests.of_anything), min_size=2, max_size=6))
    def all_sorts_of_things_at_once(self, batch: list[SubmittedRequest]) -> None:
        self.ask(batch)

    @precondition(lambda self: self.asked)
    @rule(data=st.data())
    def somebody_repeats_herself(self, data: st.DataObject) -> None:
        again = data.draw(st.lists(st.sampled_from(self.asked), min_size=1, max_size=4))
        self.ask(again)

    @precondition(lambda self: self.asked)
    @rule(data=st.data(), amount=requests.costs, actor=requests.actors)
    def a_report_comes_again_after_prices_changed_or_from_another_server(
        self, data: st.DataObject, amount: SuMinutes, actor: int
    ) -> None:
        reports = [
            asked
            for asked in self.asked
            if asked.report_digest is not None and not isinstance(asked.request, Release)
        ]
        if reports:
            before = data.draw(st.sampled_from(reports))
            self.ask(
                [
                    msgspec.structs.replace(
                        before,
                        request=msgspec.structs.replace(before.request, amount=amount),
                        actor=actor,
                    )
                ]
            )

    @precondition(lambda self: self.model.paid())
    @rule(data=st.data(), amount=st.none() | requests.amounts, actor=requests.actors)
    def a_refund_is_given_and_perhaps_taken_back(
        self, data: st.DataObject, amount: SuMinutes | None, actor: int
    ) -> None:
        run = data.draw(st.sampled_from(self.model.paid()))
        self.ask([SubmittedRequest(Refund(run=run, amount=amount), self.now, actor)])
        refunds = [
            number for number, each in self.model.reverse.items() if isinstance(each, Recharge)
        ]
        self.undo(
            data.draw(st.lists(st.sampled_from(refunds), max_size=3)) if refunds else [], actor
        )

    @precondition(lambda self: self.model.reverse)
    @rule(data=st.data(), actor=requests.actors, by=st.none() | requests.uids)
    def what_was_done_is_taken_back(self, data: st.DataObject, actor: int, by: int | None) -> None:
        """Undo recent entries rather than early ones, and undone entries again."""
        newest = sorted(self.model.reverse, reverse=True)
        self.undo(data.draw(st.lists(st.sampled_from(newest), min_size=1, max_size=4)), actor, by)

    def undo(self, numbers: list[int], actor: int, by: int | None = None) -> None:
        self.ask(
            [
                SubmittedRequest(Undo(entry=number, book=NOWHERE, by=by), self.now, actor)
                for number in numbers
            ]
        )

    @rule(seconds=st.integers(1, 30))
    def time_passes(self, seconds: int) -> None:
        self.now = Instant(self.now + seconds)

    # --- the parts ---

    def ask(self, batch: list[SubmittedRequest]) -> None:
        """Send a batch to all three, and compare their answers and rows."""
        asked = [known for each in batch if (known := self._looked_up(each)) is not None]
        self.asked += asked
        outcomes = self.together.ask(asked, self.policy)
        self.outcomes += outcomes
        expected = []
        for each, outcome in zip(asked, outcomes, strict=True):
            expected.append((self.model.ask(each), self.model.like))
            assert (each.request, word(outcome)) == (each.request, expected[-1][0])
            assert (
                against(each.request, outcome) == self.model.against or self.model.like is not None
            )
            if isinstance(outcome, Done) and not outcome.again:
                self.model.told(outcome.entry, outcome.amount)
        for outcome, (_, like) in zip(outcomes, expected, strict=True):
            if like is not None:
                assert outcome == _said_again(self.outcomes[like])
        assert [
            outcome for each in asked for outcome in self.apart.ask([each], self.policy)
        ] == outcomes
        assert self.apart.journal == self.together.journal
        self._compare()

    def _looked_up(self, asked: SubmittedRequest) -> SubmittedRequest | None:
        """Return the request with its time, and with the fields that the service looks up."""
        request = asked.request
        if isinstance(request, Undo):
            request = self._of_its_entry(request)
        if isinstance(request, Amend):
            row = self.together.rows.allocations.get(request.allocation)
            if row is None:
                return None
            request = msgspec.structs.replace(request, project=row.project, resource=row.resource)
        return msgspec.structs.replace(asked, request=request, at=self.now)

    def _of_its_entry(self, request: Undo) -> Undo:
        rows = self.together.rows
        entry = next((each for each in self.together.journal if each.id == request.entry), None)
        if entry is None:
            return Undo(entry=request.entry, book=NOWHERE, key=request.key)
        run = next((each.run for each in rows.runs.values() if each.id == entry.run), None)
        project = rows.allocations[entry.book].project if entry.book else None
        return undo_of(entry, run=run, project=project, by=request.by, key=request.key)

    def _compare(self) -> None:
        rows, model = self.together.rows, self.model
        for number, row in rows.allocations.items():
            due = model.allocations[number]
            assert (row.deposited, row.charged, row.held, row.available) == (
                model.deposited(number),
                model.charged(number),
                model.held(number),
                model.left(number),
            )
            assert (row.state.value, row.start, row.end, row.shared, row.credit_limit) == tuple(
                due[what] for what in ("state", "start", "end", "shared", "limit")
            )
        for (number, uid), sums in rows.users.items():
            drawn = (
                model.charged(number, uid),
                model.held(number, uid),
                model.caps.get((number, uid)),
            )
            assert (sums.charged, sums.held, sums.cap) == drawn
        assert {
            run: (
                each.allocation,
                each.owner,
                each.state.value,
                each.held,
                each.charged,
                each.refunded,
                each.written_off,
            )
            for run, each in rows.runs.items()
        } == {
            run: tuple(
                each[what] for what in ("where", "owner", "state", "held", "charged", "back", "off")
            )
            for run, each in model.runs.items()
        }
        assert {pair: member.role.value for pair, member in rows.members.items()} == model.members
        assert {
            number: {
                what: getattr(token, what)
                for what in ("digest", "uid", "label", "scopes", "created", "expires", "revoked")
            }
            for number, token in rows.tokens.items()
        } == model.tokens
        assert len(rows.allocations) == len(model.allocations)
        assert len(rows.projects) == len(model.projects)
        assert self._may_overdraw or all(row.available >= 0 for row in rows.allocations.values())

    @property
    def _may_overdraw(self) -> bool:
        return not self.policy.enforce or self.policy.overrun is Overrun.RECORD

    def teardown(self) -> None:
        """Check the whole journal once: entries are only added, so the last state shows all faults.

        After each batch it would take a third of the time of the test.
        """
        check_books(self.together.rows, self.together.journal, overdraft=self._may_overdraw)


TestBank = pytest.mark.timeout(600)(
    Bank.TestCase
)  # finding the shortest way to a failure takes its time
TestBank.settings = settings(stateful_step_count=25)


@pytest.mark.campaign
def test_campaign_of_requests(rounds: Callable[[int, int], int]) -> None:
    run_state_machine_as_test(
        Bank, settings=settings(max_examples=rounds(20_000, 200), stateful_step_count=40)
    )
