"""Comparisons of accounting and ledger for the tests of their differences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fairbank.bank.records import BankRun
from fairbank.cluster.accounting_job import AccountingJob
from fairbank.slurm.parsers.values import QueuedJob
from fairbank.slurm.reconcile.compare import (
    Category,
    ReconcileComparison,
    ReconcileFinding,
    ReconcileInput,
    compare,
)
from tests.slurm.reconcile.jobs import CLUSTER, NOW

HOUR = 3_600


def compare_records(
    jobs: Sequence[AccountingJob] = (),
    runs: Sequence[BankRun] = (),
    queue: Sequence[QueuedJob] = (),
    **more: object,
) -> ReconcileComparison:
    facts: dict[str, Any] = {
        "since": NOW - 10**6,
        "until": NOW,
        "now": NOW,
        "grace_seconds": HOUR,
        **more,
    }
    return compare(ReconcileInput(cluster=CLUSTER, jobs=jobs, runs=runs, queue=queue, **facts))


def categories(comparison: ReconcileComparison) -> list[Category]:
    return [finding.category for finding in comparison.findings]


def only_finding(comparison: ReconcileComparison) -> ReconcileFinding:
    (finding,) = comparison.findings
    return finding
