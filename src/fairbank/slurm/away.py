"""What came in place of the bank's answer, as the trouble that a person is told: the same for all that ask it."""

from __future__ import annotations

from fairbank.values.trouble import Unreachable


def cannot_ask(error: OSError) -> Unreachable:
    """This host could not even begin to ask."""
    return Unreachable(
        f"the bank cannot be asked: {error}",
        field="bank.server",
        remedy="look at the host's limits",
    )


def no_bank(bad: Exception, *, field: str = "bank.server") -> Unreachable:
    """Somebody answered, and not as a bank does; `field` is where the bank's address is set."""
    return Unreachable(
        f"what answers is not a bank: {bad}", field=field, remedy="name the bank's address"
    )
