"""Rows and notes of simulations, for `simulate` and `whatif`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairbank.core.errors import InvalidInput, list_some
from fairbank.core.units import counted
from fairbank.report.cells import plain

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from fairbank.cli.framework.context import Context
    from fairbank.report.columns import Row
    from fairbank.simulator.engine.simulated_bank import CreditResult
    from fairbank.simulator.engine.simulation import SimulationResult


def check_simulated(
    context: Context, outcome: SimulationResult, *, synthetic: bool = False
) -> None:
    """Raise InvalidInput, after the notes on what was left out, if no job was simulated."""
    if outcome.figures is None and not _refused(outcome):
        context.note(*omission_notes(outcome))
        if synthetic:
            raise InvalidInput(
                "no job of this workload can be simulated",
                field="jobs",
                remedy="more jobs: --jobs N; or more processors: --procs N",
            )
        raise InvalidInput(
            "no job of this trace can be simulated",
            field="FILE",
            remedy="name a trace with jobs that ran, and enough processors: --procs N",
        )


def row_of(outcome: SimulationResult, *, exactly: bool) -> Row:
    """Return all figures of a policy; the fingerprint of its schedule only if `exactly`."""
    figures, misses, credit = outcome.figures, outcome.late_starts, outcome.credit
    left = sum(map(len, outcome.omitted.values()))
    row: dict[str, Any] = {
        "policy": outcome.policy,
        "processors": outcome.processors,
        "jobs": outcome.lines - left,
        "left_out": left + sum(map(len, outcome.notes.omitted.values())),
        "corrected": (
            {how.name.lower(): number for how, number in outcome.corrections.items()}
            | dict(outcome.notes.corrections)
        ),
        "unfair_starts": misses and misses.part,
        "mean_late_seconds": misses and misses.mean_delay,
        "fair_starts_checked": misses and misses.jobs,
        "share_error": outcome.share_error,
        "jain_of_shares": outcome.jain_of_shares,
        "fingerprint": outcome.starts.fingerprint() if exactly else None,
    }
    if credit is not None:
        row |= _use_of_credit(credit, row["jobs"])
    if figures is None:
        return row
    return row | {
        "users": figures.users,
        "mean_wait_seconds": figures.mean_wait,
        "median_wait_seconds": figures.median_wait,
        "wait_95_seconds": figures.wait_95,
        "longest_wait_seconds": figures.longest_wait,
        "mean_turnaround_seconds": figures.mean_turnaround,
        "mean_bounded_slowdown": figures.mean_slowdown,
        "utilisation": figures.utilisation,
        "loss_of_capacity": figures.loss_of_capacity,
        "makespan_seconds": figures.makespan,
        "jain": figures.jain,
    }


CREDIT = {
    "granted_minutes": "granted",
    "charged_minutes": "charged",
    "expired_minutes": "expired",
    "refused_jobs": "refused",
    "unpaid_jobs": "unpaid",
    "unpaid_minutes": "unpaid_minutes",
}
"""Fields of the output with those of an account's credit, in SU-minutes and jobs."""


def _use_of_credit(credit: CreditResult, jobs: int) -> dict[str, Any]:
    """Return the sums over all accounts for each resource, and the jobs that were not paid."""
    resources: list[Row] = []
    for resource in sorted({fund.resource for fund in credit.funds}):
        funds = [fund for fund in credit.funds if fund.resource == resource]
        sums = {key: sum(getattr(fund, field) for fund in funds) for key, field in CREDIT.items()}
        granted = sums["granted_minutes"]
        part = sums["expired_minutes"] / granted if granted else None
        resources.append({"resource": resource, **sums, "expired_part": part})
    refused, unpaid = (
        sum(row[key] for row in resources) for key in ("refused_jobs", "unpaid_jobs")
    )
    return {
        "resources": resources,
        "refused_jobs": refused,
        "unpaid_jobs": unpaid,
        "refused_part": refused / jobs if jobs and not unpaid else None,
        "unpaid_part": unpaid / jobs if unpaid else None,
    }


