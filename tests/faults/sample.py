"""Small ledger with every kind of entry, runs in every state, caps, members and credit limits."""

from __future__ import annotations

import msgspec

from fairbank.bank.allocation import AllocationEvent, AllocationTerms
from fairbank.bank.policy import Policy
from fairbank.bank.project import Role
from fairbank.bank.requests import (
    Adjust,
    Amend,
    AuditNote,
    Charge,
    CreateProject,
    Deposit,
    Hold,
    IssueToken,
    Lapse,
    Open,
    Refund,
    Release,
    Request,
    RevokeToken,
    SetCap,
    SetMember,
    SubmittedRequest,
    Transfer,
    Undo,
    Withdraw,
)
from fairbank.bank.rules import Done
from fairbank.bank.run import ReportedRun, RunEnd
from fairbank.bank.token import TokenGrant
from fairbank.cluster.job import JobDetails, Run
from fairbank.core.time import Instant
from fairbank.core.units import SuMinutes
from fairbank.service.ledger import Ledger
from tests.faults.in_process import store_at

BEGIN, HOUR, YEAR = 1_790_000_000, 3_600, 31_536_000
_END = Instant(BEGIN + HOUR)
BUSY = JobDetails(exit_status=0, cpu_seconds=7 * HOUR)


def write_sample(url: str) -> None:
    """Apply the requests a few minutes apart; those with the comment "no" are refused."""
    with store_at(url) as store:
        bank = Ledger(store, Policy())
        refunds: list[Done] = []
        for number, request in enumerate(requests()):
            if isinstance(request, Undo):  # numbers have gaps on PostgreSQL
                request = msgspec.structs.replace(
                    request, entry=refunds[0].entry, allocation=refunds[0].allocation or 0
                )
            (outcome,) = bank.apply(
                [
                    SubmittedRequest(
                        request, Instant(BEGIN + 400 * number), 0, 1001 if number % 7 == 3 else None
                    )
                ]
            )
            assert isinstance(outcome, Done) != (request.comment == "no"), outcome
            if isinstance(request, Refund) and isinstance(outcome, Done):
                refunds.append(outcome)


def requests() -> list[Request]:
    return [
        CreateProject(gname="college", gid=4_000, account="college"),
        CreateProject(gname="physics", gid=4_001, account="phys", parent=1),
        SetMember(project=1, uid=1001, role=Role.PI),
        SetMember(project=2, uid=1002, role=Role.MEMBER),
        SetMember(project=2, uid=1003, role=Role.MEMBER),
        SetMember(project=2, uid=1003, role=None),
        AuditNote(details="somebody acted as user 1002"),
        _token("laptop", "read"),
        _token("portal", "read"),
        _token("local", "agent:local", "write"),
        RevokeToken(token=1, uid=1002),
        RevokeToken(token=1, comment="no"),
        _open(1, 6_000),
        _open(2, 9_000),
        Deposit(allocation=1, amount=SuMinutes(500), key="deposit", comment="more"),
        Withdraw(allocation=1, amount=SuMinutes(90), comment="less"),
        Transfer(source=1, target=2, amount=SuMinutes(700), key="transfer"),
        Amend(allocation=1, project=1, resource="cpu", credit_limit=SuMinutes(600), shared=True),
        Amend(allocation=2, project=2, resource="cpu", event=AllocationEvent.FREEZE),
        Amend(allocation=2, project=2, resource="cpu", event=AllocationEvent.THAW),
        SetCap(allocation=2, uid=1002, cap=SuMinutes(5_000)),
        *(_hold(number, 1_200 + number) for number in range(1, 6)),
        Adjust(
            reported=_reported(1, Instant(BEGIN + 9 * HOUR)),
            owner=_owner(1),
            amount=SuMinutes(1_500),
            key="adjust",
        ),
        Charge(
            reported=_reported(2, _END, BUSY),
            owner=_owner(2),
            amount=SuMinutes(700),
            end=RunEnd("COMPLETED", HOUR, _END),
        ),
        Release(reported=_reported(3, _END), owner=_owner(3), end=RunEnd("NODE_FAIL", 60, _END)),
        Refund(run=_run(2), amount=SuMinutes(100), comment="a bad node"),
        Lapse(run=_run(4)),
        Refund(run=_run(2), amount=SuMinutes(50), comment="another one"),
        Undo(entry=0, allocation=0, run=_run(2), comment="it was not the node"),
        _hold(9, 10**6, "no"),
        Deposit(allocation=77, amount=SuMinutes(1), key="nowhere", comment="no"),
        _late(8),
    ]


def _open(project: int, deposit: int) -> Open:
    start, end = Instant(BEGIN - YEAR), Instant(BEGIN + YEAR)
    return Open(
        terms=AllocationTerms(
            project=project, resource="cpu", category="research", start=start, end=end
        ),
        deposit=SuMinutes(deposit),
        comment="committee",
    )


def _token(label: str, *scopes: str) -> IssueToken:
    grant = TokenGrant(
        digest=label.encode() * 4,
        uid=1002,
        label=label,
        scopes=scopes,
        expires=Instant(BEGIN + YEAR),
    )
    return IssueToken(grant=grant)


def _run(number: int) -> Run:
    return Run("local", number, BEGIN - 100 + number, number % 2)


def _owner(number: int) -> int:
    return 1002 + number % 2


def _reported(number: int, until: Instant, details: JobDetails | None = None) -> ReportedRun:
    return ReportedRun(_run(number), 2, "cpu", Instant(BEGIN), until, details)


def _hold(number: int, amount: int, comment: str | None = None) -> Hold:
    return Hold(
        reported=_reported(
            number,
            Instant(BEGIN + 2 * HOUR),
            JobDetails(
                name=f"relax {number}",
                qos="normal",
                nodes=1,
                cpus=8,
                tres="cpu=8,mem=16G,node=1",
                limit_seconds=2 * HOUR,
            ),
        ),
        chain=(2, 1),
        resource="cpu",
        owner=_owner(number),
        amount=SuMinutes(amount),
        key=f"hold.{number}",
        comment=comment,
    )


def _late(number: int) -> Charge:
    return Charge(
        reported=ReportedRun(_run(number), 1, "", Instant(BEGIN), _END),
        amount=SuMinutes(33),
        end=RunEnd("COMPLETED", 120, _END),
        chain=(1,),
        resource="cpu",
        owner=1002,
    )
