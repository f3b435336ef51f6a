"""Why one job waits, put together from what a pass decided and from what the pass looked at."""

from __future__ import annotations

from fairbank.scheduling.explain.answer import Why
from fairbank.scheduling.explain.depending import Awaiting
from fairbank.scheduling.explain.evidence import evidence
from fairbank.scheduling.explain.funds import Funds
from fairbank.scheduling.explain.headline import headline
from fairbank.scheduling.explain.view import view_of
from fairbank.scheduling.on_nodes import OnNodes
from fairbank.scheduling.pending import Pending
from fairbank.scheduling.placement.room import Placement
from fairbank.scheduling.plan import Plan


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
