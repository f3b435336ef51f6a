"""QOS, associations and their shares from the tables of wlm.toml."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Any

import msgspec

from fairbank.core.errors import InvalidInput
from fairbank.priority.associations import ROOT, AssociationKey, account_chain
from fairbank.priority.fairshare.tree import ShareAssociation, build_tree
from fairbank.priority.limits.reasons import LimitKind
from fairbank.priority.limits.usage import AssociationLimits, LimitRecord, QosLimits
from fairbank.scheduling.machines.nodes import Preemption, QosRules
from fairbank.wlm.config.machine import Item
from fairbank.wlm.core.settings import AccountingSettings

_WALL = frozenset({LimitKind.GRP_WALL, LimitKind.MAX_WALL})


def _limits(values: Mapping[str, Any]) -> AssociationLimits:
    limits = {kind: values[kind.value] for kind in LimitKind if kind.value in values}
    tres = frozenset(kind for kind in limits if "TRES" in kind.value)
    return AssociationLimits(
        tres={kind: limit for kind, limit in limits.items() if kind in tres},
        wall={kind: limit for kind, limit in limits.items() if kind in _WALL},
        jobs={kind: limit for kind, limit in limits.items() if kind not in tres | _WALL},
    )


def preemption_rules(preemption: Preemption, items: Sequence[Item]) -> Preemption:
    """Return the rules of preemption with those of these QOS.

    Raises InvalidInput for an unknown QOS and for QOS that preempt each other in a circle.
    """
    rules: dict[str, QosRules] = {}
    for item in items:
        if item.name in rules:
            raise item.error(f"{item.name} is there twice", "name it once")
        values = {key: item.values[key] for key in QosRules.__struct_fields__ if key in item.values}
        rules[item.name] = QosRules(**values)
    for item in items:
        if missing := rules[item.name].preempts - rules.keys():
            raise item.error(f"there is no QOS {min(missing)}", "add it as [[qos]]", "preempts")
    try:
        return Preemption(by=preemption.by, mode=preemption.mode, qos=rules)
    except InvalidInput as bad:
        raise items[0].error(bad.message, bad.remedy, "preempts") from bad


def with_qos(accounting: AccountingSettings, items: Sequence[Item]) -> AccountingSettings:
    """Return the settings with the limits and flags of these QOS."""
    flags = {item.name: item.values.get("flags", frozenset()) for item in items}
    limits = {
        item.name: QosLimits(
            name=item.name,
            limits=_limits(item.values),
            usage_factor=item.values.get("usage_factor", 1.0),
            usage_factor_safe="UsageFactorSafe" in flags[item.name],
            over_partition="OverPartQOS" in flags[item.name],
            deny_on_limit="DenyOnLimit" in flags[item.name],
            limit_factor=item.values.get("limit_factor"),
        )
        for item in items
    }
    return msgspec.structs.replace(
        accounting,
        qos=limits,
        qos_flags={name: words for name, words in flags.items() if words},
        usage_thresholds={
            item.name: item.values["usage_threshold"]
            for item in items
            if "usage_threshold" in item.values
        },
    )


def with_associations(accounting: AccountingSettings, items: Sequence[Item]) -> AccountingSettings:
    """Return the settings with the limits and shares of these associations.

    Raises InvalidInput for one that is there twice or whose account does not exist, and for a
    circle of accounts.
    """
    records: dict[AssociationKey, LimitRecord] = {}
    for item in items:
        record = _association(item)
        key = record.name, record.user, record.partition
        if key in records:
            raise item.error("this association is there twice", "name it once")
        records[key] = record
    shares = [
        ShareAssociation(*key, "" if key[1] else record.parent, item.values.get("shares", 1))
        for (key, record), item in zip(records.items(), items, strict=True)
    ]
    if items and (ROOT, "", "") not in records:
        shares.insert(0, ShareAssociation(ROOT))
    accounts = {row.account for row in shares if not row.user}
    for record, item in zip(records.values(), items, strict=True):
        if record.parent and record.parent not in accounts:
            field = "account" if record.user else "parent"
            remedy = "add it as [[associations]]"
            raise item.error(f"there is no account {record.parent}", remedy, field)
    if items:
        try:
            build_tree(shares)
        except InvalidInput as bad:
            raise items[0].error(bad.message, bad.remedy) from bad
    return msgspec.structs.replace(
        accounting,
        associations=records,
        shares=tuple(shares),
        allowed_qos=_allowed_qos(records, items, accounting.qos.keys()),
    )


def _allowed_qos(
    records: Mapping[AssociationKey, LimitRecord], items: Sequence[Item], known: Set[str]
) -> dict[AssociationKey, tuple[str, ...]]:
    """Return the QOS of the associations: their own, else those of the next account above.

    Raises InvalidInput for an unknown QOS.
    """
    own: dict[AssociationKey, tuple[str, ...]] = {}
    for key, item in zip(records, items, strict=True):
        if missing := set(item.values.get("qos", ())) - known:
            raise item.error(f"there is no QOS {min(missing)}", "add it as [[qos]]", "qos")
        own[key] = item.values.get("qos", ())
    return {
        key: qos
        for key, record in records.items()
        if (qos := own[key] or _qos_above(records, own, record.parent))
    }


def _qos_above(
    records: Mapping[AssociationKey, LimitRecord],
    own: Mapping[AssociationKey, tuple[str, ...]],
    account: str,
) -> tuple[str, ...]:
    above = (own[one.name, "", ""] for one in account_chain(records, account))
    return next(filter(None, above), ())


def _association(item: Item) -> LimitRecord:
    account, user = item.name, item.values.get("user", "")
    parent = account if user else item.values.get("parent", "" if account == ROOT else ROOT)
    return LimitRecord(
        name=account,
        user=user,
        partition=item.values.get("partition", ""),
        parent=parent,
        limits=_limits(item.values),
    )
