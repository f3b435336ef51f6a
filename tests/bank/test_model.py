"""The bank compared with a simple model: the same answers and rows for random requests."""

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
from tests.bank import request_strategies as strategies
from tests.bank.checks import check_ledger
from tests.bank.lock_set_store import LockSetStore
from tests.bank.model.model import Model
from tests.bank.model.undo import NOWHERE, Recharge


def answer_of(outcome: Outcome) -> str:
    """Return the answer as a word of the model."""
    if isinstance(outcome, Refusal):
        return outcome.reason.name
    return "again" if outcome.again else "ok"


def blocking_entry(request: BaseRequest, outcome: Outcome) -> int | None:
    """Return the later entry that prevents an undo, named in the answer."""
    if (
        not isinstance(request, Undo)
        or not isinstance(outcome, Refusal)
        or outcome.reason not in (Reason.CHANGED_SINCE, Reason.ALREADY_UNDONE)
    ):
        return None
    entry = (outcome.facts or {})["by_entry"]
    assert entry > request.entry
    return entry


def _repeated(first: Outcome) -> Outcome:
    """Return the answer to the same request when it is repeated."""
    return first if isinstance(first, Refusal) else msgspec.structs.replace(first, again=True)


class BankAgainstModel(RuleBasedStateMachine):
    """A model and two stores: one gets batches, the other single requests."""

    def __init__(self) -> None:
        super().__init__()
        self.batched, self.single = LockSetStore(), LockSetStore()
        self.submitted: list[SubmittedRequest] = []
        self.outcomes: list[Outcome] = []
        self.now = Instant(0)

    @initialize(
        enforce=st.sampled_from([True, True, False]),
        overrun=st.sampled_from(Overrun),
        late=st.booleans(),
    )
    def create_bank(self, enforce: bool, overrun: Overrun, late: bool) -> None:
        self.policy = Policy(enforce=enforce, overrun=overrun, late_charges=late)
        self.model = Model(enforce=enforce, write_off=overrun is Overrun.WRITE_OFF, late=late)
        self.ask([strategies.submitted_by(0, None, request) for request in strategies.PROJECTS])
        self.ask([strategies.submitted_by(0, None, request) for request in strategies.GRANTS])

    @rule(batch=st.lists(strategies.submitted_requests(strategies.of_runs), min_size=2, max_size=8))
    def submit_run_requests(self, batch: list[SubmittedRequest]) -> None:
        self.ask(batch)

    @rule(
        batch=st.lists(strategies.submitted_requests(strategies.of_credit), min_size=1, max_size=3)
    )
    def submit_credit_requests(self, batch: list[SubmittedRequest]) -> None:
        self.ask(batch)

    @rule(
        batch=st.lists(strategies.submitted_requests(strategies.of_terms), min_size=1, max_size=3)
    )
    def submit_terms_requests(self, batch: list[SubmittedRequest]) -> None:
        self.ask(batch)

    @rule(
        batch=st.lists(
            strategies.submitted_requests(strategies.of_anything), min_size=2, max_size=6
        )
    )
    def submit_mixed_requests(self, batch: list[SubmittedRequest]) -> None:
        self.ask(batch)

    @precondition(lambda self: self.submitted)
    @rule(data=st.data())
    def repeat_requests(self, data: st.DataObject) -> None:
        again = data.draw(st.lists(st.sampled_from(self.submitted), min_size=1, max_size=4))
        self.ask(again)

    @precondition(lambda self: self.submitted)
    @rule(data=st.data(), amount=strategies.costs, actor=strategies.actors)
    def repeat_report_with_other_price_or_actor(
        self, data: st.DataObject, amount: SuMinutes, actor: int
    ) -> None:
        reports = [
            submitted
            for submitted in self.submitted
            if submitted.report_digest is not None and not isinstance(submitted.request, Release)
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

    @precondition(lambda self: self.model.charged_runs())
    @rule(data=st.data(), amount=st.none() | strategies.amounts, actor=strategies.actors)
    def refund_and_maybe_undo(
        self, data: st.DataObject, amount: SuMinutes | None, actor: int
    ) -> None:
        run = data.draw(st.sampled_from(self.model.charged_runs()))
        self.ask([SubmittedRequest(Refund(run=run, amount=amount), self.now, actor)])
        refunds = [
            number
            for number, reversal in self.model.reversals.items()
            if isinstance(reversal, Recharge)
        ]
        self.undo(
            data.draw(st.lists(st.sampled_from(refunds), max_size=3)) if refunds else [], actor
        )

    @precondition(lambda self: self.model.reversals)
    @rule(data=st.data(), actor=strategies.actors, by=st.none() | strategies.uids)
    def undo_recent_entries(self, data: st.DataObject, actor: int, by: int | None) -> None:
        """Undo recent entries rather than early ones, and undone entries again."""
        newest = sorted(self.model.reversals, reverse=True)
        self.undo(data.draw(st.lists(st.sampled_from(newest), min_size=1, max_size=4)), actor, by)

    def undo(self, numbers: list[int], actor: int, by: int | None = None) -> None:
        self.ask(
            [
                SubmittedRequest(Undo(entry=number, allocation=NOWHERE, by=by), self.now, actor)
                for number in numbers
            ]
        )

    @rule(seconds=st.integers(1, 30))
    def advance_clock(self, seconds: int) -> None:
        self.now = Instant(self.now + seconds)

    # --- helpers ---

    def ask(self, batch: list[SubmittedRequest]) -> None:
        """Send a batch to the model and both stores, and compare their answers and rows."""
        submitted = [
            known for item in batch if (known := self._with_looked_up_fields(item)) is not None
        ]
        self.submitted += submitted
        outcomes = self.batched.ask(submitted, self.policy)
        self.outcomes += outcomes
        expected = []
        for request, outcome in zip(submitted, outcomes, strict=True):
            expected.append((self.model.ask(request), self.model.same_as))
            assert (request.request, answer_of(outcome)) == (request.request, expected[-1][0])
            assert (
                blocking_entry(request.request, outcome) == self.model.against
                or self.model.same_as is not None
            )
            if isinstance(outcome, Done) and not outcome.again:
                self.model.record_entry(outcome.entry, outcome.amount)
        for outcome, (_, same_as) in zip(outcomes, expected, strict=True):
            if same_as is not None:
                assert outcome == _repeated(self.outcomes[same_as])
        assert [
            outcome for item in submitted for outcome in self.single.ask([item], self.policy)
        ] == outcomes
        assert self.single.journal == self.batched.journal
        self._compare()

    def _with_looked_up_fields(self, submitted: SubmittedRequest) -> SubmittedRequest | None:
        """Return the request with its time, and with the fields that the service looks up."""
        request = submitted.request
        if isinstance(request, Undo):
            request = self._undo_of_entry(request)
        if isinstance(request, Amend):
            row = self.batched.rows.allocations.get(request.allocation)
            if row is None:
                return None
            request = msgspec.structs.replace(
                request, project=row.terms.project, resource=row.terms.resource
            )
        return msgspec.structs.replace(submitted, request=request, at=self.now)

    def _undo_of_entry(self, request: Undo) -> Undo:
        rows = self.batched.rows
        entry = next(
            (candidate for candidate in self.batched.journal if candidate.id == request.entry), None
        )
        if entry is None:
            return Undo(entry=request.entry, allocation=NOWHERE, key=request.key)
        run = next(
            (record.reported.run for record in rows.runs.values() if record.id == entry.run), None
        )
        project = rows.allocations[entry.allocation].terms.project if entry.allocation else None
        return undo_of(entry, run=run, project=project, by=request.by, key=request.key)

    def _compare(self) -> None:
        rows, model = self.batched.rows, self.model
        for number, row in rows.allocations.items():
            due = model.allocations[number]
            assert (row.deposited, row.charged, row.held, row.remaining) == (
                model.deposited(number),
                model.charged(number),
                model.held(number),
                model.left(number),
            )
            assert (
                row.state.value,
                row.terms.start,
                row.terms.end,
                row.terms.shared,
                row.terms.credit_limit,
            ) == tuple(due[what] for what in ("state", "start", "end", "shared", "limit"))
        for (number, uid), sums in rows.users.items():
            drawn = (
                model.charged(number, uid),
                model.held(number, uid),
                model.caps.get((number, uid)),
            )
            assert (sums.charged, sums.held, sums.cap) == drawn
        assert {
            run: (
                record.allocation,
                record.owner,
                record.state.value,
                record.held,
                record.charged,
                record.refunded,
                record.written_off,
            )
            for run, record in rows.runs.items()
        } == {
            run: tuple(
                record[what]
                for what in (
                    "allocation",
                    "owner",
                    "state",
                    "held",
                    "charged",
                    "refunded",
                    "written_off",
                )
            )
            for run, record in model.runs.items()
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
        assert self._may_overdraw or all(row.remaining >= 0 for row in rows.allocations.values())

    @property
    def _may_overdraw(self) -> bool:
        return not self.policy.enforce or self.policy.overrun is Overrun.RECORD

    def teardown(self) -> None:
        """Check the whole journal once: entries are only added, so the last state shows all faults.

        After each batch it would take a third of the time of the test.
        """
        check_ledger(self.batched.rows, self.batched.journal, overdraft=self._may_overdraw)


TestBank = pytest.mark.timeout(600)(
    BankAgainstModel.TestCase
)  # shrinking a failing example takes time
TestBank.settings = settings(stateful_step_count=25)


@pytest.mark.campaign
def test_campaign_of_requests(rounds: Callable[[int, int], int]) -> None:
    run_state_machine_as_test(
        BankAgainstModel,
        settings=settings(max_examples=rounds(20_000, 200), stateful_step_count=40),
    )
