"""Result of an import of finished runs: what was charged, written off, released and left."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairbank.core.ids import OVERFLOW_UID
from fairbank.core.units import counted, show_su
from fairbank.report.cells import plain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from fairbank.cli.framework.context import Context
    from fairbank.report.columns import Row
    from fairbank.rest.client.bank_client import ReportAmounts
    from fairbank.slurm.history_import import HistoryResult
    from fairbank.slurm.reconcile.repair import RepairOutcome

USERS_SHOWN = 5
COVER_ABOUT = (
    "create allocations of category history where no allocation would pay; if the settings name"
    " categories, history is one of them"
)


def show_history(context: Context, history: HistoryResult, source: str, *, dry_run: bool) -> int:
    """Print the result and return the number of runs and lines that are left out.

    Args:
        history: the result, or its prediction.
        source: what was imported: the name of a file, or `history` for Slurm's accounting.
        dry_run: the result is a prediction.
    """
    warnings = history_warnings(history)
    if context.options.form == "json":
        row = history_row(history, dry_run=dry_run)
        context.print_json("fairbank.history/2", [row], warnings)
        return history.left_out
    context.print_lines(
        plain(
            f"allocation for {allocation.account}/{allocation.terms.resource}:"
            f" {show_su(allocation.deposited)} SU for {counted(allocation.jobs, 'run')},"
            f" category {allocation.terms.category}"
        )
        for allocation in history.allocations
    )
    would = "would be " if dry_run else ""
    charged = of_resources(history.charged, price_text if dry_run else _amounts_text)
    context.print_text(
        f"{plain(source)}: {counted(len(history.charged), 'run')} {would}charged, {charged};"
        f" {history.known:,} known already"
    )
    if history.released:
        holds = counted(len(history.released), "hold")
        held = of_resources(history.released, _released_text)
        context.print_text(f"lost in Slurm: {holds} {would}released, {held}")
    context.note(*(f"! {warning}" for warning in warnings))
    return history.left_out


def history_row(history: HistoryResult, *, dry_run: bool) -> Row:
    """Return the result as data, its amounts for each resource."""
    charged, released = _by_resource(history.charged), _by_resource(history.released)
    return {
        "dry_run": dry_run,
        "covered": [
            {
                "account": allocation.account,
                "resource": allocation.terms.resource,
                "amount": allocation.deposited,
                "runs": allocation.jobs,
            }
            for allocation in history.allocations
        ],
        "runs": len(history.charged),
        "known": history.known,
        "lost": len(history.released),
        "left_out": history.left_out,
        "resources": [
            _resource_row(name, charged.get(name, []), released.get(name, []), dry_run=dry_run)
            for name in sorted(charged.keys() | released.keys())
        ],
    }


def _resource_row(
    name: str, charged: Sequence[RepairOutcome], released: Sequence[RepairOutcome], *, dry_run: bool
) -> Row:
    """Return the amounts of a resource. `beyond_credit` is the cost that no credit covers; whether
    it is written off the bank decides by its policy, so a prediction has neither that nor a charge.
    """
    amounts = _amounts(charged)
    return {
        "resource": name,
        "runs": len(charged),
        "cost": _price(charged),
        "beyond_credit": amounts.written_off,
        "charged": None if dry_run else amounts.charged,
        "written_off": None if dry_run else amounts.written_off,
        "lost": len(released),
        "released": _released(released),
    }


def of_resources(
    outcomes: Sequence[RepairOutcome], text_of: Callable[[Sequence[RepairOutcome]], str]
) -> str:
    """Return the text of the amounts of runs, for each resource if these are several."""
    groups = _by_resource(outcomes)
    if len(groups) < 2:
        return text_of(outcomes)
    return "; ".join(f"{plain(name)} {text_of(group)}" for name, group in groups.items())


def _by_resource(outcomes: Iterable[RepairOutcome]) -> dict[str, list[RepairOutcome]]:
    """Return the outcomes of each resource, in its order: SU of two resources are never added."""
    groups: dict[str, list[RepairOutcome]] = {}
    for outcome in outcomes:
        groups.setdefault(outcome.finding.resource, []).append(outcome)
    return dict(sorted(groups.items()))


def price_text(outcomes: Sequence[RepairOutcome]) -> str:
    """Return the price of runs of one resource."""
    return charged_amounts(_amounts(outcomes), _price(outcomes))


def _amounts_text(outcomes: Sequence[RepairOutcome]) -> str:
    return charged_amounts(_amounts(outcomes), None)


def _released_text(outcomes: Sequence[RepairOutcome]) -> str:
    return f"{show_su(_released(outcomes))} SU"


def _price(outcomes: Iterable[RepairOutcome]) -> int:
    return sum(outcome.finding.amount or 0 for outcome in outcomes)


def exceeds_credit(history: HistoryResult) -> bool:
    """Return whether the credit would not cover the runs of a prediction."""
    return _amounts(history.charged).written_off > 0


def _amounts(outcomes: Iterable[RepairOutcome]) -> ReportAmounts:
    from fairbank.rest.client.bank_client import ReportAmounts

    return ReportAmounts.total(outcome.amounts for outcome in outcomes if outcome.amounts)


def _released(outcomes: Iterable[RepairOutcome]) -> int:
    """Return the held credit that was released, in a prediction what is held."""
    return sum(
        outcome.amounts.released if outcome.amounts else outcome.finding.amount or 0
        for outcome in outcomes
    )


def runs_without_owner(history: HistoryResult) -> str:
    """Return how many runs are of users whom this host does not know, and whose; empty: none."""
    jobs = history.without_owner
    if not jobs:
        return ""
    users = sorted({plain(job.user) for job in jobs})
    more = f" and {len(users) - USERS_SHOWN} more" if len(users) > USERS_SHOWN else ""
    names = f"{', '.join(users[:USERS_SHOWN])}{more}"
    return f"{counted(len(jobs), 'run')} of users unknown to this host ({names})"


def history_warnings(history: HistoryResult) -> list[str]:
    """Return which runs and lines are left out, and which runs have no owner."""
    left = [_left_run(outcome) for outcome in history.left]
    unreadable = [f"not read: {line}" for line in history.unreadable]
    return [*left, *unreadable, *_unknown_owners(history)]


def _unknown_owners(history: HistoryResult) -> list[str]:
    runs = runs_without_owner(history)
    return [f"{runs}: entered without their user, as uid {OVERFLOW_UID}"] if runs else []


def charged_amounts(amounts: ReportAmounts, price: int | None) -> str:
    """Return what the bank charged and wrote off, or the price before it did."""
    beyond = f", {show_su(amounts.written_off)} SU beyond the credit" if amounts.written_off else ""
    if price is not None:
        return f"price {show_su(price)} SU{beyond}"
    return f"{show_su(amounts.charged)} SU{beyond}{' written off' if beyond else ''}"


def _left_run(outcome: RepairOutcome) -> str:
    """Return which run was left as it is, and why, in the words of `fairbank reconcile`."""
    finding = outcome.finding
    record = finding.job or finding.run
    name = "a run" if record is None else f"job {record.job_id} of {record.account}"
    reason = outcome.problem or outcome.refusal or f"{finding.category.value}; left as it is"
    return f"{name}: {reason}"
