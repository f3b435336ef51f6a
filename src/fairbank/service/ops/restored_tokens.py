"""Tokens of a backup. A restore must not make tokens valid that were revoked since the backup.

Tokens that are revoked in the store that is replaced stay revoked, and one more entry records it.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

import msgspec

from fairbank.bank.entry import Entry
from fairbank.bank.rules.registry import stay_revoked
from fairbank.bank.token import Token
from fairbank.bank.transaction_data import NewIds, RegistryHead, RegistryRows, TransactionData
from fairbank.core.time import Instant
from fairbank.store.contract import RestoreTarget


class RestoredTokens:
    """Filter for the entries, the registry head and the tokens of a backup."""

    def __init__(self, filling: RestoreTarget, at: Instant) -> None:
        self._filling, self._at = filling, at
        self._revoked = filling.revoked_tokens()
        self._registry = RegistryHead()
        self._last_entry = 0

    def entries(self, rows: Sequence[Entry]) -> None:
        """Restore entries."""
        self._last_entry = max([self._last_entry, *(each.id for each in rows)])
        self._filling.entries(rows)

    def registry(self, head: RegistryHead) -> None:
        """Restore the head of the registry."""
        self._registry = head
        self._filling.registry(head)

    def tokens(self, rows: Sequence[Token]) -> None:
        """Restore tokens, and record those that stay revoked. All entries are restored before."""
        kept = [self._as_last_known(each) for each in rows]
        changed = [new for new, old in zip(kept, rows, strict=True) if new != old]
        work = TransactionData(
            registry=RegistryRows(head=self._registry),
            ids=NewIds(entries=count(self._last_entry + 1)),
        )
        stay_revoked(work, changed, self._at)
        if work.entries:
            self.entries(work.entries)
            self.registry(work.registry or self._registry)
        self._filling.tokens(kept)

    def _as_last_known(self, token: Token) -> Token:
        revoked = self._revoked.get(token.digest)
        return (
            token
            if token.revoked is not None or revoked is None
            else msgspec.structs.replace(token, revoked=revoked)
        )
