"""A batch is written whole or not at all, and once."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any, cast

import msgspec
import pytest

from fairbank.bank.ledger import Done, judge
from fairbank.bank.needs import Needs, needs_of
from fairbank.bank.policy import Policy
from fairbank.bank.project import Role
from fairbank.bank.query import AllocationQuery, Page
from fairbank.bank.refusal import Reason, Refusal
from fairbank.bank.run import RunState
from fairbank.bank.wish import (
    Adjust,
    Amend,
    Asked,
    Deposit,
    Lapse,
    Note,
    Refund,
    Release,
    Request,
    RevokeToken,
    SetCap,
    SetMember,
    Transfer,
    Withdraw,
)
from fairbank.bank.working_set import WorkingSet
from fairbank.service.audit import Audit
from fairbank.service.bank import Bank
from fairbank.store.contract import Contention, Store, Transaction
from fairbank.values.time import Instant
from fairbank.values.trouble import Malformed
from fairbank.values.units import SuMinutes
from tests.contracts.centre import (
    ALICE,
    BOB,
    CAROL,
    END,
    START,
    allocation,
    ask,
    charge,
    contents,
    fill,
    granted,
    hold,
    job,
    late_charge,
    project,
    token,
)
from tests.contracts.places import Place


@pytest.mark.parametrize(
    ("wish", "field"),
    [
        (Deposit(allocation=1, amount=SuMinutes(-5)), "amount"),
        (allocation(1, -5, resource="gpu"), "deposit"),
        (allocation(1, resource="gpu", credit_limit=SuMinutes(-5)), "credit_limit"),
        (Amend(allocation=1, project=1, resource="cpu", credit_limit=SuMinutes(-5)), "credit_limit"),
        (SetCap(allocation=1, uid=ALICE, cap=SuMinutes(-5)), "cap"),
    ],
)
def test_no_amount_is_less_than_nothing_in_any_store(store: Store, wish: Request, field: str) -> None:
    fill(store)
    before = contents(store)
    with pytest.raises(Malformed, match="less than nothing") as bad:
        ask(store, wish)
    assert bad.value.field == field
    assert contents(store) == before


class Cancelled(Exception):
    """Something went wrong between judging and committing."""


def test_what_is_asked_in_one_batch_is_there_for_the_next(store: Store) -> None:
    fill(store)
    granted(store, hold(1, 600), hold(2, 300))
    granted(store, charge(1, 55))
    with store.reading() as reader:
        physics, chemistry = reader.allocations(AllocationQuery(), Page())
        assert (physics.charged, physics.held, physics.available) == (55, 300, 645)
        assert chemistry.available == 500
        assert [run.state for run in reader.scan_runs()] == [RunState.CHARGED, RunState.HELD]


def test_a_batch_that_raises_has_changed_nothing(store: Store) -> None:
    fill(store)
    before = contents(store)
    with pytest.raises(Cancelled):
        _batch_that_raises(store)
    assert contents(store) == before
    granted(store, hold(1, 600))


def _batch_that_raises(store: Store) -> None:
    batch = [Asked(wish, START, 0) for wish in (hold(1, 600), project("biology", 300), allocation(1, 5, resource="gpu"))]
    with store.transaction() as transaction:
        work = transaction.load(needs_of(batch))
        assert all(isinstance(judge(work, each, Policy()), Done) for each in batch)
        transaction.write(work)
        raise Cancelled


class Counted:
    """A store that counts the transactions begun on it."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.transactions = 0

    def transaction(self) -> AbstractContextManager[Transaction]:
        self.transactions += 1
        return self._store.transaction()


def test_a_batch_with_a_refusal_for_the_office_takes_one_transaction_too(store: Store) -> None:
    fill(store)
    counted = Counted(store)
    wishes = (hold(1, 600), hold(2, 5, resource="gpu"), hold(3, 600), hold(4, 300))
    outcomes = Bank(cast("Store", counted), Policy()).ask([Asked(wish, START, 0) for wish in wishes])
    assert [each.reason if isinstance(each, Refusal) else "ok" for each in outcomes] == ["ok", Reason.NO_ALLOCATION, Reason.OVERDRAWN, "ok"]
    assert counted.transactions == 1
    assert not Audit(store).verify().findings
    with store.reading() as reader:
        assert [each.held for each in reader.allocations(AllocationQuery(), Page())] == [900, 0]
        assert reader.office().seq == 3  # two projects, one refusal


