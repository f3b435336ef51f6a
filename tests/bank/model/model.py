"""Reference model of the bank, as simple and slow as possible.

Granted requests are kept in plain dictionaries, and every figure is added up from all of them. The
product is compared with it after each step. Both share only the classes of requests and reasons.
"""

from __future__ import annotations

from fairbank.bank import requests as w
from tests.bank.model.undo import Undoing


class Model(Undoing):
    """Granted requests, and the words of the answers: `ok`, `again`, or the name of a reason.

    Requests are numbered from 0; `like` is the earlier request with the same answer as the last
    one.
    """

    def ask(self, asked: w.SubmittedRequest) -> str:
        """Return the word of the answer to a request."""
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
