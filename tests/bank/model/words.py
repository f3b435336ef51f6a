"""Changes of terms, caps and roles, in their order."""

from __future__ import annotations

from typing import Any

from tests.bank.model.granted import Granted


class Words(Granted):
    """Changes of terms, caps and roles. Only the last change can be undone."""

    def _say(
        self,
        about: tuple[Any, ...],
        undoes: int | None,
        word: dict[str, Any],
        first: dict[str, Any] | None = None,
    ) -> None:
        """Record a change. Only the entry to which it returns may be undone of those before."""
        words = self.words.setdefault(about, [{**(first or {}), "over": [0]}])
        words.append(
            word | {"over": [] if undoes is None else list(self._before(about, undoes)["over"])}
        )

    def _before(self, about: tuple[Any, ...], entry: int) -> dict[str, Any]:
        """The words before those of an entry."""
        words = self.words[about]
        return words[
            next(place for place, each in enumerate(words) if each["over"][:1] == [entry]) - 1
        ]
