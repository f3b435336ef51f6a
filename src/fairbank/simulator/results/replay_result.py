"""Result of a replay: balances and invariants."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import msgspec

from fairbank.bank.allocation import Allocation
from fairbank.bank.policy import Overrun, Policy
from fairbank.core.units import show_minutes
from fairbank.simulator.engine.bank_replay import CreditDemand


class ReplayInvariant(msgspec.Struct, frozen=True):
    """Invariant of the ledger after a replay, its truth and its figures."""

    what: str
    holds_true: bool
    figures: str


class ReplayCounts(msgspec.Struct):
    """Counts of the bank's answers.

    In SU-minutes by resource are `written_off`, `expected`, the cost of all charged runs by the
    trace, and `held_peak`, the maximum of held credit.
    """

    holds: int = 0
    charges: int = 0
    releases: int = 0
    refusals: dict[str, int] = {}
    written_off: dict[str, int] = {}
    expected: dict[str, int] = {}
    held_peak: dict[str, int] = {}

    @property
    def operations(self) -> int:
        """Number of holds, charges, releases and refusals."""
        return self.holds + self.charges + self.releases + sum(self.refusals.values())


class ReplayResult(ReplayCounts, kw_only=True):
    """Result of a replay. `seconds` is its duration, `accounts` has the account of each project."""

    demand: CreditDemand
    seconds: float
    allocations: list[Allocation]
    accounts: dict[int, str]
    checks: list[ReplayInvariant]

    @property
    def balances(self) -> list[dict[str, object]]:
        """Account, period and final sums of each allocation, in SU-minutes.

        The fingerprint depends on their order, and on nothing that differs between stores.
        """
        return [
            {
                "account": self.accounts[allocation.terms.project],
                "resource": allocation.terms.resource,
                "start": allocation.terms.start,
                "end": allocation.terms.end,
                "deposited": allocation.deposited,
                "charged": allocation.charged,
                "held": allocation.held,
                "available": allocation.remaining,
            }
            for allocation in self.allocations
        ]

    @property
    def fingerprint(self) -> str:
        """Return a hash that is equal for equal final balances, for any store."""
        return hashlib.sha256(msgspec.json.encode(self.balances)).hexdigest()[:16]


def check_invariants(
    allocations: Sequence[Allocation], counts: ReplayCounts, policy: Policy
) -> list[ReplayInvariant]:
    """Compare the allocations with the counts.

    Args:
        allocations: all allocations after the replay.
        counts: counts of the bank's answers, and the cost of all charged runs by the trace.
        policy: rules of the bank, which decide how far an allocation may be overdrawn.
    """
    charged: dict[str, int] = {}
    held: dict[str, int] = {}
    for allocation in allocations:
        resource = allocation.terms.resource
        charged[resource] = charged.get(resource, 0) + allocation.charged
        held[resource] = held.get(resource, 0) + allocation.held
    off = {name: counts.written_off.get(name, 0) for name in charged}
    due = {name: counts.expected.get(name, 0) - off[name] for name in charged}
    open_runs = counts.holds - counts.charges - counts.releases
    return [
        _overdrawn(allocations, policy),
        ReplayInvariant(
            "every run is resolved once, nothing stays held",
            not any(held.values()) and open_runs == 0,
            f"{open_runs} runs open, "
            + ", ".join(f"{show_minutes(held[name])} of {name}" for name in sorted(held))
            + " held",
        ),
        ReplayInvariant(
            "charges equal the trace's own sum",
            charged == due,
            "; ".join(
                f"{charged[name]} of {name} charged, {due[name]} due, {off[name]} written off"
                for name in sorted(charged)
            ),
        ),
    ]


def _overdrawn(allocations: Sequence[Allocation], policy: Policy) -> ReplayInvariant:
    lowest = min((allocation.remaining for allocation in allocations), default=0)
    figures = f"the least remaining is {show_minutes(lowest)}"
    if policy.overrun is Overrun.WRITE_OFF:
        return ReplayInvariant("no allocation is overdrawn", lowest >= 0, figures)
    held = all(allocation.remaining + allocation.overrun >= 0 for allocation in allocations)
    return ReplayInvariant(
        "no allocation is overdrawn by more than its recorded overruns", held, figures
    )
