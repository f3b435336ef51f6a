"""Table of nonces without a database."""

from __future__ import annotations

from threading import Lock

from fairbank.core.time import Instant


class MemoryNonces:
    """NonceTable for one server that never restarts."""

    def __init__(self) -> None:
        self._spent: dict[tuple[int, str], Instant] = {}
        self._lock = Lock()

    def spend(self, nonce: str, uid: int, expires_at: Instant) -> bool:
        with self._lock:
            first = (uid, nonce) not in self._spent
            self._spent.setdefault((uid, nonce), expires_at)
            return first

    def forget(self, now: Instant) -> None:
        """Delete nonces that no server would accept any more."""
        with self._lock:
            self._spent = {
                key: expires_at for key, expires_at in self._spent.items() if now < expires_at
            }