def credit_rows(outcomes: Sequence[SimulationResult]) -> list[Row]:
    """Return the use of each account's credit for a resource."""
    return [
        {
            "policy": outcome.policy,
            "account": fund.account,
            "resource": fund.resource,
            **{key: getattr(fund, field) for key, field in CREDIT.items()},
        }
        for outcome in outcomes
        if outcome.credit is not None
        for fund in outcome.credit.funds
    ]


def delivery_rows(outcomes: Sequence[SimulationResult]) -> list[Row]:
    """Return the delivered share of each account beside its own share."""
    return [
        {
            "policy": outcome.policy,
            "account": share.account,
            "delivered": share.delivered,
            "entitled": share.due,
        }
        for outcome in outcomes
        for share in outcome.delivered
    ]


def omission_notes(outcome: SimulationResult) -> list[str]:
    """Return notes on everything that was left out or changed."""
    notes = [
        f"left out: {counted(len(lines), 'line')}, {why} (line {list_some(lines)})"
        for why, lines in outcome.notes.omitted.items()
    ]
    if outcome.header_jobs is not None and outcome.header_jobs > outcome.lines:
        notes.append(
            f"the header speaks of {counted(outcome.header_jobs, 'job')}, and there are"
            f" {outcome.lines:,}: the trace may be cut short"
        )
    if accounts := outcome.unmatched_accounts:
        notes.append(
            f"shares of {counted(len(accounts), 'account')} without a job in this trace,"
            f" which count all the same ({plain(list_some(accounts))})"
        )
    notes += [
        f"left out: {counted(len(numbers), 'job')}, {why.value} ({list_some(numbers)})"
        for why, numbers in outcome.omitted.items()
    ]
    if outcome.figures is None and (refused := _refused(outcome)):
        notes.append(
            f"no job ran, {counted(refused, 'job')} refused for lack of credit: grant more, or let"
            " them run last (--unpaid last)"
        )
    notes += [
        f"corrected: {counted(number, 'job')} {how.value}"
        for how, number in outcome.corrections.items()
        if number
    ]
    return notes + [
        f"corrected: {counted(number, 'line')}, {how}"
        for how, number in outcome.notes.corrections.items()
    ]


def policy_remarks(outcomes: Iterable[SimulationResult]) -> list[str]:
    """Return the remarks on policy files, each once."""
    return list(
        dict.fromkeys(
            f"policy {plain(outcome.policy)}: {remark}"
            for outcome in outcomes
            for remark in outcome.remarks
        )
    )


def refusal_notes(outcomes: Mapping[str, SimulationResult]) -> list[str]:
    """Return the number of jobs without credit, over which the measures of a schedule do not go."""
    refusals = {
        name: _refused(outcome) for name, outcome in outcomes.items() if outcome.figures is not None
    }
    if not any(refusals.values()):
        return []
    numbers = set(refusals.values())
    if len(numbers) == 1:
        refused = counted(numbers.pop(), "job")
    else:
        refused = ", ".join(f"{counted(n, 'job')} ({plain(name)})" for name, n in refusals.items())
    return [f"refused for lack of credit: {refused}; the measures are over the others"]


def _refused(outcome: SimulationResult) -> int:
    return sum(fund.refused for fund in outcome.credit.funds) if outcome.credit else 0


def new_omission_notes(before: SimulationResult, after: SimulationResult) -> list[str]:
    """Return the jobs that are left out only after a change."""
    notes = []
    for reason, numbers in after.omitted.items():
        known = set(before.omitted.get(reason, ()))
        if new := [number for number in numbers if number not in known]:
            notes.append(
                f"left out as changed: {counted(len(new), 'job')}, {reason.value}"
                f" ({list_some(new)})"
            )
    return notes