def test_a_batch_with_a_refusal_for_the_office_leaves_no_gap_among_allocations(store: Store) -> None:
    fill(store)
    opened, no = ask(store, allocation(1, 5, resource="gpu"), hold(1, 5, resource="tape"))
    assert isinstance(opened, Done)
    assert isinstance(no, Refusal)
    assert [each.allocation for each in (opened, *granted(store, allocation(2, 5, resource="gpu")))] == [3, 4]


def test_a_batch_that_is_not_written_has_changed_nothing(store: Store) -> None:
    fill(store)
    before = contents(store)
    asked = Asked(hold(1, 600), START, 0)
    with store.transaction() as transaction:
        judge(transaction.load(needs_of([asked])), asked, Policy())
    assert contents(store) == before


def test_what_was_left_out_and_what_was_said_stand_side_by_side(store: Store) -> None:
    """In one batch: with and without a key, a comment, a cap, a hold before the charge."""
    fill(store)
    said = Deposit(allocation=1, amount=SuMinutes(10), key="d1", comment="said")
    granted(
        store, hold(1, 60), said, SetCap(allocation=1, uid=ALICE, cap=SuMinutes(500)), hold(2, 30, project=2, owner=BOB), late_charge(3, 7)
    )
    granted(store, charge(1, 55), Adjust(run=job(2), amount=SuMinutes(40), until=START))
    with store.reading() as reader:
        entries = {each.id: each for each in reader.scan_entries()}
        assert [each.key for each in entries.values() if each.comment is not None] == ["d1"]
        assert [entries[run.id].key for run in reader.scan_runs()] == [None, None, None]
        assert {user.uid: user.sums.cap for user in reader.scan_users()} == {ALICE: 500, BOB: None}
        assert [run.outcome for run in reader.scan_runs()] == ["COMPLETED", "COMPLETED", None]
    assert not Audit(store).verify().findings


def test_a_job_number_may_be_used_again(store: Store) -> None:
    """On another cluster, after a requeue, after the numbers began anew: each is a run of its own."""
    fill(store)
    runs = [job(1), job(1)._replace(cluster="caviness"), job(1)._replace(restart=1), job(1)._replace(submitted=901)]
    for run in runs:
        granted(store, hold(1, 10, run=run))
    granted(store, charge(1, 5, run=runs[1]))
    with store.reading() as reader:
        assert {each.run: each.state for each in reader.scan_runs()} == dict.fromkeys(runs, RunState.HELD) | {runs[1]: RunState.CHARGED}


def test_a_key_is_remembered_by_later_transactions(store: Store) -> None:
    fill(store)
    (first,) = granted(store, Deposit(allocation=1, amount=SuMinutes(10), key="d1"))
    (again,) = granted(store, Deposit(allocation=1, amount=SuMinutes(10), key="d1"))
    (other,) = ask(store, Deposit(allocation=1, amount=SuMinutes(11), key="d1"))
    assert (again.entry, again.again) == (first.entry, True)
    assert isinstance(other, Refusal)
    assert other.reason is Reason.KEY_TAKEN
    assert contents(store)[2][0].deposited == 1_010


def test_a_key_is_its_actors_own(store: Store) -> None:
    fill(store)
    bank, wish = Bank(store, Policy()), Deposit(allocation=1, amount=SuMinutes(10), key="d1")
    together = bank.ask([Asked(wish, START, actor) for actor in (ALICE, BOB)])
    later = bank.ask([Asked(wish, START, actor) for actor in (BOB, CAROL, ALICE)])
    firsts = [each for each in (*together, *later) if isinstance(each, Done) and not each.again]
    assert len({each.entry for each in firsts}) == 3
    assert [(each.entry, each.again) for each in later if isinstance(each, Done)] == [
        (firsts[1].entry, True),
        (firsts[2].entry, False),
        (firsts[0].entry, True),
    ]
    assert contents(store)[2][0].deposited == 1_030
    assert Audit(store).verify().findings == ()


