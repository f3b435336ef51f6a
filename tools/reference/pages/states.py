"""The life-cycle tables, and what each state allows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from fairbank.bank import allocation, run
from tools.reference.pages.allowed import of_a_run, of_an_allocation


def states_page() -> str:
    """The life-cycle tables, and what each state allows."""
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
        "A planned allocation goes where an active one does. What an allocation in each state says to a request:",
        "",
    ]
    lines += _table(
        ("", *(each.value for each in allocation.Standing)),
        ((name, *said) for name, said in of_an_allocation()),
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
        ("", *(each.value for each in run.RunState)), ((name, *said) for name, said in of_a_run())
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


def _table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> list[str]:
    top = list(heads)
    return [
        f"| {' | '.join(cells)} |".replace("|  |", "| |", 1)
        for cells in (top, ["---"] * len(top), *rows)
    ]
