"""Values and frame of the JSON of Slurm 24.11.

Numbers that may be missing are objects with `set`, `infinite` and `number`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from fairbank.core.slurm_numbers import RELEASE
from fairbank.report.slurm.job_rows import NO_LIMIT

Form = Callable[[Any], Any]
Fields = Mapping[str, tuple[str, Form]]
"""Name in JSON: the field of the row, and its form."""


def text(value: object) -> str:
    """Return a text; empty for None."""
    return "" if value is None else str(value)


def same(value: Any) -> Any:
    """Return a value that JSON shows as it is."""
    return value


def number(value: int | None, *, is_infinite: bool = False) -> dict[str, Any]:
    """Return a number that may be missing."""
    is_set = value is not None and not is_infinite
    return {"set": is_set, "infinite": is_infinite, "number": value if is_set else 0}


def limit(seconds: int | str | None) -> dict[str, Any]:
    """Return a time limit in minutes."""
    if isinstance(seconds, str) or seconds is None:
        return number(None)
    return number(-(-seconds // 60), is_infinite=seconds == NO_LIMIT)


def exit_code(code: Sequence[int] | None) -> dict[str, Any]:
    """Return an exit code, which is a status and a signal."""
    status, signal = code or (0, 0)
    word = "SIGNALED" if signal else "SUCCESS" if status == 0 else "ERROR"
    return {
        "status": [word],
        "return_code": number(None if code is None else status),
        "signal": {"id": number(signal or None), "name": ""},
    }


def words(text: str | None) -> list[str]:
    """Return the words of a text that commas separate."""
    return text.split(",") if text else []


def fields_of(row: Any, fields: Fields) -> dict[str, Any]:
    """Return fields of a row by their names in JSON."""
    return {name: form(getattr(row, field)) for name, (field, form) in fields.items()}


def document(key: str, rows: Sequence[Any], **others: Any) -> str:
    """Return the JSON of a command: a list under its key, and other values beside it."""
    meta = {
        "plugin": {"type": "", "name": "", "data_parser": "", "accounting_storage": ""},
        "slurm": {"version": {"major": "24", "micro": "0", "minor": "11"}, "release": RELEASE},
    }
    return json.dumps({key: rows, **others, "meta": meta, "errors": [], "warnings": []}, indent=2)
