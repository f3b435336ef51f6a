"""Measured use of storage as charges: one run for each project and day, so each counts once."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction

import msgspec

from fairbank.bank.records import BankFunds, BankRun, PlannedCharge
from fairbank.cluster.run_report import CompleteReport
from fairbank.core import ids
from fairbank.core.errors import InvalidInput, NotFound
from fairbank.core.ids import OVERFLOW_UID
from fairbank.core.time import DAY, MINUTE, iso, parse_instant
from fairbank.core.units import MINUTES_IN_SU, round_up
from fairbank.csv_import.table import CsvRow, CsvTable, TableFields
from fairbank.rest.client.bank_client import BankClient, ReportAmounts, ReportRefusal

STORAGE_FIELDS = TableFields(required=("account", "day", "tib_days"), optional=())
_TIB_DAYS = re.compile(r"\d{1,9}(?:\.\d{1,9})?", re.ASCII)
_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_COUNTED_AT = 600 * MINUTE
"""Time of the day, in UTC, at which usage counts it: the same day from Honolulu to Auckland."""


class StorageUse(msgspec.Struct, frozen=True):
    """Use of a project on one day, in UTC: TiB times days, each 1 SU."""

    account: str
    day: int
    tib_days: Fraction

    @property
    def amount(self) -> int:
        """Price in SU-minutes."""
        return round_up(self.tib_days * MINUTES_IN_SU)


class QuotaUse(msgspec.Struct, frozen=True):
    """Use of a project on its last day with a grant, and the average TiB that this grant allows.

    `elsewhere` is what was charged to the same grant for the day on other systems, in TiB. A
    charge is rounded up, so it is at most 1/60 TiB above the measured use.
    """

    use: StorageUse
    quota: Fraction
    elsewhere: Fraction

    @property
    def total(self) -> Fraction:
        """Use on all systems in TiB: one grant pays for them together."""
        return self.use.tib_days + self.elsewhere

    @property
    def is_over(self) -> bool:
        """True if the use on all systems is above the average."""
        return self.total > self.quota


class StorageResult(msgspec.Struct, frozen=True, kw_only=True):
    """Import of measured use. `left` are problems by line of use, `quotas` those by account.

    `amounts` is what the bank charged for the uses and wrote off; in a prediction only what the
    credit would not cover.
    """

    charged: Sequence[StorageUse]
    amounts: ReportAmounts
    known: int
    left: Sequence[tuple[StorageUse, str]]
    quotas: Mapping[str, QuotaUse]


def parse_storage_table(table: CsvTable, now: int) -> list[StorageUse]:
    """Return the uses in a table. Raises InvalidInput, also if a project has a day twice."""
    seen: set[tuple[str, int]] = set()

    def parse_row(row: CsvRow) -> StorageUse:
        use = _use(row, now)
        if (use.account, use.day) in seen:
            raise InvalidInput(
                f"{use.account} has this day on another line", field="day", remedy="add them up"
            )
        seen.add((use.account, use.day))
        return use

    return table.parse(parse_row)


def _use(row: CsvRow, now: int) -> StorageUse:
    account, date, number = (row.cells[field] for field in STORAGE_FIELDS.required)
    try:
        day = parse_instant(date if _DATE.fullmatch(date) else "", field="day")
    except InvalidInput as error:
        raise InvalidInput(
            f"{date[:40]!r} is not a day", field="day", remedy="write 2026-11-21"
        ) from error
    if day + DAY > now:
        raise InvalidInput(
            f"{date} has not ended", field="day", remedy="list only days in the past"
        )
    if not _TIB_DAYS.fullmatch(number):
        raise InvalidInput(
            f"{number[:40]!r} is not a number of TiB-days",
            field="tib_days",
            remedy="a decimal number from 0 to 999999999, such as 12.5",
        )
    return StorageUse(ids.name(account, field="account"), day, Fraction(number))


def import_storage(
    bank: BankClient, uses: Sequence[StorageUse], *, system: str, resource: str, dry_run: bool
) -> StorageResult:
    """Charge measured use that is not in the ledger.

    Args:
        bank: client of a superuser.
        uses: each of another project or day.
        system: name of the storage, which stands for the cluster of the runs.
        resource: the resource that is charged.
        dry_run: charge nothing, and predict the result.

    Raises:
        InvalidInput: `system` is a cluster.
    """
    _refuse_cluster(bank, system)
    projects, allocations = bank.projects_without_members(), bank.allocations()
    funds = BankFunds(projects, allocations)
    own, others = _measured_runs(bank, uses, system)
    charged_on = {allocation.id: allocation.terms.resource for allocation in allocations}
    new, left, known = list[StorageUse](), list[tuple[StorageUse, str]](), 0
    for use in uses:
        run = own.get((use.account, use.day))
        if run is None and not use.amount:
            continue
        if run is not None:
            problem = _difference(use, run, charged_on[run.allocation], resource)
        else:
            missing = funds.missing_payer(use.account, resource, use.day)
            problem = None if missing is None else missing.message
        if problem is not None:
            left.append((use, problem))
        elif run is not None:
            known += 1
        else:
            new.append(use)
    results: Sequence[ReportAmounts | ReportRefusal]
    if dry_run:
        planned = [PlannedCharge(use.account, resource, use.day, use.amount) for use in new]
        results = [ReportAmounts(written_off=part) for part in funds.beyond_credit(planned)]
    else:
        results = bank.report([_report(use, funds, system, resource) for use in new])
    answered = list(zip(new, results, strict=True))
    left += [(use, str(result)) for use, result in answered if isinstance(result, ReportRefusal)]
    charged = [(use, amounts) for use, amounts in answered if isinstance(amounts, ReportAmounts)]
    return StorageResult(
        charged=[use for use, _ in charged],
        amounts=ReportAmounts.total(amounts for _, amounts in charged),
        known=known,
        left=left,
        quotas=_quotas(uses, funds, resource, others),
    )


def _measured_runs(
    bank: BankClient, uses: Sequence[StorageUse], system: str
) -> tuple[Mapping[tuple[str, int], BankRun], Sequence[BankRun]]:
    """Return what was charged in the days of these uses: that of the system by account and day, and
    that of other systems.
    """
    days = [use.day for use in uses] or [0]
    runs = list(bank.runs(None, min(days), max(days) + DAY, measured=True))
    own = {(run.account, run.submitted): run for run in runs if run.reported.run.cluster == system}
    return own, [run for run in runs if run.reported.run.cluster != system]


def _difference(use: StorageUse, run: BankRun, charged_on: str, resource: str) -> str | None:
    """Return why a charged day contradicts the measured use; None if it agrees."""
    if charged_on != resource:
        return f"this day was charged on {charged_on}; name another storage with --system"
    if run.charged + run.written_off != use.amount:
        return "another amount was charged for this day"
    return None


def _refuse_cluster(bank: BankClient, system: str) -> None:
    """Refuse the name of a cluster: its accounting knows nothing of measured use."""
    try:
        bank.cluster(system)
    except NotFound:
        return
    raise InvalidInput(
        f"{system!r} is a cluster of the bank's settings",
        field="--system",
        remedy="a name of the storage that no cluster has, such as scratch",
    )


def _quotas(
    uses: Sequence[StorageUse], funds: BankFunds, resource: str, others: Sequence[BankRun]
) -> dict[str, QuotaUse]:
    """Return the use of the last day with a grant beside its quota, by account.

    Args:
        uses: what was measured on one system.
        resource: the resource that is charged.
        others: measured use that was charged on other systems.
    """
    elsewhere: Counter[tuple[str, int, int]] = Counter()
    for run in others:
        amount = run.charged + run.written_off
        elsewhere[run.account, run.submitted, run.allocation] += amount
    quotas = {}
    for use in sorted(uses, key=lambda use: use.day):
        project = funds.by_account.get(use.account)
        for payer in funds.payers(project.id, resource, use.day)[:1] if project else ():
            term = Fraction(payer.terms.end - payer.terms.start, DAY)
            quota = payer.deposited / (MINUTES_IN_SU * term)
            more = Fraction(elsewhere[use.account, use.day, payer.id], MINUTES_IN_SU)
            quotas[use.account] = QuotaUse(use, quota, more)
    return quotas


def _report(use: StorageUse, funds: BankFunds, system: str, resource: str) -> CompleteReport:
    return CompleteReport(
        cluster=system,
        job_id=funds.by_account[use.account].id,
        submitted=use.day,
        owner_uid=OVERFLOW_UID,
        account=use.account,
        resource=resource,
        start=use.day,
        end=use.day + _COUNTED_AT,
        elapsed=0,
        state="COMPLETED",
        amount=use.amount,
        name=f"{system} storage",
        comment=f"measured on {iso(use.day)[:10]}",
    )
