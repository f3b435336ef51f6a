"""The whole answer about a job that waits for nodes: why, when it is likely to start, what would start it sooner."""

from __future__ import annotations

import msgspec

from fairbank.scheduling.explain.answer import Likely, Untold, Why
from fairbank.scheduling.explain.dependencies import Awaiting
from fairbank.scheduling.explain.funds import Funds
from fairbank.scheduling.explain.run_times import History
from fairbank.scheduling.explain.start_range import (RUNS, Tick, likely_on_nodes)
from fairbank.scheduling.explain.suggestions import suggest
from fairbank.scheduling.machines.node_snapshot import OnNodes
from fairbank.scheduling.slurm.parameters import Parameters
from fairbank.scheduling.pending_job import Pending
from fairbank.scheduling.placement.free_resources import Placement
from fairbank.scheduling.plan import Plan
from fairbank.scheduling.slurm.passes import both
from fairbank.scheduling.explain.answer import Why
from fairbank.scheduling.explain.dependencies import Awaiting
from fairbank.scheduling.explain.checks import evidence
from fairbank.scheduling.explain.funds import Funds
from fairbank.scheduling.explain.headline import headline
from fairbank.scheduling.explain.job_view import view_of
from fairbank.scheduling.machines.node_snapshot import OnNodes
from fairbank.scheduling.pending_job import Pending
from fairbank.scheduling.placement.free_resources import Placement
from fairbank.scheduling.plan import Plan

TIMED = frozenset({"BeginTime", "Reservation"})
"""Who waits for these has no place in the queue yet, but will have one at an instant that is known."""


def whole(
    snapshot: OnNodes,
    parameters: Parameters,
    number: int,
    now: int,
    *,
    history: History[str] | None = None,
    funds: Funds | None = None,
    awaiting: Awaiting | None = None,
    advice: bool = True,
    plan: Plan[Pending, Placement] | None = None,
    runs: int = RUNS,
    seed: int = 1,
    tick: Tick | None = None,
) -> Why:
    """As Slurm's two passes decide; `plan` is what they decided, where somebody has it already.

    Without `history` there is no range, without `advice` nothing is tried; a job that may not start at all has no range either, unless its
    time is known.

    Raises Unknown for a job that does not wait there, or that starts now.
    """
    plan = both(snapshot, parameters, now) if plan is None else plan
    found = why(snapshot, plan, number, now, funds=funds, awaiting=awaiting)
    if advice:
        found = msgspec.structs.replace(
            found, advice=suggest(snapshot, parameters, plan, number, now)
        )
    if history is None:
        return found
    if found.position is None and found.code not in TIMED:
        return msgspec.structs.replace(found, untold=Untold.NO_TURN)
    ahead = None if found.position is None else frozenset(found.ahead)
    came = likely_on_nodes(
        snapshot, parameters, history, number, now, ahead=ahead, runs=runs, seed=seed, tick=tick
    )
    return msgspec.structs.replace(
        found, **({"likely": came} if isinstance(came, Likely) else {"untold": came})
    )

def why(
    snapshot: OnNodes,
    plan: Plan[Pending, Placement],
    number: int,
    now: int,
    *,
    funds: Funds | None = None,
    awaiting: Awaiting | None = None,
) -> Why:
    """`plan` is what a pass made of the snapshot. Raises Unknown for a job that does not wait there.

    `funds` and `awaiting` are judged where somebody knows them.
    """
    view = view_of(snapshot, plan, number, now)
    said = headline(view, awaiting)
    if funds is not None and not funds.enough:
        said += f" The bank would not let it start: it needs {funds.said}."
    return Why(
        number=number,
        code=view.code,
        headline=said,
        checks=tuple(evidence(view, funds=funds, awaiting=awaiting)),
        position=view.position,
        ahead=view.ahead,
        waiting=len(view.names),
        expected=None if view.kept is None else view.kept.at,
    )
