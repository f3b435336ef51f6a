"""Lock sets of requests: their contents. `test_model` checks that they are sufficient."""

from __future__ import annotations

import msgspec
import pytest

from fairbank.bank.allocation import Allocation, AllocationTerms
from fairbank.bank.lock_set import ALL_OF_IT, AllocationFilter, LockSet, lock_set_of
from fairbank.bank.policy import Policy
from fairbank.bank.refusals import Reason, Refusal
from fairbank.bank.requests import (
    Adjust,
    Amend,
    AuditNote,
    Charge,
    CreateProject,
    Deposit,
    Hold,
    IssueToken,
    Open,
    Release,
    Request,
    RevokeToken,
    SetCap,
    SetMember,
    SubmittedRequest,
    Transfer,
    Undo,
    Unpriced,
)
from fairbank.bank.rules import Done, apply
from fairbank.bank.run import ReportedRun, RunEnd
from fairbank.bank.token import TokenGrant
from fairbank.bank.transaction_data import NewIds, RegistryNotLoaded, TransactionData
from fairbank.cluster.job import Run
from fairbank.core.time import DAY, Instant
from fairbank.core.units import SuMinutes
from tests.bank.lock_set_store import LockSetStore
from tests.bank.request_strategies import GRANTS, PROJECTS

RUN = Run("darwin", 1, 0)
REPORTED = ReportedRun(RUN, 2, "", Instant(0), Instant(9))
END = RunEnd("COMPLETED", 9, Instant(9))
HOLD = Hold(reported=REPORTED, chain=(2, 1), resource="cpu", owner=7, amount=SuMinutes(5), key="h")
CHARGE = Charge(
    reported=REPORTED, amount=SuMinutes(5), end=END, chain=(2, 1), resource="cpu", owner=7
)
ADJUST = Adjust(reported=REPORTED, owner=7, amount=SuMinutes(1))


def of_job(job_id: int, *, start: int = 0) -> ReportedRun:
    return msgspec.structs.replace(REPORTED, run=RUN._replace(job_id=job_id), start=Instant(start))


def submitted(*requests: Request) -> list[SubmittedRequest]:
    return [SubmittedRequest(request, Instant(5), 0) for request in requests]


def test_hold_locks_its_run_and_project_chain() -> None:
    lock_set = lock_set_of(submitted(HOLD))
    assert (lock_set.runs, lock_set.keys) == ({RUN}, {(0, "h")})
    assert lock_set.allocation_filters == {
        (2, "cpu", 0): AllocationFilter(0, 0, own=True),
        (1, "cpu", 0): AllocationFilter(0, 0, own=False),
    }
    assert lock_set.owners == {(2, "cpu"): {7}, (1, "cpu"): {7}}
    assert not lock_set.registry


def reaches(lock_set: LockSet, *known: Run) -> set[tuple[int, str, AllocationFilter]]:
    return set(lock_set.filters(set(known)))


def test_charge_of_known_run_locks_only_the_run() -> None:
    """Every report of an end names the project chain; it matters only if the hold never arrived."""
    lock_set = lock_set_of(submitted(CHARGE, ADJUST))
    assert (lock_set.runs, lock_set.registry) == ({RUN}, False)
    assert reaches(lock_set, RUN) == set()
    assert reaches(lock_set) == {
        (2, "cpu", AllocationFilter(0, 0, own=True)),
        (1, "cpu", AllocationFilter(0, 0, own=False)),
    }


def test_charge_of_unknown_run_locks_its_project_chain() -> None:
    other = Release(reported=of_job(2, start=3), end=END, chain=(4,), resource="cpu", owner=7)
    lock_set = lock_set_of(
        submitted(msgspec.structs.replace(HOLD, reported=of_job(3), chain=(5,)), CHARGE, other)
    )
    start = (5, "cpu", AllocationFilter(0, 0, own=True))
    assert reaches(lock_set, RUN, other.reported.run) == {start}
    assert reaches(lock_set, RUN) > {start, (4, "cpu", AllocationFilter(3, 3, own=True))}


