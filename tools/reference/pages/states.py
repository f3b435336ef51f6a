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
        "A change of state that is not in these tables cannot happen.",
        "",
        "## An allocation",
        "",
    ]
    lines += [f"- *{state.value}*: {_SHOWN_STATES[state]}" for state in allocation.ShownState]
    lines += [
        "",
        (
            "The state follows from the current time: lists, filters and commands all show the"
            " state of the moment."
        ),
        "",
    ]
    lines += _table(
        ("In state", "when", "goes to"),
        ((one.value, by.value, to.value) for (one, by), to in allocation.NEXT.items()),
    )
    lines += [
        "",
        (
            "A planned allocation has the same transitions as an active one. Answers to a request,"
            " by state of the allocation:"
        ),
        "",
    ]
    lines += _table(
        ("", *(state.value for state in allocation.ShownState)),
        ((name, *outcomes) for name, outcomes in allocation_outcomes()),
    )
    lines += [
        "",
        "Only the period decides which runs an allocation pays: those that start within it,",
        "whenever the report arrives. So a report gets the same answer before and after the",
        "sweep. An ended allocation gets more time only by `fairbank alloc reopen ALLOC --end",
        "TIME`; a period that is not over is refused. An allocation that was ended before it",
        "began pays nothing.",
        "",
        "A freeze lasts beyond the period: a late report of a hold is refused as it would have",
        "been in time, also after `end` and after the sweep, which skips frozen allocations.",
        "`thaw` accepts it again. Usage is charged in any case.",
        "",
        "`remove` is for a wrong grant: it is refused (ALLOCATION_USED) once credit has moved in",
        "the allocation. Lists show a removed allocation only if they are asked for that state,",
        "and another may take its period. `fairbank undo ENTRY` brings it back.",
        "",
    ]
    lines += ["## A run", ""]
    lines += _table(
        ("In state", "when", "goes to"),
        ((one.value, by.value, to.value) for (one, by), to in run.NEXT.items()),
    )
    lines += [
        "",
        "Answers to a report whose content differs from earlier ones, by state of the run:",
        "",
    ]
    lines += _table(
        ("", *(state.value for state in run.RunState)),
        ((name, *outcomes) for name, outcomes in run_outcomes()),
    )
    lines += [
        "",
        "Words in capitals are [refusals](refusals.md). *as before*: the answer to the first",
        "report.",
    ]
    return "\n".join(lines) + "\n"


_SHOWN_STATES: Mapping[allocation.ShownState, str] = {
    allocation.ShownState.PLANNED: "it has not begun",
    allocation.ShownState.ACTIVE: "it has begun and is not over",
    allocation.ShownState.FROZEN: "staff stopped new holds, and it is not over",
    allocation.ShownState.ENDED: "it is over, or staff ended it early",
    allocation.ShownState.REMOVED: "staff removed it before credit had moved in it",
}


def _table(header: Iterable[str], rows: Iterable[Iterable[str]]) -> list[str]:
    top = list(header)
    return [
        f"| {' | '.join(cells)} |".replace("|  |", "| |", 1)
        for cells in (top, ["---"] * len(top), *rows)
    ]
