"""The bank told in the slowest way, from the words of its specification: what was granted is kept in plain dicts and
every figure is counted again from all of it. The product is compared with this after each step; nothing is shared but
the requests themselves, with who asks and what was said.
"""

from __future__ import annotations

from fairbank.bank import requests as w
from tests.bank.model.undoing import Undoing


class Model(Undoing):
    """What was granted, and the words of the answers: `ok`, `again`, or the name of a reason to refuse.

    Questions are numbered from 0 as they come; `like` is the question that was answered before as the last one is now.
    """

    def ask(self, asked: w.SubmittedRequest) -> str:
        """The word of the answer to a request."""
        request, self.like, self.against = asked.request, None, None
        self.asked.append(asked)
        if (asked.actor, str(request.key)) in self.answers:
            before, word, number = self.answers[asked.actor, str(request.key)]
            if not self._is_the_same(before, asked):
                return "KEY_REUSED"
            self.like = number
            return "again" if word == "ok" else word
        word = str(getattr(self, f"_{type(request).__name__.lower()}")(request, asked.at))
        usage = (
            isinstance(request, w.Charge | w.Release) and word != "ok"
        )  # it happened: it may be said again until it counts
        noted = isinstance(request, w.Adjust) and (
            word == "REPORT_MISMATCH" or request.run not in self.runs
        )
        if (
            request.key and word not in ("again", "NO_HOLD") and not usage and not noted
        ):  # what came before its hold may be said again after it
            self.answers[asked.actor, request.key] = (asked, word, len(self.asked) - 1)
        return word
