"""Reference page of the states of allocations and runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from fairbank.bank import allocation, run
from tools.reference.pages.allowed import allocation_outcomes, run_outcomes


def states_page() -> str:
    """Return the page with the transition tables and what each state allows."""
    lines = [
        "# States",
        "",
        "What is not in the tables of events does not happen.",
        "",
        "## An allocation",
        "",
    ]
    lines += [f"- *{each.value}*: {_STANDINGS[each]}" for each in allocation.Standing]
    lines += [
        "",
        "The clock decides, not when somebody last looked: lists, filters and commands all show the state of that moment.",
        "",
    ]
    lines += _table(
        ("In state", "when", "goes to"),
        ((one.value, by.value, to.value) for (one, by), to in allocation.NEXT.items()),
    )
    lines += [
        "",
        "A planned allocation goes where an active one does. The answer of each state to a request:",
        "",
    ]
    lines += _table(
        ("", *(each.value for each in allocation.Standing)),
        ((name, *outcomes) for name, outcomes in allocation_outcomes()),
    )
    lines += [
        "",
        "The period alone says which runs an allocation pays: those that start within it, whenever the bank is told of them. So the same",
        "report gets the same answer before the sweep and after it. And so what has ended gets time again in one way only:",
        "`fairbank alloc reopen ALLOC --end TIME`; another period that is not over yet is refused. An allocation that is ended before it",
        "began pays nothing.",
        "",
        "A freeze outlives the period: a hold that is told late is refused as it was in time, also after an `end`, and after the sweep,",
        "which leaves alone what is frozen. `thaw` lets it in. Usage is charged all the same.",
        "",
    ]
    lines += ["## A run", ""]
    lines += _table(
        ("In state", "when", "goes to"),
        ((one.value, by.value, to.value) for (one, by), to in run.NEXT.items()),
    )
    lines += [
        "",
        "What a run in each state says to a report of other content than the ones before:",
        "",
    ]
    lines += _table(
        ("", *(each.value for each in run.RunState)),
        ((name, *outcomes) for name, outcomes in run_outcomes()),
    )
    lines += [
        "",
        "Words in capitals are [refusals](refusals.md). *as before*: the answer to the first.",
    ]
    return "\n".join(lines) + "\n"


_STANDINGS: Mapping[allocation.Standing, str] = {
    allocation.Standing.PLANNED: "it has not begun",
    allocation.Standing.ACTIVE: "it has begun, and is not over",
    allocation.Standing.FROZEN: "staff let nothing be drawn for now, and it is not over",
    allocation.Standing.ENDED: "it is over, or staff ended it before",
}


def _table(header: Iterable[str], rows: Iterable[Iterable[str]]) -> list[str]:
    top = list(header)
    return [
        f"| {' | '.join(cells)} |".replace("|  |", "| |", 1)
        for cells in (top, ["---"] * len(top), *rows)
    ]