LIVES: dict[str, list[Request]] = {
    "hold": [hold(1, 600)],
    "adjust": [hold(1, 600), Adjust(run=job(1), amount=SuMinutes(700), until=END)],
    "charge": [hold(1, 600), charge(1, 55)],
    "release": [hold(1, 600), Release(run=job(1), ended=START, outcome="NODE_FAIL")],
    "late charge": [late_charge(1, 55)],
}


@pytest.mark.parametrize("life", LIVES)
@pytest.mark.parametrize("together", [True, False])
def test_a_report_that_comes_again_is_answered_with_the_entry_that_its_runs_row_names(store: Store, life: str, together: bool) -> None:
    """In the same batch, or read from the journal by another."""
    fill(store)
    *before, report = LIVES[life]
    granted(store, *before)
    first, *rest = granted(store, report, report) if together else granted(store, report)
    (again,) = rest or granted(store, report)
    (row,) = contents(store)[4]
    assert again == msgspec.structs.replace(first, again=True)
    assert row.set_by == again.entry
    assert Audit(store).verify().findings == ()


PRINTABLE = 'a"b\\c\'d{e},f\\\\"g%h$1:i/é日\U0001f9ea'
CONTROLLED = 'tab\t newline\n bell\x07 delete\x7f backslash\\n quote"'  # the doors let none in; a store loses nothing all the same


@pytest.mark.parametrize("others", [0, 400])
@pytest.mark.parametrize("odd", [PRINTABLE, CONTROLLED, "\\", "NULL", "{}"])
def test_texts_are_kept_as_they_are(store: Store, odd: str, others: int) -> None:
    """In small batches and in large ones, which may take another way."""
    fill(store)
    wish = Deposit(allocation=1, amount=SuMinutes(1), key=odd, comment=odd)
    granted(store, wish, Deposit(allocation=1, amount=SuMinutes(1), key="\\\\", comment=""), hold(1, 1, partition=odd), *_deposits(others))
    assert granted(store, wish)[0].again
    *_, runs, entries, _, _ = contents(store)
    assert [each.comment for each in entries if each.key == odd] == [odd]
    assert [each.comment for each in entries if each.key == "\\\\"] == [""]
    assert [each.partition for each in runs] == [odd]
    assert Audit(store).verify().findings == ()


def _deposits(count: int) -> list[Deposit]:
    return [Deposit(allocation=2, amount=SuMinutes(1), key=f"other{number}") for number in range(count)]


def test_a_run_is_held_and_resolved_once(store: Store) -> None:
    fill(store)
    granted(store, hold(1, 600))
    granted(store, charge(1, 55))
    assert granted(store, charge(1, 55))[0].again
    (no,) = ask(store, charge(1, 56))
    assert isinstance(no, Refusal)
    assert no.reason is Reason.RUN_RESOLVED


def test_a_requeued_run_is_another_run(store: Store) -> None:
    fill(store)
    granted(store, hold(1, 100), hold(1, 100, run=job(1, restart=1)))
    assert len(contents(store)[4]) == 2


def test_every_kind_of_wish_leaves_books_that_pass_the_audit(store: Store) -> None:
    fill(store)
    granted(store, project("optics", 101, parent=1), allocation(2, 0, resource="gpu", credit_limit=SuMinutes(50)))
    granted(store, SetMember(project=1, uid=ALICE, role=Role.PI), SetMember(project=1, uid=BOB, role=Role.MEMBER))
    granted(store, SetMember(project=1, uid=ALICE, role=Role.COORDINATOR), SetMember(project=1, uid=BOB, role=None))
    granted(store, Transfer(source=1, target=2, amount=SuMinutes(100)), SetCap(allocation=1, uid=BOB, cap=SuMinutes(20)))
    granted(store, hold(1, 100), hold(2, 10, owner=BOB), late_charge(3, 7), Note(details='{"as":7}'))
    ask(store, hold(4, 100, owner=BOB), hold(5, 10_000), hold(6, 1, project=3), Amend(allocation=1, project=1, resource="cpu", end=END))
    granted(store, charge(1, 40), Release(run=job(2), ended=START, outcome="NODE_FAIL"), Refund(run=job(3)))
    granted(store, token(), token("phone"), RevokeToken(token=1))
    granted(store, hold(7, 5, until=START + 60))
    granted(store, Lapse(run=job(7)), at=START + 61)
    granted(store, Amend(allocation=1, project=1, resource="cpu", end=Instant(END + 1), shared=True, credit_limit=SuMinutes(3)))
    verdict = Audit(store).verify()
    assert verdict.findings == ()
    assert (verdict.entries, verdict.runs) == (len(contents(store)[5]), 4)


