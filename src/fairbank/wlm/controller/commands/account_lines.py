"""Associations, users and QOS as sacctmgr shows them. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from fairbank.core.slurm_numbers import ON_PARENT
from fairbank.priority.associations import ROOT
from fairbank.priority.fairshare.tree import ShareAssociation
from fairbank.priority.limits.reasons import LimitKind
from fairbank.priority.limits.usage import AssociationLimits
from fairbank.report.slurm.notation import PARENT
from fairbank.report.slurm.sacctmgr import AssociationLine, QosLine, UserLine
from fairbank.scheduling.machines.nodes import Preemption
from fairbank.wlm.core.accounts import DEFAULT_QOS, AccountRules
from fairbank.wlm.core.settings import AccountingSettings
from fairbank.wlm.core.state import CoreState

LIMIT_FIELDS = {
    kind: kind.name.lower().replace("_per_user", "_pu").replace("_per_account", "_pa")
    for kind in LimitKind
}
"""Fields of the lines by limits."""


def shown_accounts(state: CoreState) -> AccountRules:
    """Return accounts and users with their limits, also where these are not enforced."""
    accounting = state.settings.accounting
    if accounting.needs_association:
        return state.accounts
    return state.accounts._replace(associations=accounting.associations)


def association_lines(rules: AccountRules, cluster: str) -> Iterator[AssociationLine]:
    """Yield the associations, users behind their account and before the accounts below it."""
    shares = [*rules.shares.values()] or [ShareAssociation(ROOT)]
    numbers = {row: number for number, row in enumerate(shares, 1)}
    below: defaultdict[str, list[ShareAssociation]] = defaultdict(list)
    for row in shares:
        below[row.account if row.user else row.parent].append(row)

    def lines_of(row: ShareAssociation, depth: int) -> Iterator[AssociationLine]:
        key = row.account, row.user, row.partition
        record = rules.associations.get(key)
        qos = rules.allowed_qos.get(key, ("",))
        yield AssociationLine(
            row.account,
            row.user,
            cluster=cluster,
            partition=row.partition,
            parent="" if row.user else row.parent,
            depth=depth - bool(row.user),
            number=numbers[row],
            qos=",".join(qos),
            default_qos=qos[0],
            shares=PARENT if row.shares == ON_PARENT else row.shares,
            **_limits(None if record is None else record.limits, AssociationLine),
        )
        if not row.user:
            under = sorted(below[row.account], key=lambda one: (not one.user, one))
            for one in under:
                yield from lines_of(one, depth + 1)

    for row in sorted(below[""]):
        yield from lines_of(row, 0)


def user_lines(rules: AccountRules) -> Iterator[UserLine]:
    """Yield the users of the associations, each with their first account."""
    accounts: dict[str, str] = {}
    for row in rules.shares.values():
        if row.user:
            accounts.setdefault(row.user, row.account)
    return (UserLine(user, account) for user, account in sorted(accounts.items()))


def qos_lines(
    accounting: AccountingSettings,
    preemption: Preemption,
    usage: Mapping[str, Mapping[str, Any]] = {},
) -> Iterator[QosLine]:
    """Yield the QOS; without any in the settings, the default one.

    `usage` has the fields with their usage, by name.
    """
    if not accounting.qos:
        yield QosLine(DEFAULT_QOS, 1)
    for number, one in enumerate(accounting.qos.values(), 1):
        rules = preemption.qos.get(one.name)
        mode = None if rules is None else rules.preempted
        yield QosLine(
            one.name,
            number,
            priority=0 if rules is None else rules.priority,
            preempts="" if rules is None else ",".join(sorted(rules.preempts)),
            preempt_mode="cluster" if mode is None else mode.name.lower(),
            flags=",".join(sorted(accounting.qos_flags.get(one.name, ()))),
            exempt_seconds=rules.exempt_seconds or None if rules else None,
            usage_threshold=accounting.usage_thresholds.get(one.name),
            usage_factor=one.usage_factor,
            limit_factor=one.limit_factor,
            **_limits(one.limits, QosLine),
            **usage.get(one.name, {}),
        )


def _limits(limits: AssociationLimits | None, line: type) -> dict[str, Any]:
    """Return the limits by the fields of a line class."""
    if limits is None:
        return {}
    values: dict[LimitKind, Any] = {kind: _tres(counts) for kind, counts in limits.tres.items()}
    values |= limits.jobs
    values |= {kind: minutes * 60 for kind, minutes in limits.wall.items()}
    shown = {LIMIT_FIELDS[kind]: value for kind, value in values.items()}
    return {name: value for name, value in shown.items() if hasattr(line, name)}


def _tres(counts: Mapping[str, int]) -> str:
    return ",".join(
        f"{name}={count}{'M' if name == 'mem' else ''}" for name, count in counts.items()
    )
