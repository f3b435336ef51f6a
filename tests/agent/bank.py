"""Bank in this process, called as the REST server calls it."""

from __future__ import annotations

import msgspec

from fairbank.bank.allocation import AllocationTerms
from fairbank.bank.policy import Policy
from fairbank.bank.query import AllocationQuery, Page, RefusalQuery, RunQuery, Visibility
from fairbank.bank.refusals import Reason, Refusal
from fairbank.bank.requests import CreateProject, Open, SubmittedRequest
from fairbank.bank.rules import Done
from fairbank.bank.run import RunRecord
from fairbank.cluster.partition import Cluster, Partition
from fairbank.cluster.run_report import RunReport
from fairbank.core.errors import FairbankError
from fairbank.core.time import DAY, Instant
from fairbank.core.units import SuMinutes
from fairbank.rest.json_body import read_json
from fairbank.rest.problems import fields_of_body, problem_of_refusal
from fairbank.rest.schemas.answers import ReportAnswer
from fairbank.rest.schemas.envelope import granted_answer
from fairbank.rest.schemas.requests import ReportBatch
from fairbank.service.access.identity import Identity, Staff
from fairbank.service.services import services
from fairbank.store.memory.store import MemoryStore
from tests.agent.plugin import ACCOUNT, CLUSTER, PARTITION, START
from tests.support.clock import ManualClock

NOW = Instant(START + 100)
OLD_CLUSTER = "old"
US = Identity(actor=0, uid=0, superuser=True)


class InProcessBank:
    """Bank with one project and `credit` SU-minutes. The agent may report the runs of both clusters
    unless `denies_old` is set.
    """

    def __init__(self, credit: int, policy: Policy | None = None) -> None:
        self.denies_old = False
        partitions = {PARTITION: Partition(PARTITION, "cpu")}
        self.clusters = {name: Cluster(name, partitions) for name in (CLUSTER, OLD_CLUSTER)}
        self.clock = ManualClock(NOW)
        rules = policy or Policy(
            clock_tolerance_seconds=DAY
        )  # the clock stands still, so ends of runs lie in its future
        self._services = services(
            MemoryStore(),
            clock=self.clock,
            staff=Staff(),
            clusters=self.clusters,
            policy=rules,
            key=b"k" * 32,
        )
        counter = self._services.write_queue
        (created,) = counter.apply(
            [SubmittedRequest(CreateProject(gname=ACCOUNT, gid=5_000, account=ACCOUNT), NOW, 0)]
        )
        assert isinstance(created, Done)
        start, end = Instant(0), Instant(START * 2)
        request = Open(
            terms=AllocationTerms(
                project=created.project or 0, resource="cpu", category="x", start=start, end=end
            ),
            deposit=SuMinutes(credit),
        )
        (opened,) = counter.apply([SubmittedRequest(request, NOW, 0)])
        assert isinstance(opened, Done)
        self.allocation = opened.allocation or 0

    def bulk(self, body: bytes) -> list[ReportAnswer]:
        """Answer POST /job/bulk."""
        read = [self._read(raw) for raw in msgspec.json.decode(body, type=ReportBatch).reports]
        us = US
        if self.denies_old:
            us = Identity(actor=0, uid=0, clusters=frozenset({CLUSTER}))
        prepared = iter(
            self._services.reports.prepare(
                us, [report for report in read if not isinstance(report, FairbankError)]
            )
        )
        requests = [
            report if isinstance(report, FairbankError) else next(prepared) for report in read
        ]
        outcomes = iter(
            self._services.write_queue.apply(
                [request for request in requests if isinstance(request, SubmittedRequest)]
            )
        )
        return [
            _answer(next(outcomes) if isinstance(request, SubmittedRequest) else request)
            for request in requests
        ]

    def _read(self, raw: msgspec.Raw) -> RunReport | FairbankError:
        try:
            report: RunReport = read_json(raw, RunReport)
            return report
        except FairbankError as error:
            return error

    def runs(self) -> list[RunRecord]:
        return self._services.runs.find(
            RunQuery(visibility=Visibility(everything=True)), Page(1_000)
        )

    def refusals(self) -> list[Reason]:
        """Return the reasons of refused jobs. A changed limit without a hold is only recorded, so
        it is left out.
        """
        refusals = self._services.runs.refusals(
            RefusalQuery(visibility=Visibility(everything=True)), Page(1_000)
        )
        return [refusal.reason for _, refusal in refusals if refusal.reason is not Reason.NO_HOLD]

    def sums(self) -> tuple[int, int]:
        """Return the charged and the held SU-minutes."""
        with self._services.store.reading() as reader:
            (allocation,) = reader.allocations(
                AllocationQuery(visibility=Visibility(everything=True)), Page(2)
            )
        return allocation.charged, allocation.held

    def is_sound(self) -> bool:
        return not self._services.audit.verify().findings

    def close(self) -> None:
        self._services.close()


def _answer(outcome: object) -> ReportAnswer:
    match outcome:
        case Done():
            return ReportAnswer(
                status=200 if outcome.again else 201, granted=granted_answer(outcome)
            )
        case Refusal():
            problem = problem_of_refusal(outcome, fields=fields_of_body(RunReport))
            return ReportAnswer(
                status=problem.status,
                detail=problem.detail,
                field=problem.field,
                remedy=problem.remedy,
                refusal=problem.refusal,
            )
        case FairbankError():
            return ReportAnswer(
                status=outcome.status,
                detail=outcome.message,
                field=outcome.field,
                remedy=outcome.remedy,
            )
    raise AssertionError(outcome)