def test_wishes_of_one_batch_see_each_other(store: Store) -> None:
    fill(store)
    batch = granted(store, project("biology", 300), allocation(1, 70, resource="gpu"), hold(1, 70, resource="gpu"), charge(1, 5))
    assert batch[0].project == 3
    with store.reading() as reader:
        (gpu,) = reader.allocations(AllocationQuery(resource="gpu"), Page())
    assert (gpu.deposited, gpu.charged, gpu.held) == (70, 5, 0)


def test_the_same_batch_twice_is_one_batch(store: Store) -> None:
    fill(store)
    wishes = (hold(1, 10, key="h1"), Deposit(allocation=2, amount=SuMinutes(5), key="d1"), charge(1, 3, key="c1"))
    first, before = granted(store, *wishes), contents(store)
    again = granted(store, *wishes)
    assert [each.entry for each in again] == [each.entry for each in first]
    assert contents(store) == before


def test_periods_of_one_fund_do_not_overlap(store: Store) -> None:
    fill(store)
    for start, end in ((START, START + 1), (END - 1, END + 9), (START - 9, END + 9)):
        (no,) = ask(store, allocation(1, start=start, end=end))
        assert isinstance(no, Refusal)
        assert (no.reason, no.allocation) == (Reason.OVERLAP, 1)
    granted(store, allocation(1, start=END, end=END + 1), allocation(1, start=START - 1, end=START), allocation(1, resource="gpu"))


def _moved(number: int, start: int, end: int, **more: Any) -> Amend:
    return Amend(allocation=number, project=1, resource="cpu", start=Instant(END + start), end=Instant(END + end), **more)


PERIODS_TRADED: dict[str, list[Request]] = {
    "the later makes room for the earlier": [_moved(4, 15, 20), _moved(3, 0, 15)],
    "the earlier makes room for the later": [_moved(3, 0, 5), _moved(4, 5, 20)],
    "they change places": [_moved(3, 20, 30), _moved(4, 0, 10), _moved(3, 10, 20)],
    "and somebody else comes between": [_moved(3, 0, 5), allocation(1, start=END + 5, end=END + 8), _moved(5, 5, 7), _moved(4, 7, 20)],
}


@pytest.mark.parametrize("case", PERIODS_TRADED)
def test_allocations_of_one_fund_trade_periods_in_one_batch(store: Store, case: str) -> None:
    """Each step is judged for itself, so each is written for itself: whatever the numbers, none stands in another's way."""
    fill(store)
    granted(store, allocation(1, start=END, end=END + 10), allocation(1, start=END + 10, end=END + 20))
    granted(store, *PERIODS_TRADED[case])
    with store.reading() as reader:
        after = {each.id: (each.start, each.end) for each in reader.allocations(AllocationQuery(), Page())}
    wanted = {each.allocation: (each.start, each.end) for each in PERIODS_TRADED[case] if isinstance(each, Amend)}  # the last word counts
    assert after == after | wanted
    assert Audit(store).verify().findings == ()


def test_credit_and_terms_of_one_batch_are_never_below_what_the_database_allows(store: Store) -> None:
    """A limit falls once a deposit pays for what was drawn on it, and rises before more is drawn."""
    fill(store)
    limit = Amend(allocation=1, project=1, resource="cpu", credit_limit=SuMinutes(500))
    granted(store, limit, hold(1, 1_400))
    lower, higher = (msgspec.structs.replace(limit, credit_limit=SuMinutes(each)) for each in (0, 900))
    granted(store, Deposit(allocation=1, amount=SuMinutes(400)), lower, higher, hold(2, 900), Withdraw(allocation=2, amount=SuMinutes(1)))
    with store.reading() as reader:
        physics = reader.allocations(AllocationQuery(), Page())[0]
    assert (physics.deposited, physics.credit_limit, physics.held) == (1_400, 900, 2_300)
    assert Audit(store).verify().findings == ()


