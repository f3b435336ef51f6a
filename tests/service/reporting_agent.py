"""Site with a bank in memory and the agent that reports its cluster's runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal

import msgspec

from fairbank.bank.allocation import AllocationTerms
from fairbank.bank.policy import Policy
from fairbank.bank.refusals import Alternative, Detail, Reason, Refusal
from fairbank.bank.requests import CreateProject, Open, Request, SubmittedRequest
from fairbank.bank.rules import Done, Outcome
from fairbank.cluster.partition import Cluster
from fairbank.cluster.run_report import AdjustReport, CompleteReport, HoldReport, RunReport
from fairbank.core.time import Instant
from fairbank.core.units import SuMinutes
from fairbank.service.access.identity import Staff, identity_of
from fairbank.service.services import services
from fairbank.store.memory.store import MemoryStore
from tests.support.clock import ManualClock
from tests.support.ticks import Ticks

NOW, END = Instant(1_000), Instant(9_000)
AGENT, ALICE = 7, 1001
STAFF = Staff(agents={AGENT: frozenset({"darwin"})})
GROUPS = {ALICE: frozenset({30})}


class ReportingSite:
    """Services of a bank in memory, and the agent of its cluster."""

    def __init__(self, policy: Policy, groups: Mapping[int, frozenset[int]] | None) -> None:
        groups_of = None if groups is None else lambda uid: groups.get(uid, frozenset())
        self.ticks = Ticks()
        self.clusters: dict[str, Cluster] = {}
        self.services = services(
            MemoryStore(),
            clock=ManualClock(NOW),
            staff=STAFF,
            clusters=self.clusters,
            # The clock stands still while runs end.
            policy=msgspec.structs.replace(policy, clock_tolerance_seconds=END),
            key=b"k" * 32,
            groups_of=groups_of,
            monotonic=self.ticks,
        )

    def apply(self, *requests: Request) -> list[Done]:
        """Apply requests that prepare the test."""
        outcomes = self.services.write_queue.apply(
            [SubmittedRequest(request, NOW, 0) for request in requests]
        )
        assert all(isinstance(outcome, Done) for outcome in outcomes), outcomes
        return [outcome for outcome in outcomes if isinstance(outcome, Done)]

    def project(
        self,
        name: str,
        number: int,
        *,
        credit: int = 0,
        parent: int | None = None,
        shared: bool = False,
    ) -> None:
        """Make a project with an allocation; both have the same number as long as each project has
        one.
        """
        project = (
            self.apply(CreateProject(gname=name, gid=10 * number, account=name, parent=parent))[
                0
            ].project
            or 0
        )
        opening = Open(
            terms=AllocationTerms(
                project=project,
                resource="cpu",
                category="startup",
                start=NOW,
                end=END,
                shared=shared,
            ),
            deposit=SuMinutes(credit),
        )
        self.apply(opening)
        self.services.project_cache.refresh()  # like the server that adds a project

    def report_run(self, report: RunReport) -> Outcome:
        """Apply a report of the agent. Raises the error of a report that is no valid request."""
        (prepared,) = self.services.reports.prepare(identity_of(AGENT, STAFF, {}), [report])
        if not isinstance(prepared, SubmittedRequest):
            raise prepared
        return self.services.write_queue.apply([prepared])[0]

    def stored_refusal(self, entry: int | None) -> Refusal:
        """Return the stored refusal, as staff see it."""
        return self.services.runs.refusal(
            identity_of(0, Staff(superusers=frozenset({0})), {}), entry or 0
        )[1]

    def observed_refusal(self, report: RunReport) -> Refusal:
        """Return the stored refusal of a job that was let through without a hold."""
        done = self.report_run(report)
        assert isinstance(done, Done)
        assert (done.amount, done.allocation, done.run) == (0, None, None)
        return self.stored_refusal(done.entry)

    def other_payers(
        self,
        requested: int,
        *,
        reason: Reason = Reason.INSUFFICIENT_CREDIT,
        detail: Detail = Detail.NONE,
    ) -> list[Alternative]:
        """Return the other projects that could pay for a job of Alice's that project 1 cannot
        pay.
        """
        refusal = Refusal(
            reason, detail, project=1, resource="cpu", owner=ALICE, requested=requested
        )
        return list(self.services.runs.alternatives(refusal))


def make_site(
    policy: Policy | None = None, groups: Mapping[int, frozenset[int]] | None = None
) -> Iterator[ReportingSite]:
    """Make one site, for a fixture to yield."""
    site = ReportingSite(policy or Policy(), groups)
    yield site
    site.services.close()


def run_started(account: str) -> HoldReport:
    return HoldReport(
        cluster="darwin",
        job_id=1,
        submitted=900,
        owner_uid=ALICE,
        account=account,
        resource="cpu",
        start=NOW,
        time_limit=3_600,
        billing=Decimal(1),
    )


def limit_changed(account: str, limit_seconds: int) -> AdjustReport:
    return AdjustReport(
        cluster="darwin",
        job_id=1,
        submitted=900,
        owner_uid=ALICE,
        account=account,
        resource="cpu",
        start=NOW,
        time_limit=limit_seconds,
        billing=Decimal(1),
        key="change",
    )


def run_ended(account: str) -> CompleteReport:
    return CompleteReport(
        cluster="darwin",
        job_id=1,
        submitted=900,
        owner_uid=ALICE,
        account=account,
        resource="cpu",
        start=NOW,
        billing=Decimal(1),
        end=NOW + 600,
        state="COMPLETED",
        elapsed=600,
        key="end",
    )
