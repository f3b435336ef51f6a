"""Accounting and the books side by side, for the tests of what differs."""

from __future__ import annotations

from collections.abc import Sequence

from fairbank.slurm.parsers.values import (Job, Queued)
from fairbank.slurm.compare.bank_records import BookedRun
from fairbank.slurm.compare.classification import (Comparison, Finding, Kind, Sides, compare)
from tests.slurm.beside.jobs import CLUSTER, NOW

HOUR = 3_600


def compared(
    jobs: Sequence[Job] = (),
    runs: Sequence[BookedRun] = (),
    queue: Sequence[Queued] = (),
    **more: object,
) -> Comparison:
    facts = {"since": NOW - 10**6, "until": NOW, "now": NOW, "grace_seconds": HOUR, **more}
    return compare(Sides(cluster=CLUSTER, jobs=jobs, runs=runs, queue=queue, **facts))  # type: ignore[arg-type]


def kinds(comparison: Comparison) -> list[Kind]:
    return [each.kind for each in comparison.findings]


def only(comparison: Comparison) -> Finding:
    (found,) = comparison.findings
    return found
