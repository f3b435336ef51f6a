"""The nonces that were spent, remembered in the store: durable, and one memory for all servers of a bank."""

from __future__ import annotations

from fairbank.core.time import Clock, Instant
from fairbank.store.contract import Store


class Nonces:
    """Implementation of rest.auth.credentials.NonceTable."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store, self._clock = store, clock

    def spend(self, nonce: str, uid: int, expires_at: Instant) -> bool:
        """Remember a nonce (in hexadecimal) until it expires; False when it was spent before."""
        return self._store.use_nonce(bytes.fromhex(nonce), uid, self._clock.now(), expires_at)
