"""Slurm's two passes, one after the other: what a cluster does when a full main pass and a backfill cycle are due at the same time."""

from __future__ import annotations

from fairbank.scheduling.backfill import backfill
from fairbank.scheduling.main import main
from fairbank.scheduling.parameters import Parameters
from fairbank.scheduling.pending import Active, Pending, begun
from fairbank.scheduling.placement.room import Placement
from fairbank.scheduling.plan import Plan
from fairbank.scheduling.situation import Situation


def both(situation: Situation, parameters: Parameters, now: int, *, full: bool = True) -> Plan[Pending, Placement]:
    """What the main pass starts, then what backfill starts and plans. Reasons are those of the main pass, unless backfill knows better."""
    first = main(situation, parameters, now, full=full)
    then = backfill(situation.later(started(situation, first, now)), parameters, now)
    reasons = {**first.reasons, **then.reasons}
    for start in then.starts:
        reasons.pop(start.job.number, None)
    return Plan([*first.starts, *then.starts], then.planned, reasons, first.otherwise)


def started(situation: Situation, plan: Plan[Pending, Placement], now: int) -> list[Active]:
    """The jobs that the plan starts, as they run from now on."""
    rules = situation.machine.rules
    return [begun(job, where, now, job.seconds(rules[where.partition])) for job, where in plan.starts]
