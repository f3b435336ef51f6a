"""What groups of runs used, as the shape that travels."""

from __future__ import annotations

from fairbank.bank.query import Usage
from fairbank.cluster.job_details import split_status
from fairbank.rest.bodies import answers


def usage_row(usage: Usage) -> answers.UsageRow:
    """What a group of runs used: charged in SU-minutes, times in seconds."""
    code, signal = split_status(usage.early_exit)
    return answers.UsageRow(
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
