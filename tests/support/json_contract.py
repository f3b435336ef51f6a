"""Rules of all JSON, of commands and of routes: amounts are whole SU-minutes, and it says so."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fairbank.report.tables import AMOUNTS

ENVELOPE = {"schema", "bank", "as_of", "amounts_in", "data"}
"""Fields of each answer. Commands have `cluster`, `unit` and `warnings` besides."""


def check_json(document: Any, *, displayed: bool) -> None:
    """Check an answer or a problem; `displayed`: each amount has its display text beside it."""
    if not document.keys() & {"schema", "type"}:
        return  # /health, /openapi.json and the status of the agent
    problem = "type" in document
    assert problem or document.keys() >= ENVELOPE, document.keys()
    if not problem or "refusal" in document:
        assert document["amounts_in"] == "SU-minutes"
    faults = list(_faults(document, displayed, "$"))
    assert not faults, faults


def _faults(value: Any, displayed: bool, place: str) -> Iterator[str]:
    if isinstance(value, list):
        for number, item in enumerate(value):
            yield from _faults(item, displayed, f"{place}[{number}]")
    if not isinstance(value, dict):
        return
    amounts = {name: each for name, each in value.items() if name in AMOUNTS and _is_value(each)}
    for name, each in amounts.items():
        if type(each) is not int:
            yield f"{place}.{name} is no whole number: {each!r}"
    if displayed and amounts.keys() != value.get("display", {}).keys():
        yield f"{place} has no display text of {sorted(amounts)}"
    for name, each in value.items():
        if name != "display":
            yield from _faults(each, displayed, f"{place}.{name}")


def _is_value(value: Any) -> bool:
    """Return whether a field is set, to a number or to what should have been one."""
    return value is not None and not isinstance(value, dict | list)
