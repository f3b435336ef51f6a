"""Translation of run reports into requests: looks up accounts, prices and deadlines."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from msgspec.structs import replace

from fairbank.bank.pricing import cost
from fairbank.bank.query import Page, RunQuery
from fairbank.bank.requests import (
    Adjust,
    Charge,
    Hold,
    Release,
    ReportRequest,
    SubmittedRequest,
    Unpriced,
)
from fairbank.bank.rules import Outcome
from fairbank.bank.run import ReportedRun, RunEnd, RunState
from fairbank.cluster.job import COMPLETED, NO_DETAILS, new_details
from fairbank.cluster.partition import Cluster, find_cluster, only_cluster
from fairbank.cluster.run_report import (
    AdjustReport,
    CompleteReport,
    HoldReport,
    OpenEndedHold,
    PredebitReport,
    RunPiece,
    RunReport,
    billing_units,
    check_report,
    fingerprint,
    job_details,
    outcome_of,
    tres_counts,
)
from fairbank.core import ids
from fairbank.core.errors import FairbankError, InvalidInput, NotFound
from fairbank.core.time import DAY, Instant
from fairbank.core.tres import Counts, billing
from fairbank.core.units import AMOUNT_MAX, SuMinutes, show_minutes
from fairbank.service.access.identity import Identity, check_cluster
from fairbank.service.use_cases import UseCases

PREDEBIT_SECONDS = 30 * DAY
"""Time for which a pre-debit is held at most: its job has no time limit that the bank knows."""

PreparedReport = SubmittedRequest | FairbankError


class RunReports(UseCases):
    """Translator of run reports. The write queue applies the requests."""

    def prepare(self, identity: Identity, reports: Sequence[RunReport]) -> list[PreparedReport]:
        """Return a request, or the error, for each report. Reads the store if the cached projects
        are too old.
        """
        self._project_cache.load([report.account for report in reports])
        return self.requests(identity, reports)

    def can_prepare_now(self, reports: Sequence[RunReport]) -> bool:
        """Return True if `requests` needs no read: all accounts are in the cache and fresh."""
        return self._project_cache.has_fresh([report.account for report in reports])

    def requests(self, identity: Identity, reports: Sequence[RunReport]) -> list[PreparedReport]:
        """Return a request, or the error, for each report, from cached projects only. It never
        waits.
        """
        now = self._clock.now()
        latest = now + self._context.policy.clock_tolerance_seconds
        prepared: list[PreparedReport] = []
        for report in reports:
            try:
                check_report(report)
                check_cluster(identity, report.cluster, self._context.clusters)
                prepared.append(
                    SubmittedRequest(
                        self._request(report),
                        now,
                        identity.actor,
                        identity.acting_as,
                        fingerprint(report),
                        latest,
                    )
                )
            except FairbankError as error:
                prepared.append(error)
        return prepared

    def of_predebit(self, identity: Identity, body: PredebitReport) -> RunReport:
        """Return the report that HADM's fields mean, from the newest run with this job id.

        Sent again, they mean the same report. Raises Forbidden, InvalidInput.
        """
        cluster = body.cluster or _cluster_of(identity) or only_cluster(self._context.clusters)
        check_cluster(identity, cluster, self._context.clusters)
        # A pre-debit has no partition: without a user, its run would count as measured use.
        ids.user_uid(body.owner_uid, field="owner_uid")
        now = self._clock.now()
        with self._store.reading() as reader:
            query = RunQuery(cluster=cluster, job_id=body.job_id)
            newest = next(iter(reader.runs(query, Page(1, newest_first=True))), None)
        if newest is not None and body.status == "executing" and newest.state is not RunState.HELD:
            newest = None  # the number is used again
        start = now if newest is None else newest.reported.start
        fields: dict[str, Any] = {
            "cluster": cluster,
            "job_id": body.job_id,
            "submitted": now if newest is None else newest.reported.run.submitted,
            "restart": 0 if newest is None else newest.reported.run.restart,
            "owner_uid": body.owner_uid,
            "account": body.project,
            "resource": body.resource,
            "amount": body.amount,
            "start": start,
        }
        if body.status == "executing":
            return OpenEndedHold(**fields, time_limit=PREDEBIT_SECONDS)
        before = None if newest is None else newest.end
        end = max(now, start) if before is None else before.ended
        state = COMPLETED if before is None else before.outcome
        return CompleteReport(**fields, end=end, elapsed=end - start, state=state)

    def dry_run(self, identity: Identity, report: RunReport) -> Outcome:
        """Return the refusal that a report would get; the handler is a DryRun.

        Raises DryRunResult with the entries if it would be granted.
        """
        (prepared,) = self.prepare(identity, [report])
        if isinstance(prepared, FairbankError):
            raise prepared
        return self._context.handler.apply([prepared])[0]

    def _request(self, report: RunReport) -> ReportRequest:
        counts = tres_counts(report)
        match report:
            case HoldReport():
                return self._hold(report, counts)
            case AdjustReport():
                return Adjust(
                    **self._facts(report, counts, self._hold_end(report)),
                    resource=self._resource_if_known(report),
                    amount=self._price(report, counts, _finite_limit(report)),
                    priced_in=_priced_in(report),
                )
            case CompleteReport():
                return self._resolution(report, counts)

    def _hold(self, report: HoldReport, counts: Counts | None) -> Hold:
        limit_seconds = _finite_limit(report)
        facts = self._facts(report, counts, self._hold_end(report))
        project = self._project_cache.cached(report.account)
        if project is not None and project.removed:
            facts["chain"] = ()  # it gets no hold, but the ends of its runs are charged
        # A reported price holds for any time limit, so it has no rate.
        units = None if report.amount is not None else self._units(report, counts)
        return Hold(
            **facts,
            resource=self._resource(report),
            amount=self._price(report, counts, limit_seconds),
            billing=None if units is None else str(units * self._factor(report)),
        )

    def _hold_end(self, report: HoldReport | AdjustReport) -> Instant:
        seconds = report.time_limit + report.suspended
        return self._context.policy.hold_end(report.start, seconds)

    def _resolution(
        self, report: CompleteReport, counts: Counts | None
    ) -> Charge | Release | Unpriced:
        outcome = outcome_of(report)
        free = outcome in self._context.policy.free_states or (
            report.amount is None and not report.elapsed
        )
        end: dict[str, Any] = {
            **self._facts(report, counts, Instant(report.end)),
            "resource": self._resource_if_known(report),
            "end": RunEnd(outcome, report.elapsed, Instant(report.end)),
            "cluster_known": report.cluster in self._context.clusters,
        }
        try:
            if report.amount is None:
                self._factor(report)  # a free end, too, is answered as its hold would be
            amount = SuMinutes(0) if free else self._price(report, counts, report.elapsed)
        except NotFound as unknown:
            # The settings changed since. Without the partition the usage is recorded as refused;
            # without the cluster nothing is, and the agent sends the end again.
            return Unpriced(why=unknown.message, **end)
        occupied = self._occupied(report, counts, amount)
        if occupied is not None:
            reported: ReportedRun = end["reported"]
            details = replace(reported.job_details or NO_DETAILS, occupied=occupied)
            end["reported"] = replace(reported, job_details=details)
        if not amount:
            return Release(**end)
        return Charge(amount=amount, priced_in=_priced_in(report), **end)

    def _facts(self, report: RunReport, counts: Counts | None, until: Instant) -> dict[str, Any]:
        """Return the fields that all requests about a run have."""
        project = self._project_cache.cached(report.account)
        return {
            "reported": ReportedRun(
                run=report.run,
                project=project.id if project else 0,
                partition=report.partition,
                start=Instant(report.start),
                until=until,
                job_details=new_details(job_details(report, counts), None),
            ),
            "chain": self._project_cache.project_chain(project) if project else (),
            # The usage of an unknown account is not lost: it is recorded as refused.
            "account": None if project else report.account,
            "owner": report.owner_uid,
            "key": report.key,
            "comment": report.comment,
        }

    def _price(self, report: RunReport, counts: Counts | None, seconds: int) -> SuMinutes:
        """Return the cost of `seconds` of the run. Raises InvalidInput if the report has nothing to
        price it by, or if the cost is too large.
        """
        if report.amount is not None:
            return SuMinutes(report.amount)
        amount = self._cost(report, counts, seconds)
        if amount > AMOUNT_MAX:
            raise InvalidInput(
                f"this run costs {show_minutes(amount)}, more than the bank can count",
                field="tres" if report.billing is None else "billing",
                remedy=f"at most {show_minutes(AMOUNT_MAX)}",
            )
        return amount

    def _occupied(
        self, report: CompleteReport, counts: Counts | None, price: SuMinutes
    ) -> int | None:
        """Return what an ended run had of the capacity in SU-minutes; None: its price, or
        unknown.

        A reported amount counts as it is: the bank cannot tell which factor it contains.
        """
        if not price and not report.elapsed:
            return None
        try:
            if price and (report.amount is not None or self._factor(report) == 1):
                return None
            full = report.amount or self._cost(report, counts, report.elapsed, Fraction(1))
        except (InvalidInput, NotFound):
            return None  # it is free, so nothing needs to price it
        return None if price and full == price else min(full, AMOUNT_MAX)

    def _cost(
        self, report: RunReport, counts: Counts | None, seconds: int, factor: Fraction | None = None
    ) -> SuMinutes:
        """Return the cost of `seconds` of the run by its billing units or TRES, by default at the
        factor of its QOS.
        """
        pieces = [
            (_known(self._units(report, tres_counts(report, piece), piece)), piece.seconds)
            for piece in report.pieces
        ]
        units = _known(self._units(report, counts))
        return cost(units, self._factor(report) if factor is None else factor, seconds, pieces)

    def _units(
        self, report: RunReport, counts: Counts | None, piece: RunPiece | None = None
    ) -> Fraction | None:
        """Return the billing units of a run, or of a piece of it; None if nothing prices it."""
        priced = piece or report
        if priced.billing is not None or counts is None:
            return billing_units(priced)
        partition = self._cluster(report).partition(report.partition)
        return billing(counts, partition.weights, partition.billing_rule)

    def _factor(self, report: RunReport) -> Fraction:
        """Return the QOS factor. Raises NotFound if the settings lack the cluster, unless the
        report needs nothing of it.
        """
        if report.resource is not None and report.qos is None:
            return Fraction(1)
        return self._cluster(report).qos_factor(report.qos)

    def _resource(self, report: RunReport) -> str:
        if report.resource is not None:
            return ids.kind(report.resource)
        return self._cluster(report).resource(report.partition, report.qos)

    def _resource_if_known(self, report: RunReport) -> str | None:
        """Return the billed resource; None for a partition that is not in the settings any more.

        Only a run whose hold never arrived needs it: a renamed partition must not keep a run open.
        """
        try:
            return self._resource(report)
        except NotFound:
            return None

    def _cluster(self, report: RunReport) -> Cluster:
        return find_cluster(
            self._context.clusters, report.cluster, otherwise="; or send resource and amount"
        )


def _cluster_of(identity: Identity) -> str | None:
    return next(iter(identity.clusters)) if len(identity.clusters) == 1 else None


def _known(units: Fraction | None) -> Fraction:
    if units is None:
        raise InvalidInput(
            "nothing prices this run", field="billing", remedy="send billing, tres or amount"
        )
    return units


def _priced_in(report: RunReport) -> str | None:
    """Return the partition whose weights price the run; None if the report has its own price."""
    return report.partition if report.amount is None and report.billing is None else None


def _finite_limit(report: RunReport) -> int:
    """Return the time limit, which sets the cost and the end of the hold. Raises InvalidInput."""
    if report.time_limit:
        return report.time_limit
    raise InvalidInput(
        "a hold needs a finite time limit",
        field="time_limit",
        remedy="send the limit in seconds, at least 1",
    )
