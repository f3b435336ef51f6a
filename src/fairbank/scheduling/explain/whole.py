"""The whole answer about a job that waits for nodes: why, when it is likely to start, what would start it sooner."""

from __future__ import annotations

import msgspec

from fairbank.scheduling.explain.answer import Likely, Untold, Why
from fairbank.scheduling.explain.depending import Awaiting
from fairbank.scheduling.explain.funds import Funds
from fairbank.scheduling.explain.history import History
from fairbank.scheduling.explain.likely import RUNS, Tick, likely_on_nodes
from fairbank.scheduling.explain.suggesting import suggest
from fairbank.scheduling.explain.why import why
from fairbank.scheduling.on_nodes import OnNodes
from fairbank.scheduling.parameters import Parameters
from fairbank.scheduling.pending import Pending
from fairbank.scheduling.placement.room import Placement
from fairbank.scheduling.plan import Plan
from fairbank.scheduling.slurm import both

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
