"""Strict reading of JSON bodies: types and bounds by msgspec, and no repeated keys."""

from __future__ import annotations

import json
from contextlib import suppress
from functools import cache
from typing import Any

import msgspec

from fairbank.cluster.run_report import AnyReport, PredebitReport
from fairbank.core.errors import InvalidInput
from fairbank.core.validation import PATH_PART, SHOWN_MAX, ValidationFault, accepted_values
from fairbank.rest.schemas.requests import ReportBatch

SEE_DOCS = "/docs describes what may be sent"
_UNITS = {
    **dict.fromkeys(("amount", "credit_limit", "cap"), " SU-minutes"),
    **dict.fromkeys(
        ("time_limit", "elapsed", "start", "end", "submitted", "cpu_seconds"), " seconds"
    ),
}
"""Units of numbers in these fields."""


def read_json(body: bytes | msgspec.Raw, kind: Any) -> Any:
    """Return JSON as a value of the type `kind`.

    Raises:
        InvalidInput: the body is invalid; `field` names the field.
    """
    try:
        value = _decoder(kind).decode(body)
        _refuse_repeated_keys(bytes(body), kind)
    except msgspec.ValidationError as error:
        # Checked here, so that other reports do not wait for it.
        if kind == AnyReport and _has_hadm_fields(bytes(body)):
            return read_json(body, PredebitReport)
        # A repeated key goes first: which of its values is the wrong one is unknown. Other errors
        # of this second look are less precise than the first one.
        with suppress(msgspec.DecodeError, ValueError, RecursionError):
            _refuse_repeated_keys(bytes(body), kind)
        raise _invalid_body(ValidationFault.of(error), bytes(body), kind) from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InvalidInput(
            f"the body cannot be read: {error}", remedy="send one complete JSON object in UTF-8"
        ) from error
    except RecursionError as error:
        raise InvalidInput(
            "the body is nested too deeply", remedy="send one JSON object, as /docs describes it"
        ) from error
    return value


def _has_hadm_fields(body: bytes) -> bool:
    if b'"do"' in body:
        return False
    # A report that lacks `do` has an account, a pre-debit that lacks the project has none.
    return b'"project"' in body or (b'"resource"' in body and b'"account"' not in body)


def missing_body() -> InvalidInput:
    """Return the error for a request without a body."""
    return InvalidInput(
        "the body is missing", remedy=f"send a JSON object, with its Content-Length; {SEE_DOCS}"
    )


@cache
def _decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(kind)


def _invalid_body(fault: ValidationFault, body: bytes, kind: Any) -> InvalidInput:
    path = fault.path
    if fault.kind == "missing field":
        return InvalidInput(f"{path} is missing", field=path, remedy=f"send {path}; {SEE_DOCS}")
    if fault.kind == "unknown field":
        path = path[:64]
        return InvalidInput(
            f"{path!r} is not a field here", field=path, remedy=f"leave it out; {SEE_DOCS}"
        )
    message = f"{path or 'the body'}: {fault.message}"
    # The rest of the body may be no JSON; then the value cannot be found.
    with suppress(msgspec.DecodeError, UnicodeDecodeError, LookupError, RecursionError):
        if path:
            wrong = "not an accepted value" if fault.is_unknown_value else fault.message
            message = f"{path} is {_value_at(path, body)}, {wrong}"
    if kind is ReportBatch and not path:
        return InvalidInput(
            message, field="reports", remedy='send {"reports": [...]}, the reports in their order'
        )
    if kind is PredebitReport and path == "project":
        remedy = 'send the account of the project, such as "chem_qmc", not its number'
    elif values := sorted(accepted_values(kind, path)):
        remedy = f"one of {', '.join(values)}"
    else:
        remedy = fault.remedy or SEE_DOCS
        unit = _UNITS.get(path, "") if fault.has_bound else ""
        remedy += unit.removesuffix("s") if remedy.endswith(" 1") else unit
    return InvalidInput(message, field=path or None, remedy=remedy)


def _value_at(path: str, body: bytes) -> str:
    """Return the beginning of the value at the path, as it was sent."""
    value = msgspec.Raw(body)
    for name in PATH_PART.findall(path):
        if name.isdecimal():
            value = _decoder(list[msgspec.Raw]).decode(value)[int(name)]
        else:
            value = _decoder(dict[str, msgspec.Raw]).decode(value)[name]
    text = bytes(value).decode(errors="replace")
    text = text if len(text) <= SHOWN_MAX else f"{text[:SHOWN_MAX]}..."
    return "".join(character if character.isprintable() else "?" for character in text)


def _refuse_repeated_keys(body: bytes, kind: Any) -> None:
    """Refuse a key that is there twice: of two amounts, either could be meant."""
    if _has_distinct_keys(body, kind):
        return
    pairs = json.loads(body, object_pairs_hook=list, parse_int=str, parse_float=str)
    if not isinstance(pairs, list):
        return
    names = [pair[0] for pair in pairs if isinstance(pair, tuple)]  # an array has no keys
    if repeated := next((name for name in names if names.count(name) > 1), None):
        name = repeated[:64]
        raise InvalidInput(f"{name!r} is there twice", field=name, remedy="send it once")


def _has_distinct_keys(body: bytes, kind: Any) -> bool:
    """Return True if a quick look finds no repeated key. False means: look closely.

    Every key has a colon, and no body contains objects. (Reports do, but each is read by itself.)
    The look takes 1 us, and a thousand reports in one body are read one by one.
    """
    if kind is ReportBatch:
        return body.count(b'"reports"') == 1 and b"\\" not in body
    value = _decoder(Any).decode(body)
    return isinstance(value, dict) and len(value) == body.count(b":")
