"""Changed terms of an allocation in words, for dry runs and statements."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fairbank.report.columns import DisplayFormat, instant_of


def terms_in_words(terms: Mapping[str, Any], form: DisplayFormat) -> dict[str, str]:
    """Return the value of each term by its name in words: `credit limit`, `5 SU`."""
    return {
        name.replace("_", " "): _in_words(name, value, form)
        for name, value in terms.items()
        if name != "display"
    }


def _in_words(name: str, value: Any, form: DisplayFormat) -> str:
    match name:
        case "start" | "end":
            return form.moment(instant_of(value))
        case "credit_limit":
            return form.su_text(value)
        case "shared":
            return "yes" if value else "no"
        case _:
            return str(value)