def test_only_what_is_needed_is_loaded(store: Store) -> None:
    fill(store)
    granted(store, hold(1, 10), hold(2, 20, owner=BOB), hold(3, 30, project=2), allocation(1, resource="gpu"), project("biology", 300))
    work = _loaded(store, hold(4, 1))
    assert (sorted(work.allocations), sorted(work.users), work.runs, work.projects, work.office) == ([1], [(1, ALICE)], {}, {}, None)
    work = _loaded(store, Refund(run=job(3)))
    assert (sorted(work.allocations), sorted(work.users), sorted(work.runs)) == ([2], [(2, ALICE)], [job(3)])
    work = _loaded(store, project("other", 200), SetMember(project=3, uid=BOB, role=None))
    assert (sorted(work.projects), work.office is not None, work.allocations) == ([2, 3], True, {})
    assert sorted(_loaded(store, allocation(1)).allocations) == [1]
    assert sorted(_loaded(store, SetCap(allocation=1, uid=BOB, cap=None)).users) == [(1, BOB)]


def test_the_end_of_a_run_needs_what_its_line_may_draw_on_only_where_it_has_no_hold(store: Store) -> None:
    fill(store)
    granted(store, project("optics", 101, parent=1), allocation(3, 50), Amend(allocation=1, project=1, resource="cpu", shared=True))
    own, lent = hold(1, 10, project=3, line=(3, 1)), hold(2, 60, project=3, line=(3, 1))
    assert [each.allocation for each in granted(store, own, lent)] == [3, 1]
    ends = [late_charge(number, 5, line=(3, 1)) for number in (1, 2, 99)]
    assert [sorted(_loaded(store, each).allocations) for each in ends] == [[3], [1], [1, 3]]
    assert sorted(_loaded(store, ends[0], ends[2]).allocations) == [1, 3]
    assert sorted(_loaded(store, ends[0], hold(3, 5, project=2)).allocations) == [2, 3]
    granted(store, *ends)
    assert [each.charged for each in contents(store)[2]] == [5, 0, 10]
    assert sorted(_loaded(store, ends[2]).allocations) == [3], "now it is in the books"


def _loaded(store: Store, *wishes: Request) -> WorkingSet:
    with store.transaction() as transaction:
        return transaction.load(needs_of([Asked(wish, START, 0) for wish in wishes]))


def test_an_empty_batch_is_nothing(store: Store) -> None:
    with store.transaction() as transaction:
        transaction.write(transaction.load(Needs()))
    assert contents(store)[5] == []


def test_fresh_numbers_suffice_for_a_large_batch(store: Store) -> None:
    fill(store)
    granted(store, *(hold(number, 1) for number in range(1, 801)))
    granted(store, *(late_charge(number, 0) for number in range(1_001, 2_001)), at=START + 1)
    numbers = [entry.id for entry in contents(store)[5]]
    assert len(set(numbers)) == len(numbers) == 1_806


@pytest.mark.parametrize("others", [0, 400])
def test_a_contended_batch_may_be_asked_again(sql_place: Place, others: int) -> None:
    """Two servers judged from the same rows: the second finds the key taken, and on its next try finds the answer."""
    one, two = sql_place.open(), sql_place.open()
    fill(one)
    wishes = [*_deposits(others), Deposit(allocation=1, amount=SuMinutes(10), key="d1")]
    batch = [Asked(wish, START, 0) for wish in wishes]
    stale = WorkingSet(allocations=contents(one)[2], entry_ids=range(900_001, 902_000))
    for asked in batch:
        judge(stale, asked, Policy())
    granted(two, wishes[-1])
    with pytest.raises(Contention), one.transaction() as transaction:
        transaction.load(needs_of(batch))
        transaction.write(stale)
    assert granted(one, *wishes)[-1].again
    assert Audit(one).verify().findings == ()
