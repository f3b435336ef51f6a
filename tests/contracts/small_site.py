"""Small centre as text: projects, allocations and runs for the tests of the stores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from fairbank.bank.allocation import Allocation, AllocationEvent, AllocationTerms
from fairbank.bank.entry import Entry
from fairbank.bank.policy import Policy
from fairbank.bank.project import Member, Project, Role
from fairbank.bank.query import Page, UserRow
from fairbank.bank.refusals import Refusal
from fairbank.bank.requests import (
    Adjust,
    Amend,
    Charge,
    CreateProject,
    Deposit,
    Hold,
    IssueToken,
    Open,
    Release,
    Request,
    SetCap,
    SetMember,
    SubmittedRequest,
)
from fairbank.bank.rules import Done, Outcome
from fairbank.bank.run import ReportedRun, RunEnd, RunRecord
from fairbank.bank.token import Token, TokenGrant
from fairbank.cluster.job import Run
from fairbank.core.time import Instant
from fairbank.core.units import SuMinutes
from fairbank.service.ledger import Ledger
from fairbank.store.contract import Reader, Store

START, END = Instant(1_000), Instant(9_000_000)
ALICE, BOB, CAROL, CLERK = 1001, 1002, 1003, 0
PAGE = Page()  # the first, and of this centre the only one


def ask(store: Store, *requests: Request, at: int = START) -> list[Outcome]:
    """Send all requests to the bank over `store` in one batch."""
    return Ledger(store, Policy()).apply(
        [SubmittedRequest(request, Instant(at), CLERK) for request in requests]
    )


def granted(store: Store, *requests: Request, at: int = START) -> list[Done]:
    """Send all requests in one batch and expect that none is refused."""
    outcomes = ask(store, *requests, at=at)
    assert not [outcome for outcome in outcomes if isinstance(outcome, Refusal)]
    return [outcome for outcome in outcomes if isinstance(outcome, Done)]


def project(name: str, number: int, **more: Any) -> CreateProject:
    return CreateProject(gname=name, gid=number, account=name, **more)


def allocation(
    project: int,
    deposit: int = 1_000,
    *,
    resource: str = "cpu",
    start: int = START,
    end: int = END,
    **more: Any,
) -> Open:
    request = {name: more.pop(name) for name in ("key", "comment") if name in more}
    terms = AllocationTerms(
        project=project,
        resource=resource,
        category=more.pop("category", "startup"),
        start=Instant(start),
        end=Instant(end),
        **more,
    )
    return Open(terms=terms, deposit=SuMinutes(deposit), **request)


def job(number: int, restart: int = 0) -> Run:
    return Run("darwin", number, 900, restart)


def hold(number: int, amount: int, *, project: int = 1, owner: int = ALICE, **more: Any) -> Hold:
    chain = more.pop("chain", (project,))
    project = chain[0] if chain else 0
    return Hold(
        chain=chain,
        resource=more.pop("resource", "cpu"),
        owner=owner,
        amount=SuMinutes(amount),
        reported=reported(number, project, more, partition="standard", until=START + 3_600),
        **more,
    )


def reported(
    number: int, project: int, more: dict[str, Any], *, partition: str = "", until: int
) -> ReportedRun:
    """Return the report of a run, and take its fields out of `more`."""
    return ReportedRun(
        run=more.pop("run", job(number)),
        project=project,
        start=Instant(more.pop("start", START)),
        until=Instant(more.pop("until", until)),
        partition=more.pop("partition", partition),
        job_details=more.pop("job_details", None),
    )


def charge(
    number: int, amount: int, *, project: int = 1, owner: int = ALICE, **more: Any
) -> Charge:
    end = run_end(more)
    return Charge(
        owner=owner,
        amount=SuMinutes(amount),
        reported=reported(number, project, more, until=end.ended),
        end=end,
        **more,
    )


def release(number: int, *, project: int = 1, owner: int = ALICE, **more: Any) -> Release:
    end = run_end({"ended": START, "outcome": "NODE_FAIL", "elapsed_seconds": 0} | more)
    return Release(reported=reported(number, project, {}, until=end.ended), owner=owner, end=end)


def run_end(more: dict[str, Any]) -> RunEnd:
    """Return the end of a run, and take its fields out of `more`."""
    return RunEnd(
        more.pop("outcome", "COMPLETED"),
        more.pop("elapsed_seconds", 600),
        Instant(more.pop("ended", START + 600)),
    )


def adjust(number: int, amount: int, until: int, *, project: int = 1, owner: int = ALICE) -> Adjust:
    return Adjust(
        reported=reported(number, project, {}, until=until), owner=owner, amount=SuMinutes(amount)
    )


def late_charge(
    number: int, amount: int, *, project: int = 1, owner: int = ALICE, **more: Any
) -> Charge:
    """Return a charge of a run whose hold never arrived."""
    chain = more.pop("chain", (project,))
    return charge(
        number,
        amount,
        project=chain[0],
        chain=chain,
        resource="cpu",
        owner=owner,
        start=more.pop("start", START),
        partition=more.pop("partition", "standard"),
        **more,
    )


def token(
    label: str = "laptop",
    uid: int = ALICE,
    scopes: tuple[str, ...] = ("agent:darwin", "read"),
    expires: int = END,
) -> IssueToken:
    grant = TokenGrant(
        digest=b"\x00\xff'\\" + label.encode(),
        uid=uid,
        label=label,
        scopes=scopes,
        expires=Instant(expires),
    )
    return IssueToken(grant=grant)


def deposits(count: int) -> list[Deposit]:
    """Return small deposits for chemistry, each with its own key, to make a batch large."""
    return [
        Deposit(allocation=2, amount=SuMinutes(1), key=f"other{number}") for number in range(count)
    ]


def fill(store: Store) -> None:
    """Create two projects with an allocation each: physics (1) with 1,000 SU-minutes, chemistry (2)
    with 500.
    """
    granted(store, project("physics", 100), project("chemistry", 200))
    granted(store, allocation(1, 1_000), allocation(2, 500))


def fill_with_runs(store: Store) -> Store:
    """Create physics (1) with two years of CPU and a year of GPU, chemistry (2) with CPU, biology
    (3) without an allocation; and runs of all kinds.
    """
    granted(
        store, project("physics", 100), project("chemistry", 200), project("biology", 300, parent=1)
    )
    granted(
        store,
        SetMember(project=1, uid=ALICE, role=Role.PI),
        SetMember(project=1, uid=BOB, role=Role.MEMBER),
    )
    granted(store, SetMember(project=2, uid=BOB, role=Role.COORDINATOR))
    granted(
        store,
        allocation(1, 1_000, start=START, end=END),
        allocation(1, 2_000, start=END, end=2 * END, category="annual"),
    )
    granted(
        store,
        allocation(1, 300, resource="gpu", shared=True, partition="course", reservation="course 5"),
        allocation(2, 500, category="annual"),
    )
    granted(
        store,
        Amend(allocation=4, project=2, resource="cpu", event=AllocationEvent.FREEZE),
        at=START + 5,
    )
    granted(store, SetCap(allocation=1, uid=BOB, cap=SuMinutes(400)))
    granted(
        store,
        hold(1, 100),
        hold(2, 50, owner=BOB, partition="large"),
        hold(3, 30, resource="gpu", start=START + 50),
        at=START + 10,
    )
    granted(store, hold(4, 10, start=START + 60, until=START + 61), charge(1, 55), at=START + 20)
    granted(store, release(2, owner=BOB, ended=START + 30), at=START + 30)
    ask(
        store,
        hold(5, 9_999),
        hold(6, 1, owner=CAROL, project=3),
        hold(7, 1, owner=CAROL, project=2),
        at=START + 40,
    )
    return store


class SnapshotReader:
    """Reader of a store that opens a snapshot for each query."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def __getattr__(self, query: str) -> Callable[..., Any]:
        def answer(*arguments: Any) -> Any:
            with self._store.reading() as reader:
                return getattr(reader, query)(*arguments)

        return answer


def numbers(rows: Sequence[Any]) -> list[int]:
    """Return the ids of the rows of an answer."""
    return [row.id for row in rows]


def all_rows(reader: Reader) -> tuple[Sequence[Any], ...]:
    """Return all rows of the ledger."""
    return (
        list(reader.scan(Project)),
        list(reader.scan(Member)),
        list(reader.scan(Allocation)),
        list(reader.scan(UserRow)),
        list(reader.scan(RunRecord)),
        list(reader.scan(Entry)),
        [reader.registry()],
        list(reader.scan(Token)),
    )


def contents(store: Store) -> tuple[Sequence[Any], ...]:
    """Return all rows of the ledger in one snapshot."""
    with store.reading() as reader:
        return all_rows(reader)


def copy_ledger(source: Store, target: Store) -> None:
    """Restore one store from the other, as from a backup."""
    projects, members, allocations, users, runs, entries, (registry,), tokens = contents(source)
    with target.restoring(replace=True) as filling:
        filling.insert(Project, projects)
        filling.insert(Member, members)
        filling.insert(Allocation, allocations)
        filling.insert(UserRow, users)
        filling.insert(RunRecord, runs)
        filling.insert(Entry, entries)
        filling.registry(registry)
        filling.insert(Token, tokens)
