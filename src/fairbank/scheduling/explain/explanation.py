"""The whole answer about a job that waits for nodes: why, when it is likely to start, what would start it sooner."""

from __future__ import annotations

import msgspec

from fairbank.scheduling.explain.answer import Explanation, NoStartRange, StartRange
from fairbank.scheduling.explain.checks import job_checks
from fairbank.scheduling.explain.dependencies import OpenDependencies
from fairbank.scheduling.explain.funds import CreditCheckInput
from fairbank.scheduling.explain.headline import headline_of
from fairbank.scheduling.explain.job_view import job_view
from fairbank.scheduling.explain.run_times import RunTimeHistory
from fairbank.scheduling.explain.start_range import RUNS, Tick, start_range_on_nodes
from fairbank.scheduling.explain.suggestions import suggest_earlier_start
from fairbank.scheduling.machines.node_snapshot import OnNodes
from fairbank.scheduling.pending_job import PendingJob
from fairbank.scheduling.placement.free_resources import Placement
from fairbank.scheduling.plan import SchedulePlan
from fairbank.scheduling.slurm.parameters import SchedulerParameters
from fairbank.scheduling.slurm.passes import run_passes

TIMED = frozenset({"BeginTime", "Reservation"})
"""Who waits for these has no place in the queue yet, but will have one at an instant that is known."""


def explain_on_nodes(
    snapshot: OnNodes,
    parameters: SchedulerParameters,
    number: int,
    now: int,
    *,
    history: RunTimeHistory[str] | None = None,
    funds: CreditCheckInput | None = None,
    awaiting: OpenDependencies | None = None,
    advice: bool = True,
    plan: SchedulePlan[PendingJob, Placement] | None = None,
    runs: int = RUNS,
    seed: int = 1,
    tick: Tick | None = None,
) -> Explanation:
    """As Slurm's two passes decide; `plan` is what they decided, where somebody has it already.

    Without `history` there is no range, without `advice` nothing is tried; a job that may not start at all has no range either, unless its
    time is known.

    Raises NotFound for a job that does not wait there, or that starts now.
    """
    plan = run_passes(snapshot, parameters, now) if plan is None else plan
    found = explain(snapshot, plan, number, now, funds=funds, awaiting=awaiting)
    if advice:
        found = msgspec.structs.replace(
            found, advice=suggest_earlier_start(snapshot, parameters, plan, number, now)
        )
    if history is None:
        return found
    if found.position is None and found.code not in TIMED:
        return msgspec.structs.replace(found, untold=NoStartRange.NO_TURN)
    ahead = None if found.position is None else frozenset(found.ahead)
    came = start_range_on_nodes(
        snapshot, parameters, history, number, now, ahead=ahead, runs=runs, seed=seed, tick=tick
    )
    return msgspec.structs.replace(
        found, **({"likely": came} if isinstance(came, StartRange) else {"untold": came})
    )


def explain(
    snapshot: OnNodes,
    plan: SchedulePlan[PendingJob, Placement],
    number: int,
    now: int,
    *,
    funds: CreditCheckInput | None = None,
    awaiting: OpenDependencies | None = None,
) -> Explanation:
    """`plan` is what a pass made of the snapshot. Raises NotFound for a job that does not wait there.

    `funds` and `awaiting` are judged where somebody knows them.
    """
    view = job_view(snapshot, plan, number, now)
    said = headline_of(view, awaiting)
    if funds is not None and not funds.enough:
        said += f" The bank would not let it start: it needs {funds.said}."
    return Explanation(
        number=number,
        code=view.code,
        headline=said,
        checks=tuple(job_checks(view, funds=funds, awaiting=awaiting)),
        position=view.position,
        ahead=view.ahead,
        waiting=len(view.names),
        expected=None if view.kept is None else view.kept.at,
    )
