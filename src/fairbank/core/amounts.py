"""Amounts in objects of JSON: their names, and their texts."""

from __future__ import annotations

from collections.abc import Mapping

from fairbank.core.units import IN_SU, AmountFormat, show_shortfall, show_su, show_sums

AMOUNTS = frozenset(
    "after amount asked available cap capacity charged charged_minutes cost credit_limit"
    " deposited down expired_minutes granted granted_minutes held held_at_the_peak idle left"
    " left_over my_cap my_charged my_held my_left pace refunded refused_asked remaining"
    " returned shortfall total unpaid_minutes used wasted written_off".split()
)
"""Names of fields that are amounts, in each answer of the bank and in the JSON of each command."""
LEFT = frozenset({"after", "available", "left", "my_left", "remaining"})
"""Amounts that can still be used, which are rounded down below zero too."""
ADDING_UP = ("deposited", "charged", "held")
"""Fields that add up to the remaining credit, with a credit limit if there is one."""
LACKING = frozenset({"asked", "available", "shortfall"})
"""Fields of which the last is the difference of the others, as shown."""


def amount_texts(fields: Mapping[str, object], form: AmountFormat = IN_SU) -> dict[str, str]:
    """Return the text of each amount of an object, as a table shows it, so that they add up.

    Args:
        fields: of the object, also those that are no amounts.
        form: the format; default: in SU.
    """
    amounts = {
        name: value for name, value in fields.items() if name in AMOUNTS and isinstance(value, int)
    }
    texts = {name: show_su(value, form, down=name in LEFT) for name, value in amounts.items()}
    rest = "remaining" if "remaining" in amounts else "available"
    if rest in amounts and all(name in amounts for name in ADDING_UP):
        deposited, charged, held = (amounts[name] for name in ADDING_UP)
        sums = show_sums(deposited, charged, held, amounts[rest], form)
        texts |= {"charged": sums.used, "held": sums.held}
        if "credit_limit" in amounts:
            texts["credit_limit"] = sums.limit
    if amounts.keys() >= LACKING:
        texts["shortfall"] = show_shortfall(amounts["asked"], amounts["available"], form)
    return texts
