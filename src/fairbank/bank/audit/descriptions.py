"""Values of rows and entries as text: amounts, times, hashes."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum

import msgspec

from fairbank.cluster.job_details import NO_DETAILS, JobDetails
from fairbank.core.time import LAST_INSTANT, iso
from fairbank.core.validation import ValidationFault

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


def differences(row: msgspec.Struct, due: msgspec.Struct) -> Iterator[str]:
    """Yield `charged is 855 SU-minutes, due 854 SU-minutes` for each field that differs."""
    for name in row.__struct_fields__:
        there, expected = getattr(row, name), getattr(due, name)
        if there == expected:
            continue
        if isinstance(there, JobDetails | None) and isinstance(expected, JobDetails | None):
            yield from differences(there or NO_DETAILS, expected or NO_DETAILS)
        else:
            yield (
                f"{_NAMES.get(name, name.removesuffix(_SECONDS).replace('_', ' '))} is"
                f" {told(name, there)}, due {told(name, expected)}"
            )


def told(name: str, value: object) -> str:
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
            return f"{value} SU-minutes"
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
    text = str(bad)
    if isinstance(bad, msgspec.DecodeError):
        return "they are not JSON" + (", or were cut short" if "truncated" in text else "")
    return text[:1].lower() + text[1:] if text else "they are of another kind"
