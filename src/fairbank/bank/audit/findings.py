"""Findings of the audit, and the last entry of a journal, saved to compare with later."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum

import msgspec

from fairbank.bank.entry import Entry
from fairbank.core.time import LAST_INSTANT, iso
from fairbank.core.units import show_minutes
from fairbank.core.validation import ValidationFault, is_cut_short

_AMOUNTS = frozenset(
    {"deposited", "charged", "held", "credit_limit", "overrun", "written_off", "refunded", "cap"}
)
_INSTANTS = frozenset({"start", "end", "until", "ended", "created", "expires", "revoked"})
_SECONDS = "_seconds"
_NAMES = {
    "seq": "the number of its last entry",
    "link": "the link of its last entry",
    "set_by": "the entry that set it",
    "until": "the end of the hold",
    "digest": "the digest",
}


class Finding(msgspec.Struct, frozen=True):
    """Difference from the journal of allocation `journal`; 0: the registry, None: the store."""

    journal: int | None
    what: str
    entry: int | None = None


class Head(msgspec.Struct, frozen=True):
    """Last entry of a journal, saved elsewhere to reveal a journal that was rewritten."""

    allocation: int
    seq: int
    link: bytes


def cut_off(counted: object, read: int) -> str | None:
    """Return the finding if a row, which may hold any type, counts more entries than exist."""
    if not isinstance(counted, int) or counted <= read:
        return None
    return (
        f"the journal ends at its entry number {read}, its row tells of {counted}: the journal may"
        " have been cut at its end"
    )


class Findings:
    """Findings of one journal, in their order."""

    def __init__(self, journal: int) -> None:
        self.journal = journal
        self.list: list[Finding] = []

    def add(self, what: str, entry: Entry | None = None) -> None:
        self.list.append(Finding(self.journal, what, entry.id if entry else None))

    def compare(self, what: str, row: msgspec.Struct, expected: msgspec.Struct | None) -> None:
        """Compare a row with what the journal requires.

        Args:
            what: name of the row in the finding.
            expected: row by the journal; None if no entry creates it.
        """
        if expected is None:
            self.add(f"{what} was added: the journal knows nothing of it")
        elif row != expected:
            self.add(
                f"{what} was altered:"
                f" {'; '.join(differences(row, expected)) or 'it is of another kind'}"
            )


# --- values of rows and entries as text ---


def differences(row: msgspec.Struct | None, due: msgspec.Struct | None) -> Iterator[str]:
    """Yield `charged is 855 SU-minutes, due 854 SU-minutes` for each field that differs.

    A struct in a field is compared by its own fields; None has none of them.
    """
    fields = due if row is None else row
    for name in fields.__struct_fields__ if fields else ():
        there, expected = getattr(row, name, None), getattr(due, name, None)
        if there == expected:
            continue
        if isinstance(there, msgspec.Struct | None) and isinstance(expected, msgspec.Struct | None):
            yield from differences(there, expected)
        else:
            yield (
                f"{_NAMES.get(name, name.removesuffix(_SECONDS).replace('_', ' '))} is"
                f" {value_text(name, there)}, due {value_text(name, expected)}"
            )


def value_text(name: str, value: object) -> str:
    """Return the value of a field, of any type, as text: SQLite stores any type anywhere."""
    match value:
        case None:
            return "nothing"
        case bool():
            return "yes" if value else "no"
        case Enum():
            return str(value.value)
        case bytes():
            return value.hex()
        case int() if name in _AMOUNTS:
            return show_minutes(value)
        case int() if name in _INSTANTS and 0 <= value <= LAST_INSTANT:
            return iso(value)
        case int() if name.endswith(_SECONDS):
            return f"{value} s"
        case str():
            return repr(value)
    return " ".join(map(str, value)) if type(value) is tuple else str(value)


def unreadable(bad: Exception) -> str:
    """Return the reason why the details of an entry cannot be read."""
    if isinstance(bad, KeyError):
        return f"they lack {bad.args[0]}"
    if isinstance(bad, msgspec.ValidationError):
        fault = ValidationFault.of(bad)
        if fault.kind == "missing field":
            return f"they lack {fault.path}"
        return f"{fault.path or 'the whole'}: {fault.message}"
    if isinstance(bad, msgspec.DecodeError):
        return "they are not JSON" + (", or were cut short" if is_cut_short(bad) else "")
    text = str(bad)
    return text[:1].lower() + text[1:] if text else "they are of another kind"
