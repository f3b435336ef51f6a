"""Usage by user, time, partition, allocation, job or QOS."""

from __future__ import annotations

from msgspec import Struct

from fairbank.bank.query import Usage
from fairbank.cluster.job import split_status


class UsageRow(Struct, frozen=True, kw_only=True):
    """Usage of a group of runs.

    `group` is the uid, the day or month (UTC), the partition, the allocation, the job as
    `cluster/number`, or the QOS (`-` if unknown). `runs` are those that ended, also those that cost
    nothing, such as after a node failure. `elapsed`, `waited` (from submission to start),
    `cpu_seconds` and `cpu_given` are seconds: processors were busy for `cpu_seconds` of the
    `cpu_given` that the runs had. `wasted` are the SU-minutes charged for the idle rest. These
    three count only runs of which they are known. `failed_early` counts the runs that failed within
    two minutes of their start; `early_exit_code` is their common exit code, null if it differs or
    is not known.
    """

    group: str | int
    runs: int
    failed: int
    charged: int
    elapsed: int
    waited: int
    cpu_seconds: int
    cpu_given: int
    wasted: int
    failed_early: int
    early_exit_code: int | None


def usage_row(usage: Usage) -> UsageRow:
    """Return the usage of a group of runs: charged in SU-minutes, times in seconds."""
    code, signal = split_status(usage.early_exit)
    return UsageRow(
        group=usage.group,
        runs=usage.runs,
        failed=usage.failed,
        charged=usage.charged,
        elapsed=usage.elapsed_seconds,
        waited=usage.waited_seconds,
        cpu_seconds=usage.cpu_seconds,
        cpu_given=usage.given_seconds,
        wasted=usage.wasted,
        failed_early=usage.early,
        early_exit_code=None if signal else code,
    )
