"""Replay of a recorded workload through a bank: every start and end of a job becomes a request, at
the time of the trace.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from itertools import islice
from typing import TYPE_CHECKING

import msgspec

from fairbank.bank.allocation import Allocation
from fairbank.bank.refusals import remedies, sentence
from fairbank.bank.requests import Request, SubmittedRequest
from fairbank.bank.rules import Done
from fairbank.core.errors import Conflict, FairbankError, InvalidInput
from fairbank.service.ledger import Ledger
from fairbank.service.ops.audit import Audit
from fairbank.simulator.engine.bank_replay import CreditDemand, demand_of, distinct
from fairbank.simulator.engine.replay_requests import (
    ReplayPlan,
    ReplayRuns,
    credit_requests,
    project_requests,
)
from fairbank.simulator.results.replay_result import ReplayInvariant, ReplayResult, check_invariants
from fairbank.simulator.traces.swf import Trace

if TYPE_CHECKING:
    from fairbank.core.progress import StageProgress

OpenTrace = Callable[[], AbstractContextManager[Trace]]

_BATCH = 500


def replay(
    bank: Ledger, open_trace: OpenTrace, plan: ReplayPlan, progress: StageProgress | None = None
) -> ReplayResult:
    """Run a whole trace through an empty bank.

    Args:
        bank: the ledger on an empty store.
        open_trace: opens the trace. It is called twice: to size the allocations, then to play it.
        plan: how much credit is granted, in which periods, and which column pays.
        progress: called now and then with the stage, "replaying" in starts and ends of jobs, then
            "auditing" in entries.

    Raises:
        InvalidInput: the trace cannot be read, or has no job that can be replayed.
        Conflict: the store is not empty.
    """
    with open_trace() as trace:
        demand = demand_of(trace.header, distinct(trace.jobs), plan.payer)
    if not demand.seconds:
        raise InvalidInput(
            "there is no job to replay in this trace",
            field="FILE",
            remedy="a job needs a size and a run time; look at the file",
        )
    projects = grant(bank, demand, plan)
    total = 2 * (demand.jobs - demand.never_ran - demand.without_size)
    begun = time.perf_counter()
    with open_trace() as trace:
        runs = ReplayRuns(trace.header, bank.policy, demand.payer, projects, plan)
        _play(bank, trace, runs, total, progress)
    seconds = time.perf_counter() - begun
    with bank.store.reading() as reader:
        allocations = list(reader.scan(Allocation))
    accounts = {projects[payer]: made.account for payer, made in project_requests(demand).items()}
    return ReplayResult(
        **msgspec.structs.asdict(runs.counts),
        demand=demand,
        seconds=seconds,
        allocations=allocations,
        accounts=accounts,
        checks=[*check_invariants(allocations, runs.counts, bank.policy), _audited(bank, progress)],
    )


def grant(bank: Ledger, demand: CreditDemand, plan: ReplayPlan) -> dict[int, int]:
    """Create the projects, their members and allocations, and return the project of each payer.
    Raises Conflict for a store that is not empty.

    Args:
        bank: the ledger on an empty store.
        demand: the credit that the trace needs, its payers and their members.
        plan: how much of that is granted, and in which periods.
    """
    with bank.store.reading() as reader:
        if reader.registry().seq:
            raise Conflict("this store is not empty", field="store", remedy="replay into a new one")
    requests = project_requests(demand)
    created = _ask(bank, demand, plan, list(requests.values()))
    projects = {payer: done.project or 0 for payer, done in zip(requests, created, strict=True)}
    _ask(bank, demand, plan, credit_requests(demand, projects, plan))
    return projects


def _ask(
    bank: Ledger, demand: CreditDemand, plan: ReplayPlan, requests: Sequence[Request]
) -> list[Done]:
    """Apply requests of the set-up. Raises FairbankError when any is refused."""
    done = []
    for outcome in bank.apply(
        [SubmittedRequest(request, demand.begin, plan.actor) for request in requests]
    ):
        if not isinstance(outcome, Done):
            what = f"the replay could not be set up: {sentence(outcome)}"
            raise FairbankError(what, remedy=remedies(outcome)[0])
        done.append(outcome)
    return done


def _play(
    bank: Ledger, trace: Trace, runs: ReplayRuns, total: int, progress: StageProgress | None
) -> None:
    """Apply the requests of all starts and ends, in batches."""
    requests = runs.requests(
        trace.jobs, progress and (lambda done: progress("replaying", done, total))
    )
    while batch := list(islice(requests, _BATCH)):
        for submitted, outcome in zip(batch, bank.apply(batch), strict=True):
            runs.take(submitted.request, outcome)
    if progress:
        progress("replaying", total, total)


def _audited(bank: Ledger, progress: StageProgress | None) -> ReplayInvariant:
    verdict = Audit(bank.store).verify(
        progress=(lambda done, of: progress("auditing", done, of)) if progress else None
    )
    figures = f"{verdict.entries:,} entries read, {len(verdict.findings):,} findings"
    return ReplayInvariant("the journal says the same as every row", not verdict.findings, figures)
