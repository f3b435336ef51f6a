"""Strategies for requests. There are few projects, runs, users and keys, so that they collide."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import strategies as st

from fairbank.bank.allocation import AllocationEvent, AllocationTerms
from fairbank.bank.project import Role
from fairbank.bank.requests import (
    Adjust,
    Amend,
    AmendProject,
    AuditNote,
    Charge,
    CreateProject,
    Deposit,
    Expire,
    Hold,
    IssueToken,
    Lapse,
    Open,
    Refund,
    Release,
    RemoveProject,
    Request,
    RevokeToken,
    RunRequest,
    SetCap,
    SetMember,
    SubmittedRequest,
    Transfer,
    Undo,
    Withdraw,
)
from fairbank.bank.run import ReportedRun, RunEnd
from fairbank.bank.token import TokenGrant
from fairbank.cluster.job import JobDetails, Run, new_details
from fairbank.core.time import Instant
from fairbank.core.units import SuMinutes

# Projects 1 to 4: a college, its department, a group of the department, and a separate project.
LINES = [(1,), (2, 1), (3, 2, 1), (4,)]
PROJECTS: list[Request] = [
    CreateProject(gname=f"g{n}", gid=n, account=f"g{n}", parent=parent)
    for n, parent in ((1, None), (2, 1), (3, 2), (4, None))
]


def _grant(
    project: int,
    resource: str,
    start: int,
    end: int,
    *,
    shared: bool = False,
    limit: int = 0,
    deposit: int = 0,
) -> Open:
    period = Instant(start), Instant(end)
    terms = AllocationTerms(
        project, resource, "startup", *period, shared=shared, credit_limit=SuMinutes(limit)
    )
    return Open(terms=terms, deposit=SuMinutes(deposit))


# Credit for several jobs, but little enough that it runs out.
GRANTS: list[Request] = [
    _grant(1, "cpu", 0, 100, shared=True, deposit=60),
    _grant(2, "cpu", 0, 60, deposit=80),
    _grant(2, "cpu", 60, 120, deposit=40, limit=20),
    _grant(3, "cpu", 0, 90, deposit=30),
    _grant(4, "cpu", 10, 110, deposit=50),
    _grant(1, "gpu", 0, 120, shared=True, limit=30),
    SetCap(allocation=1, uid=1, cap=SuMinutes(20)),
    SetCap(allocation=2, uid=1, cap=SuMinutes(30)),
]

keys = st.sampled_from([*[None] * 30, *(f"k{number}" for number in range(6))])
amounts = st.integers(1, 40).map(SuMinutes)
costs = st.integers(0, 40).map(SuMinutes)
instants = st.integers(0, 12).map(lambda tens: Instant(10 * tens))
resources = st.sampled_from(["cpu", "cpu", "cpu", "gpu"])
projects = st.integers(1, 5)
allocations = st.sampled_from([1, 2, 2, 3, 3, 4, 4, 5, 6, 7, 8])
uids = st.integers(1, 2)
runs = st.builds(Run, st.just("darwin"), st.integers(1, 4), st.just(0), st.integers(0, 1))
starts = st.sampled_from([0, 10, 20, 50, 59, 60, 99, 100]).map(Instant)

_names = st.sampled_from(["relax", "=2+2", 'd\u00fcnn "w\\64" {}', "x" * 128])
_job_details = st.none() | st.builds(
    JobDetails,
    name=st.none() | _names,
    qos=st.sampled_from([None, "normal", "high"]),
    nodes=st.none() | st.integers(1, 2),
    cpus=st.none() | st.integers(0, 4),
    tres=st.sampled_from([None, "cpu=4,mem=8G"]),
    limit_seconds=st.none() | st.integers(1, 60),
    exit_status=st.none() | st.sampled_from([0, 9, 256]),
    cpu_seconds=st.none() | st.integers(0, 200),
    occupied=st.none() | st.integers(0, 90),
)
_run_fields: dict[str, Any] = {
    "key": keys,
    "reported": st.builds(
        ReportedRun,
        run=runs,
        project=st.just(0),
        partition=st.sampled_from(["", "", "std"]),
        start=starts,
        until=instants,
        job_details=_job_details.map(lambda details: new_details(details, None)),
    ),
    "chain": st.sampled_from(LINES),
    "resource": resources,
    "owner": uids,
}
_ends = st.builds(
    RunEnd,
    outcome=st.sampled_from(["COMPLETED", "FAILED"]),
    elapsed_seconds=st.integers(0, 99),
    ended=instants,
)


def _of_chain(request: RunRequest) -> RunRequest:
    """Return the request with the first project of its chain in the report."""
    reported = msgspec.structs.replace(request.reported, project=request.chain[0])
    return msgspec.structs.replace(request, reported=reported)


def _of_its_job(request: RunRequest) -> RunRequest:
    """Return the request with the owner and the projects of its job."""
    which = request.reported.run.job_id - 1
    return msgspec.structs.replace(request, owner=which % 2 + 1, chain=LINES[which])


_reports: st.SearchStrategy[Any] = st.one_of(
    st.builds(Hold, amount=costs, **_run_fields),
    st.builds(Adjust, amount=costs, **_run_fields),
    st.builds(Charge, amount=costs, end=_ends, **_run_fields),
    st.builds(Release, end=_ends, **_run_fields),
)
of_runs: st.SearchStrategy[Any] = st.one_of(
    _reports.map(_of_its_job).map(_of_chain),
    _reports.map(_of_its_job).map(_of_chain),
    _reports.map(_of_chain),
    st.builds(Lapse, key=keys, run=runs),
    st.builds(Refund, key=keys, run=runs, amount=st.none() | amounts),
)
of_credit = st.one_of(
    st.builds(Deposit, key=keys, allocation=allocations, amount=amounts),
    st.builds(Withdraw, key=keys, allocation=allocations, amount=amounts),
    st.builds(Transfer, key=keys, source=allocations, target=allocations, amount=amounts),
    st.builds(
        SetCap,
        key=keys,
        allocation=allocations,
        uid=uids,
        cap=st.none() | costs,
        project=projects,
        by=st.none() | uids,
    ),
    st.builds(SetCap, allocation=allocations, uid=uids, cap=st.none() | costs),
)
openings = st.builds(
    Open,
    key=keys,
    terms=st.builds(
        AllocationTerms,
        project=projects,
        resource=resources,
        category=st.just("startup"),
        start=instants,
        end=instants,
        shared=st.booleans(),
        credit_limit=costs,
    ),
    deposit=costs,
)
# The caller looks up project and resource of the allocation: see `test_model`.
_amended: dict[str, Any] = {
    "key": keys,
    "allocation": allocations,
    "project": st.just(0),
    "resource": st.just(""),
}
of_terms = st.one_of(
    openings,
    st.builds(Amend, start=st.none() | instants, end=st.none() | instants, **_amended),
    st.builds(Amend, shared=st.booleans(), **_amended),
    st.builds(Amend, credit_limit=costs, **_amended),
    st.builds(
        Amend,
        # The model knows no removed allocations; tests/contracts/test_corrections.py does.
        event=st.sampled_from(
            [*(set(AllocationEvent) - {AllocationEvent.REMOVE}), AllocationEvent.FREEZE]
        ),
        end=st.none() | instants,
        **_amended,
    ),
    st.builds(Expire, key=keys, allocation=allocations),
)
of_the_registry = st.one_of(
    st.builds(
        CreateProject,
        key=keys,
        gname=st.sampled_from(["g1", "g5", "g6"]),
        gid=st.sampled_from([1, 5, 6]),
        account=st.sampled_from(["g1", "g5"]),
        parent=st.none() | projects,
    ),
    st.builds(
        AmendProject,
        key=keys,
        project=projects,
        gname=st.none() | st.sampled_from(["g1", "g7"]),
        gid=st.none() | st.sampled_from([1, 7]),
        account=st.none() | st.sampled_from(["g1", "g7"]),
        parent=st.none() | st.just(0) | projects,
        restore=st.booleans(),
    ),
    st.builds(RemoveProject, key=keys, project=projects),
    st.builds(
        SetMember,
        key=keys,
        project=projects,
        uid=uids,
        role=st.none() | st.sampled_from(Role),
        by=st.none() | uids,
    ),
    st.builds(
        IssueToken,
        key=keys,
        grant=st.builds(
            TokenGrant,
            digest=st.sampled_from([b"\0" * 32, b"\xff'" * 16, b"d" * 32]),
            uid=uids,
            label=st.just("laptop"),
            scopes=st.sampled_from([("read",), ("agent:darwin", "write")]),
            expires=instants,
        ),
    ),
    st.builds(RevokeToken, key=keys, token=st.integers(1, 3), uid=st.none() | uids),
    st.builds(AuditNote, key=keys, details=st.just('{"as":7}')),
)

# The caller looks up the allocation of the entry: see `test_model`.
of_entries = st.builds(
    Undo, key=keys, entry=st.integers(1, 60), allocation=st.just(0), by=st.none() | uids
)

of_anything = st.one_of(of_runs, of_credit, of_terms, of_the_registry, of_entries)


def submitted_by(actor: int, report: int | None, request: Request) -> SubmittedRequest:
    """Return a submitted request, from one of two reports of its kind about its run."""
    digest = None
    if report is not None and isinstance(request, Hold | Adjust | Charge | Release):
        kind = "end" if isinstance(request, Charge | Release) else type(request).__name__
        digest = f"{kind} {request.reported.run} {report}".encode()
    return SubmittedRequest(request, Instant(0), actor, report_digest=digest)


actors = st.sampled_from([0, 0, 0, 7])
reports = st.sampled_from([None, None, 1, 2])


def submitted_requests(some: st.SearchStrategy[Request]) -> st.SearchStrategy[SubmittedRequest]:
    """Draw submitted requests."""
    return st.builds(submitted_by, actors, reports, some)