def test_late_report_does_not_lock_all_allocations_between() -> None:
    later = msgspec.structs.replace(HOLD, reported=of_job(2, start=365 * DAY), chain=(2,))
    lock_set = lock_set_of(submitted(HOLD, later))
    assert {reach for project, _, reach in lock_set.filters(set()) if project == 2} == {
        AllocationFilter(0, 0, own=True),
        AllocationFilter(365 * DAY, 365 * DAY, own=True),
    }


ACCOUNT = {"chain": (), "account": "nosuch"}


@pytest.mark.parametrize(
    "bank_request",
    [
        msgspec.structs.replace(HOLD, **ACCOUNT),
        msgspec.structs.replace(HOLD, chain=()),
        msgspec.structs.replace(CHARGE, **ACCOUNT),
        msgspec.structs.replace(ADJUST, **ACCOUNT),
        Release(reported=REPORTED, end=END, owner=7, account="nosuch"),
        Unpriced(reported=REPORTED, end=END, owner=7, why="", account="nosuch"),
    ],
)
def test_report_of_unknown_account_is_applied_once(bank_request: Request) -> None:
    """Its refusal is recorded in the registry, so the registry is locked at once."""
    assert lock_set_of(submitted(bank_request)).registry
    store = LockSetStore()
    (no,) = store.ask(submitted(bank_request), Policy())
    assert isinstance(no, Refusal)
    assert (store.loads, len(store.journal)) == (1, 1)


def test_setting_a_cap_locks_the_roles() -> None:
    cap = SetCap(allocation=4, uid=7, cap=None, project=3, by=8)
    lock_set = lock_set_of(submitted(cap))
    assert (lock_set.members, lock_set.registry) == ({(3, 7), (3, 8)}, True)
    assert not lock_set_of(submitted(msgspec.structs.replace(cap, by=None))).registry


def test_lock_set_of_batch_is_union_of_its_requests() -> None:
    lock_set = lock_set_of(
        submitted(
            Deposit(allocation=1, amount=SuMinutes(1)),
            Transfer(source=2, target=3, amount=SuMinutes(1)),
            SetCap(allocation=4, uid=7, cap=None),
            Open(
                terms=AllocationTerms(
                    project=5, resource="gpu", category="startup", start=Instant(0), end=Instant(1)
                )
            ),
            Amend(allocation=6, project=8, resource="cpu"),
        )
    )
    assert lock_set.allocations == {1, 2, 3, 4, 6}
    assert lock_set.caps == {(4, 7)}
    assert (lock_set.projects, lock_set.allocation_filters, lock_set.opens) == (
        {5},
        {(5, "gpu", 0): ALL_OF_IT, (8, "cpu", 0): ALL_OF_IT},
        1,
    )
    assert (lock_set.entries, lock_set.creates, lock_set.registry) == (10, 0, True)


def test_batch_locks_allocations_of_all_its_runs() -> None:
    later, above = (
        msgspec.structs.replace(HOLD, **more)
        for more in (
            {"reported": of_job(1, start=7)},
            {"chain": (1,), "reported": of_job(1, start=3)},
        )
    )
    lock_set = lock_set_of(submitted(HOLD, later, above))
    assert lock_set.allocation_filters == {
        (2, "cpu", 0): AllocationFilter(0, 7, own=True),
        (1, "cpu", 0): AllocationFilter(0, 7, own=True),
    }
    rows = [
        Allocation(
            id=n,
            terms=AllocationTerms(
                project=1, resource="cpu", category="x", start=Instant(n), end=Instant(n + 2)
            ),
        )
        for n in range(12)
    ]
    assert [row.id for row in rows if AllocationFilter(3, 7, own=True).has(row)] == [
        2,
        3,
        4,
        5,
        6,
        7,
    ]
    assert not any(AllocationFilter(0, 99, own=False).has(row) for row in rows)
    assert all(
        AllocationFilter(0, 99, own=False).has(
            msgspec.structs.replace(row, terms=msgspec.structs.replace(row.terms, shared=True))
        )
        for row in rows
    )


