"""Accounts and users: those of the settings, and with a bank its projects and their members."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from fairbank.priority.associations import ROOT, AssociationKey, account_chain
from fairbank.priority.fairshare.tree import ShareAssociation
from fairbank.priority.limits.usage import LimitRecord
from fairbank.wlm.core.settings import AccountingSettings

DEFAULT_QOS = "normal"
"""QOS of a job that names none."""


class BankAccount(msgspec.Struct, frozen=True, kw_only=True):
    """Project of the bank: its number, the account above it (empty: none), and its members."""

    number: int
    parent: str = ""
    users: tuple[str, ...] = ()


class AccountRules(NamedTuple):
    """Associations with their limits, their shares, and the QOS that their jobs may have."""

    associations: Mapping[AssociationKey, LimitRecord] = {}
    shares: Mapping[AssociationKey, ShareAssociation] = {}
    allowed_qos: Mapping[AssociationKey, tuple[str, ...]] = {}


def account_rules(settings: AccountingSettings) -> AccountRules:
    """Return the rules of the settings. Where associations are not enforced, a job needs none."""
    return AccountRules(
        settings.associations if settings.needs_association else {},
        {(row.account, row.user, row.partition): row for row in settings.shares},
        settings.allowed_qos,
    )


def with_bank_accounts(rules: AccountRules, accounts: Mapping[str, BankAccount]) -> AccountRules:
    """Return the rules for the accounts of the bank.

    The settings give shares and limits, the bank says who is in an account: a user whom only the
    settings name is left out. Without any account of the bank the settings alone count.
    """
    if not accounts:
        return rules
    members = {(name, user) for name, one in accounts.items() for user in one.users}

    def is_kept(account: str, user: str) -> bool:
        return not user or (account, user) in members

    associations = {key: record for key, record in rules.associations.items() if is_kept(*key[:2])}
    shares = {key: row for key, row in rules.shares.items() if is_kept(*key[:2])}
    allowed = {key: qos for key, qos in rules.allowed_qos.items() if is_kept(*key[:2])}
    shares.setdefault((ROOT, "", ""), ShareAssociation(ROOT))
    by_number = sorted(accounts.items(), key=lambda item: item[1].number)
    # Accounts of the settings stay where they are, so that no circle can arise.
    for name, one in by_number:
        parent = one.parent if one.parent in accounts else "" if name == ROOT else ROOT
        associations.setdefault((name, "", ""), LimitRecord(name=name, parent=parent))
        shares.setdefault((name, "", ""), ShareAssociation(name, parent=parent))
    for name, one in by_number:
        chain = [above.name for above in account_chain(associations, name)]
        qos = next(filter(None, (allowed.get((above, "", "")) for above in chain)), None)
        for user in ("", *one.users):
            key = (name, user, "")
            associations.setdefault(key, LimitRecord(name=name, user=user, parent=name))
            shares.setdefault(key, ShareAssociation(*key))
            if qos:
                allowed.setdefault(key, qos)
    return AccountRules(associations, shares, allowed)
