"""Translation of run reports into requests: looks up accounts, prices and deadlines."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from msgspec.structs import asdict

from fairbank.bank.pricing import cost
from fairbank.bank.requests import Adjust, Charge, Ending, Hold, Release, SubmittedRequest, Unpriced
from fairbank.cluster.job import check_run
from fairbank.cluster.partition import Cluster, find_cluster
from fairbank.cluster.run_report import (
    LimitChanged,
    RunEnded,
    RunPiece,
    RunReport,
    RunStarted,
    fingerprint,
)
from fairbank.core import ids
from fairbank.core.errors import FairbankError, InvalidInput, NotFound
from fairbank.core.time import LAST_INSTANT, LIMIT_MAX_SECONDS, Instant
from fairbank.core.tres import billing
from fairbank.core.units import AMOUNT_MAX, SuMinutes
from fairbank.service.access.identity import Identity, check_cluster
from fairbank.service.use_cases import UseCases

PreparedReport = SubmittedRequest | FairbankError


class RunReports(UseCases):
    """Translator of run reports. The write queue applies the requests."""

    def prepare(self, identity: Identity, reports: Sequence[RunReport]) -> list[PreparedReport]:
        """Return a request, or the error, for each report. Reads the store if the cached projects
        are too old.
        """
        self._project_cache.load([each.account for each in reports])
        return self.requests(identity, reports)

    def can_prepare_now(self, reports: Sequence[RunReport]) -> bool:
        """Return True if `requests` needs no read: all accounts are in the cache and fresh."""
        return self._project_cache.has_fresh([each.account for each in reports])

    def requests(self, identity: Identity, reports: Sequence[RunReport]) -> list[PreparedReport]:
        """Return a request, or the error, for each report, from cached projects only. It never
        waits.
        """
        now = self._clock.now()
        latest = now + self._context.policy.clock_tolerance_seconds
        prepared: list[PreparedReport] = []
        for report in reports:
            try:
                check_cluster(identity, report.run.cluster)
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

    def _request(self, report: RunReport) -> Hold | Adjust | Charge | Release | Unpriced:
        check_run(report.run)
        ids.uid(report.owner, field="owner_uid")
        _checked_seconds(report.limit_seconds, "time_limit")
        until = Instant(
            min(
                report.start + report.limit_seconds + self._context.policy.hold_grace_seconds,
                LAST_INSTANT,
            )
        )
        match report:
            case RunStarted():
                return self._hold(report, until)
            case LimitChanged():
                _check_limit(report)
                return self._adjust(report, until)
            case RunEnded():
                return self._resolution(report)
            case _:
                raise InvalidInput(
                    "a report is a start, a change or an end",
                    field="do",
                    remedy="one of hold, adjust, complete",
                )

    def _hold(self, report: RunStarted, until: Instant) -> Hold:
        project = self._project_cache.cached(report.account)
        # A removed project gets no hold, but the ends of its runs are charged.
        removed = project.id if project is not None and project.removed else None
        _check_limit(report)
        # A reported price holds for any time limit, so it has no rate.
        units = None if report.amount is not None else self._units(report)
        return Hold(
            run=report.run,
            chain=self._project_cache.project_chain(project) if project and removed is None else (),
            account=None if project else report.account,
            removed=removed,
            resource=self._resource(report),
            owner=report.owner,
            amount=self._price(report, report.limit_seconds),
            start=report.start,
            until=until,
            partition=report.partition,
            billing=None if units is None else str(units * self._factor(report)),
            limit_seconds=report.limit_seconds,
            key=report.key,
            comment=report.comment,
            job_details=report.job_details,
        )

    def _adjust(self, report: LimitChanged, until: Instant) -> Adjust:
        project = self._project_cache.cached(report.account)
        return Adjust(
            run=report.run,
            amount=self._price(report, report.limit_seconds),
            until=until,
            start=report.start,
            chain=self._project_cache.project_chain(project) if project else (),
            account=None if project else report.account,
            resource=self._resource_if_known(report),
            owner=report.owner,
            key=report.key,
            comment=report.comment,
            job_details=report.job_details,
            priced_in=_priced_in(report),
        )

    def _resolution(self, report: RunEnded) -> Charge | Release | Unpriced:
        _checked_seconds(report.elapsed_seconds, "elapsed")
        project = self._project_cache.cached(report.account)
        free = report.outcome in self._context.policy.free_states or (
            report.amount is None and not report.elapsed_seconds
        )
        end = Ending(
            run=report.run,
            ended=report.ended,
            outcome=report.outcome,
            elapsed_seconds=report.elapsed_seconds,
            chain=self._project_cache.project_chain(project) if project else (),
            # The usage of an unknown account is not lost: it is recorded as refused.
            account=None if project else report.account,
            resource=self._resource_if_known(report),
            owner=report.owner,
            start=report.start,
            partition=report.partition,
            key=report.key,
            comment=report.comment,
            job_details=report.job_details,
        )
        try:
            amount = SuMinutes(0) if free else self._price(report, report.elapsed_seconds)
        except NotFound as unknown:
            # The partition was renamed since: the usage is not lost, it is recorded as refused.
            return Unpriced(why=unknown.message, **asdict(end))
        if not amount:
            return Release(**asdict(end))
        return Charge(amount=amount, priced_in=_priced_in(report), **asdict(end))

    def _price(self, report: RunReport, seconds: int) -> SuMinutes:
        """Return the cost of `seconds` of the run. Raises InvalidInput if the report has nothing to
        price it by.
        """
        if report.amount is not None:
            amount = report.amount
        else:
            units = _required(self._units(report))
            pieces = [
                (_required(self._units(report, piece)), piece.seconds) for piece in report.pieces
            ]
            amount = cost(units, self._factor(report), seconds, pieces)
        if not 0 <= amount <= AMOUNT_MAX:
            raise InvalidInput(
                f"{amount} SU-minutes is out of range",
                field="amount",
                remedy=f"from 0 to {AMOUNT_MAX}",
            )
        return SuMinutes(amount)

    def _units(self, report: RunReport, piece: RunPiece | None = None) -> Fraction | None:
        """Return the billing units of the run, or of a piece of it; None if nothing has them."""
        priced = piece or report
        if priced.billing is not None:
            return priced.billing
        if priced.counts is None:
            return None
        partition = self._cluster(report).partition(report.partition)
        return billing(priced.counts, partition.weights, partition.billing_rule)

    def _factor(self, report: RunReport) -> Fraction:
        cluster = self._context.clusters.get(report.run.cluster)
        return cluster.qos_factor(report.qos) if cluster else Fraction(1)

    def _resource(self, report: RunReport) -> str:
        if report.resource is not None:
            return ids.kind(report.resource)
        return self._cluster(report).partition(report.partition).resource

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
            self._context.clusters, report.run.cluster, otherwise="; or send resource and billing"
        )


def _required(units: Fraction | None) -> Fraction:
    if units is None:
        raise InvalidInput(
            "nothing prices this run", field="billing", remedy="send billing, tres or amount"
        )
    return units


def _priced_in(report: LimitChanged | RunEnded) -> str | None:
    """Return the partition whose weights price the run; None if the report has its own price."""
    return report.partition if report.amount is None and report.billing is None else None


def _check_limit(report: RunReport) -> None:
    """Raise InvalidInput without a finite limit, which sets the cost and the end of the hold."""
    if not report.limit_seconds:
        raise InvalidInput(
            "a hold needs a finite time limit",
            field="time_limit",
            remedy="send the limit in seconds, at least 1",
        )


def _checked_seconds(seconds: int, field: str) -> None:
    if not 0 <= seconds <= LIMIT_MAX_SECONDS:
        raise InvalidInput(
            f"{seconds} s is out of range",
            field=field,
            remedy=f"whole seconds from 0 to {LIMIT_MAX_SECONDS}; holds need a finite limit",
        )