@pytest.mark.parametrize(
    "bank_request",
    [
        CreateProject(gname="a", gid=1, account="a", parent=3),
        SetMember(project=3, uid=7, role=None),
        AuditNote(details="{}"),
    ],
)
def test_requests_that_write_to_registry_lock_it(bank_request: Request) -> None:
    lock_set = lock_set_of(submitted(bank_request))
    assert lock_set.registry
    assert lock_set.projects == (set() if isinstance(bank_request, AuditNote) else {3})


def test_refusal_without_allocation_locks_registry_on_retry() -> None:
    with pytest.raises(RegistryNotLoaded):
        apply(TransactionData(ids=NewIds(entries=range(9))), submitted(HOLD)[0], Policy())
    assert lock_set_of(submitted(HOLD), registry=True).registry
    store = LockSetStore()
    (no,) = store.ask(submitted(HOLD), Policy())
    assert isinstance(no, Refusal)
    assert (no.reason, store.loads, len(store.journal)) == (Reason.NO_ALLOCATION, 2, 1)


def test_batch_sees_its_own_changes() -> None:
    store = LockSetStore()
    outcomes = store.ask(submitted(*PROJECTS, *GRANTS, HOLD, HOLD, CHARGE), Policy())
    done = [outcome for outcome in outcomes if not isinstance(outcome, Refusal)]
    assert len(done) == len(outcomes)
    assert [outcome.again for outcome in done[-3:]] == [False, True, False]
    assert store.rows.allocations[2].charged == 5


def test_amendment_with_wrong_project_finds_overlap() -> None:
    store = LockSetStore()
    store.ask(submitted(*PROJECTS, *GRANTS), Policy())
    right = Amend(allocation=2, project=2, resource="cpu", end=Instant(70))
    (seen,) = store.ask(submitted(right), Policy())
    (unseen,) = store.ask(submitted(msgspec.structs.replace(right, resource="gpu")), Policy())
    assert isinstance(seen, Refusal)
    assert isinstance(unseen, Refusal)
    assert (seen.reason, unseen.reason) == (Reason.OVERLAP, Reason.UNKNOWN_ALLOCATION)


def test_role_change_locks_roles_of_both_users() -> None:
    lock_set = lock_set_of(
        submitted(
            SetMember(project=3, uid=7, role=None, by=8), SetMember(project=4, uid=9, role=None)
        )
    )
    assert lock_set.members == {(3, 7), (3, 8), (4, 9)}


def test_token_locks_its_digest_and_number() -> None:
    grant = TokenGrant(digest=b"d", uid=7, label="laptop", scopes=("read",), expires=Instant(9))
    lock_set = lock_set_of(submitted(IssueToken(grant=grant), RevokeToken(token=4)))
    assert (lock_set.digests, lock_set.tokens, lock_set.issues, lock_set.registry) == (
        {b"d"},
        {4},
        1,
        True,
    )


def test_undo_in_same_batch_restores_terms_before_it() -> None:
    """The earlier terms must be loaded although the entry to be undone does not exist yet."""
    store = LockSetStore()
    for requests in (PROJECTS, GRANTS):
        store.ask(submitted(*requests), Policy())
    old, number = store.rows.allocations[1], len(store.journal) + 1
    amend = Amend(
        allocation=1,
        project=old.terms.project,
        resource=old.terms.resource,
        credit_limit=SuMinutes(old.terms.credit_limit + 5),
    )
    back = Undo(entry=number, allocation=1, project=old.terms.project, resource=old.terms.resource)
    assert [type(outcome) for outcome in store.ask(submitted(amend, back), Policy())] == [
        Done,
        Done,
    ]
    assert store.rows.allocations[1].terms.credit_limit == old.terms.credit_limit
