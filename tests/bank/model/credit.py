"""Requests of the model about credit."""

from __future__ import annotations

from fairbank.bank import requests as w
from tests.bank.model.ledger_state import LedgerState


class Credit(LedgerState):
    """Requests about credit. The answer is a word."""

    def _deposit(self, request: w.Deposit, at: int) -> str:
        return self._removed(request.allocation) or self._move((request.allocation, request.amount))

    def _removed(self, number: int) -> str:
        """Return the refusal if the project of the allocation was removed."""
        result = self.allocations.get(number)
        return "PROJECT_REMOVED" if result and self.projects[result["project"]]["removed"] else ""

    def _withdraw(self, request: w.Withdraw, at: int) -> str:
        return self._move((request.allocation, -request.amount))

    def _transfer(self, request: w.Transfer, at: int) -> str:
        ends = [self.allocations.get(number) for number in (request.source, request.target)]
        if all(ends) and request.source == request.target:
            return "SAME_ALLOCATION"
        if all(ends) and len({end["resource"] for end in ends if end}) > 1:
            return "OTHER_RESOURCE"
        if all(ends) and self._removed(request.target):
            return "PROJECT_REMOVED"
        if all(ends) and any(end["state"] != "active" or end["end"] <= at for end in ends if end):
            return "WRONG_STATE"
        return self._move((request.source, -request.amount), (request.target, request.amount))

    def _move(self, *moves: tuple[int, int]) -> str:
        """Apply all movements, or none if one is refused."""
        if any(where not in self.allocations for where, _ in moves):
            return "UNKNOWN_ALLOCATION"
        if any(amount < 0 and self.free(where) + amount < 0 for where, amount in moves):
            return "NOT_ENOUGH"
        self.credit += moves
        return "ok"
