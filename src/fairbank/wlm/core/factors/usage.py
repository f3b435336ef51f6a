"""Usage of associations and QOS, which fair share and limits count (slurm-rules.md, "Usage").

It decays at each tick (PriorityCalcPeriod). A running job is charged by ticks, and once more at its
end, whether or not limits are enforced.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from fairbank.core.tres import billing
from fairbank.priority.associations import ROOT, AssociationKey, account_chain, own_association
from fairbank.priority.fairshare.charges import ChargedJobs
from fairbank.priority.fairshare.decay import Decay, Reset, last_reset
from fairbank.priority.fairshare.usage import DecayedUsage, nothing_used
from fairbank.priority.fairshare.usage_ticks import (
    ChargedRows,
    Rules,
    UsageLedger,
    apply_tick,
    end_jobs,
    reset_usage,
)
from fairbank.priority.limits.usage import LimitRecord, LimitUsage, QosLimits
from fairbank.wlm.core.effects import Table
from fairbank.wlm.core.jobs import AssociationUsage, RunAllocation, WlmJob, WlmRun
from fairbank.wlm.core.state import CoreState
from fairbank.wlm.core.transition import Transition

TRES = ("cpu", "mem", "node", "gres/gpu", "billing")
"""TRES whose usage is counted."""
TICK, RESET = "usage_tick", "usage_reset"
"""Counters with the times of the last tick and the last reset, in seconds since 1970."""
_NO_QOS = -1


class _Owners(NamedTuple):
    """Keys of the usage that an event changes: of associations, and names of QOS."""

    associations: list[str]
    qos: list[str]


def association_of(state: CoreState, job: WlmJob, partition: str) -> AssociationKey:
    """Return the association that is charged for a job in a partition."""
    account, user = job.request.account or ROOT, job.request.user
    row = own_association(state.accounts.shares, account, user, partition)
    return (account, user, "" if row is None else row.partition)


def run_billing(state: CoreState, allocation: RunAllocation) -> Fraction:
    """Return the billing units of an allocation, by the weights of its partition."""
    rules = state.partitions.get(allocation.partition)
    counts = {name: Fraction(count) for name, count in allocation.tres.items()}
    weights = None if rules is None else rules.weights
    return billing(counts, weights, state.settings.accounting.billing_rule)


def note_associations(tx: Transition) -> None:
    """Add the associations of all jobs, which may be other ones than before."""
    for job in tx.state.jobs.values():
        if not job.state.has_ended:
            note_association(tx, job)


def note_association(tx: Transition, job: WlmJob) -> None:
    """Add an association that has no usage yet, so that the tree has it."""
    if not tx.state.settings.priority.by_factors:
        return
    for partition in job.request.partitions:
        key = row_key(association_of(tx.state, job, partition))
        if key not in tx.state.usage:
            tx.put("usage", key, AssociationUsage())


def count_tick(tx: Transition) -> None:
    """Let the usage decay, and add what running jobs have used since the last tick."""
    state, now = tx.state, tx.now.wall
    rules = _rules(state)
    last = min(state.counters.get(TICK, now), now)  # the clock may have gone back
    begun = state.counters.get(RESET, now)
    boundary = last_reset(rules.decay.reset, begun, now, state.settings.zone)
    for name in state.qos_usage.keys() - state.settings.accounting.qos:
        tx.put("qos_usage", name, None)  # the settings have it no more
    owners = _Owners(sorted(state.usage), sorted(state.settings.accounting.qos))
    ledger = _ledger(state, owners)
    if boundary > begun and rules.decay.reset is not Reset.NOW:
        ledger = reset_usage(ledger)
    jobs = [(job, job.active_run) for job in state.jobs.values()]
    running = _charged_jobs(state, owners, ((job, run) for job, run in jobs if run is not None))
    ledger = apply_tick(ledger, running, _payers(state, owners), rules, last=last, now=now)
    tx.put("counters", TICK, now)
    tx.put("counters", RESET, int(boundary))
    _put(tx, owners, ledger)


def count_end(tx: Transition, job: WlmJob, run: WlmRun) -> None:
    """Add what a run that has ended has used since the last tick."""
    if run.started is None or run.ended is None or not tx.state.settings.priority.by_factors:
        return
    state, now = tx.state, run.ended.wall
    association = association_of(state, job, run.allocation.partition)
    qos = {name for name in _charged_qos(state, job, run) if name in state.settings.accounting.qos}
    owners = _Owners([row_key(association)], sorted(qos))
    last = min(state.counters.get(TICK, 0), now)
    ledger = end_jobs(
        _ledger(state, owners),
        _charged_jobs(state, owners, [(job, run)]),
        _payers(state, owners),
        _rules(state),
        last=last,
        now=now,
    )
    _put(tx, owners, ledger)


def used_associations(state: CoreState) -> Mapping[AssociationKey, LimitRecord]:
    """Return the associations with what they have used, accounts with all below them."""
    records = dict(state.accounts.associations)
    for key, usage in state.usage.items() if state.settings.accounting.enforced.limits else ():
        account, user, partition = row_association(key)
        own = own_association(records, account, user, partition)
        for one in () if own is None else (own, *account_chain(records, own.parent)):
            before = one.used.seconds
            more = {name: before.get(name, 0.0) + used for name, used in usage.tres.items()}
            seconds = {**before, **more}
            used = LimitUsage(seconds=seconds, wall_seconds=one.used.wall_seconds + usage.wall)
            records[one.name, one.user, one.partition] = replace(one, used=used)
    return records


def used_qos(state: CoreState) -> Mapping[str, QosLimits]:
    """Return the QOS with what their jobs have used."""
    if not state.settings.accounting.enforced.limits:
        return state.settings.accounting.qos
    nothing = AssociationUsage()
    return {
        name: replace(qos, used=LimitUsage(seconds=usage.tres, wall_seconds=usage.wall))
        for name, qos in state.settings.accounting.qos.items()
        for usage in (state.qos_usage.get(name, nothing),)
    }


def row_key(association: AssociationKey) -> str:
    """Return the key of an association in the table of usage."""
    return " ".join(association)


def row_association(key: str) -> AssociationKey:
    """Return the association of a key. Only its account may have blanks."""
    account, user, partition = key.rsplit(" ", 2)
    return account, user, partition


def _rules(state: CoreState) -> Rules:
    share = state.settings.priority.fair_share
    return Rules(Decay(share.half_life_seconds, share.reset))


def _charged_qos(state: CoreState, job: WlmJob, run: WlmRun) -> tuple[str, str]:
    """Return the QOS of a job and that of its partition, empty if there is none."""
    rules = state.partitions.get(run.allocation.partition)
    return job.request.qos, "" if rules is None else rules.partition_qos or ""


def _payers(state: CoreState, owners: _Owners) -> ChargedRows:
    """Return rows without parents: the sums of accounts follow from those of users."""
    spared = ["NoDecay" in state.settings.accounting.qos_flags.get(name, ()) for name in owners.qos]
    return ChargedRows(np.full(len(owners.associations), -1), np.array(spared, np.bool_))


def _ledger(state: CoreState, owners: _Owners) -> UsageLedger:
    of_qos = _usage(state.qos_usage, owners.qos)
    return UsageLedger(_usage(state.usage, owners.associations), of_qos)


def _usage(table: Mapping[str, AssociationUsage], keys: list[str]) -> DecayedUsage:
    usage = [table.get(key, AssociationUsage()) for key in keys]
    used = nothing_used(len(keys), len(TRES))
    used.raw[:] = [one.billing for one in usage]
    used.wall[:] = [one.wall for one in usage]
    for row, one in enumerate(usage):
        used.tres[row] = [one.tres.get(name, 0.0) for name in TRES]
    return used


def _put(tx: Transition, owners: _Owners, ledger: UsageLedger) -> None:
    _put_usage(tx, "usage", owners.associations, ledger.associations)
    _put_usage(tx, "qos_usage", owners.qos, ledger.qos)


def _put_usage(tx: Transition, table: Table, keys: list[str], used: DecayedUsage) -> None:
    for row, key in enumerate(keys):
        tres = zip(TRES, used.tres[row].tolist(), strict=True)
        usage = AssociationUsage(
            billing=float(used.raw[row]),
            wall=float(used.wall[row]),
            tres={name: float(seconds) for name, seconds in tres if seconds},
        )
        if usage != tx.state.tables[table].get(key):
            tx.put(table, key, usage)


def _charged_jobs(
    state: CoreState, owners: _Owners, runs: Iterable[tuple[WlmJob, WlmRun]]
) -> ChargedJobs:
    """Return the runs that have started, each with the rows of its association and QOS."""
    began = [(job, run, run.started.wall) for job, run in runs if run.started is not None]
    rows = {key: row for row, key in enumerate(owners.associations)}
    qos_rows = {name: row for row, name in enumerate(owners.qos)}
    charged = [_charged_qos(state, job, run) for job, run, _ in began]
    count = len(began)
    units = [run_billing(state, run.allocation) for _, run, _ in began]
    factors = [state.settings.accounting.qos.get(job.request.qos) for job, _, _ in began]
    alloc = np.zeros((count, len(TRES)), np.uint64)
    for row, ((_, run, _), billed) in enumerate(zip(began, units, strict=True)):
        counts = {**run.allocation.tres, "billing": int(billed)}
        alloc[row] = [counts.get(name, 0) for name in TRES]
    association = [
        rows[row_key(association_of(state, job, run.allocation.partition))] for job, run, _ in began
    ]
    return ChargedJobs(
        association=np.array(association, np.int64),
        qos=np.array([qos_rows.get(own, _NO_QOS) for own, _ in charged], np.int64),
        partition_qos=np.array([qos_rows.get(name, _NO_QOS) for _, name in charged], np.int64),
        factor=np.array([1.0 if one is None else one.usage_factor for one in factors]),
        start=np.array([start for _, _, start in began], np.int64),
        end=np.zeros(count, np.int64),
        billable=np.array([float(one) for one in units]),
        alloc=alloc,
    )
