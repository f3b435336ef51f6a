"""Reference model of the bank, as simple and slow as possible.

Granted requests are kept in plain dictionaries, and every figure is added up from all of them. The
product is compared with it after each step. Both share only the classes of requests and reasons.
"""

from __future__ import annotations

from fairbank.bank import requests as w
from tests.bank.model.undo import UndoModel


class Model(UndoModel):
    """Model of the bank. An answer is `ok`, `again`, or the name of a reason.

    Requests are numbered from 0; `same_as` is the earlier request with the same answer as the last
    one.
    """

    def ask(self, submitted: w.SubmittedRequest) -> str:
        """Return the word of the answer to a request."""
        request, self.same_as, self.against = submitted.request, None, None
        self.submitted.append(submitted)
        if (submitted.actor, str(request.key)) in self.answers:
            before, answer, number = self.answers[submitted.actor, str(request.key)]
            if not self._is_same_request(before, submitted):
                return "KEY_REUSED"
            self.same_as = number
            return "again" if answer == "ok" else answer
        answer = str(getattr(self, f"_{type(request).__name__.lower()}")(request, submitted.at))
        usage = (
            isinstance(request, w.Charge | w.Release) and answer != "ok"
        )  # usage may be reported again until it is charged
        noted = isinstance(request, w.Adjust) and (
            answer == "REPORT_MISMATCH" or request.reported.run not in self.runs
        )
        if (
            request.key and answer not in ("again", "NO_HOLD") and not usage and not noted
        ):  # a report before its hold may be repeated after the hold
            self.answers[submitted.actor, request.key] = (
                submitted,
                answer,
                len(self.submitted) - 1,
            )
        return answer
