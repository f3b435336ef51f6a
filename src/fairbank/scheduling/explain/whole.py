"""The whole answer about a job that waits for nodes: why, when it is likely to start, what would start it sooner."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from fairbank.scheduling.explain.answer import Why
from fairbank.scheduling.explain.conditions import Dependency, Funds
from fairbank.scheduling.explain.history import History
from fairbank.scheduling.explain.likely import RUNS, likely_on_nodes
from fairbank.scheduling.explain.suggesting import suggest
from fairbank.scheduling.explain.why import why
from fairbank.scheduling.on_nodes import OnNodes
from fairbank.scheduling.parameters import Parameters
from fairbank.scheduling.slurm import both


def whole(
    snapshot: OnNodes,
    parameters: Parameters,
    number: int,
    now: int,
    *,
    history: History[str] | None = None,
    funds: Funds | None = None,
    dependencies: Sequence[Dependency] | None = None,
    any_of: bool = False,
    runs: int = RUNS,
    seed: int = 1,
) -> Why:
    """As Slurm's two passes decide. Without `history` there is no range; a job that may not start at all has none either.

    Raises Unknown for a job that does not wait there, or that starts now.
    """
    plan = both(snapshot, parameters, now)
    found = why(snapshot, plan, number, now, funds=funds, dependencies=dependencies, any_of=any_of)
    found = msgspec.structs.replace(found, suggestion=suggest(snapshot, parameters, plan, number, now))
    if history is None or found.position is None:
        return found
    ahead = frozenset(found.ahead)
    likely = likely_on_nodes(snapshot, parameters, history, number, now, ahead=ahead, runs=runs, seed=seed)
    return msgspec.structs.replace(found, likely=likely)
