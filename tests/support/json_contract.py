"""Rules of all JSON, of commands and of routes: amounts are whole SU-minutes, and it says so."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fairbank.core.units import AMOUNTS

ENVELOPE = {"schema", "bank", "as_of", "amounts_in", "data"}
"""Fields of each answer. Commands have `cluster`, `unit` and `warnings` besides."""


NO_AMOUNTS = frozenset(
    """
    account acting_as activity_id actor age_seconds allocation allocation_id allocations
    announced_jobs bank_only busy by_entry changed charges child compared copies core_seconds
    count cpu_counted cpu_given cpu_seconds cpu_used cpu_used_permille cpus created days
    days_left def_mem difference early_exit_code elapsed elapsed_seconds end ended entries
    entry exit_code exit_signal exit_status expires fair_starts_checked failed failed_early
    failures frames free
    from gid gpu_seconds gpu_used_permille gpus group highest_priority holds id job job_id
    jobs journal journals kept known last late latest_seconds left_out left_seconds
    likely_start_in_seconds limit_seconds longest_seconds longest_wait_seconds lost
    makespan_seconds matched maximum measurements median_wait_seconds milliseconds
    minimum more near_end near_start nice
    no_limit no_time node_cpus node_memory nodes now of of_entry on_disk_only operations
    over_limit owner owner_uid parent position present priority processors project projects
    prologs_waiting ran raw_usage recorded refused refused_jobs registry_seq releases reported
    reported_time reports restart retry_later revoked rows run run_id runs same_number seconds seed
    seq set_by share_permille shares sign simulated_runs since site size soonest_seconds start
    start_in_seconds started status submitted tasks time_limit to token tolerance uid undoes
    undone_by unpaid_jobs until used_percent used_permille users values wait_95_seconds waited
    waiting without_size written
    """.split()
)
"""Names of whole numbers that are no amounts: numbers of things, seconds, times and parts."""


def unknown_numbers(schema: Any) -> set[str]:
    """Return the fields of a JSON Schema that may be whole numbers and are in neither list."""
    if isinstance(schema, list):
        return set().union(*map(unknown_numbers, schema))
    if not isinstance(schema, dict):
        return set()
    fields = schema.get("properties", {})
    numbers = {name for name, field in fields.items() if "integer" in _types(field)}
    return numbers - AMOUNTS - NO_AMOUNTS | unknown_numbers(list(schema.values()))


def _types(field: dict[str, Any]) -> set[str]:
    known = field.get("type", [])
    types = {known} if isinstance(known, str) else set(known)
    return types.union(*map(_types, field.get("anyOf", [])))


def check_json(document: Any) -> None:
    """Check an answer or a problem: each amount is a whole number, with its display text beside
    it.
    """
    if not document.keys() & {"schema", "type"}:
        return  # /health, /openapi.json and the status of the agent
    problem = "type" in document
    assert problem or document.keys() >= ENVELOPE, document.keys()
    if not problem or "refusal" in document:
        assert document["amounts_in"] == "SU-minutes"
    faults = list(_faults(document, "$"))
    assert not faults, faults


def _faults(value: Any, place: str) -> Iterator[str]:
    if isinstance(value, list):
        for number, item in enumerate(value):
            yield from _faults(item, f"{place}[{number}]")
    if not isinstance(value, dict):
        return
    amounts = {name: part for name, part in value.items() if name in AMOUNTS and _is_value(part)}
    for name, part in amounts.items():
        if type(part) is not int:
            yield f"{place}.{name} is not a whole number: {part!r}"
    if amounts.keys() != value.get("display", {}).keys():
        yield f"{place} has no display text of {sorted(amounts)}"
    for name in value.keys() - AMOUNTS - NO_AMOUNTS:
        if type(value[name]) is int and name.islower() and " " not in name:  # reasons are data
            yield f"{place}.{name} is in neither list of whole numbers"
    for name, part in value.items():
        if name != "display":
            yield from _faults(part, f"{place}.{name}")


def _is_value(value: Any) -> bool:
    """Return whether a field is set, to a number or to what should have been one."""
    return value is not None and not isinstance(value, dict | list)
