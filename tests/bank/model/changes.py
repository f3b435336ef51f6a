"""Changes of terms, caps and roles, in their order."""

from __future__ import annotations

from typing import Any

from tests.bank.model.ledger_state import LedgerState


class ChangeHistory(LedgerState):
    """Changes of terms, caps and roles. Only the last change can be undone."""

    def _record(
        self,
        about: tuple[Any, ...],
        undoes: int | None,
        answer: dict[str, Any],
        first: dict[str, Any] | None = None,
    ) -> None:
        """Record a change. Only the entry to which it returns may be undone of those before."""
        changes = self.changes.setdefault(about, [{**(first or {}), "undoable": [0]}])
        changes.append(
            answer
            | {"undoable": [] if undoes is None else list(self._before(about, undoes)["undoable"])}
        )

    def _before(self, about: tuple[Any, ...], entry: int) -> dict[str, Any]:
        """Return the terms, cap or role before the change of an entry."""
        changes = self.changes[about]
        return changes[
            next(place for place, change in enumerate(changes) if change["undoable"][:1] == [entry])
            - 1
        ]
