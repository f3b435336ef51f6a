"""What was said of terms, caps and roles, one after the other."""

from __future__ import annotations

from typing import Any

from tests.bank.model.granted import Granted


class Words(Granted):
    """What an entry said may be undone only as long as nothing newer was said of the same."""

    def _say(
        self,
        about: tuple[Any, ...],
        undoes: int | None,
        word: dict[str, Any],
        first: dict[str, Any] | None = None,
    ) -> None:
        """Something new about terms, a cap or a role: nothing said before may be undone now, but for what it took us back to."""
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
