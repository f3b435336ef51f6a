"""Why a job waits and when it is likely to start: for people in lines, for programs in an object."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from fairbank.core.time import iso, parse_instant, show_duration
from fairbank.report.cells import folded, plain
from fairbank.report.columns import Look

AHEAD_MAX = 10
"""So many of those ahead are told one by one; --json tells all."""
HEAD = 10
_INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", re.ASCII)


class CheckRow(Protocol):
    """Something that must be so before the job starts, and what was found."""

    @property
    def what(self) -> str: ...
    @property
    def ok(self) -> bool: ...
    @property
    def evidence(self) -> str: ...


class StartRangeRow(Protocol):
    """From when to when it started in eight of ten of so many rehearsals."""

    @property
    def earliest(self) -> int: ...
    @property
    def latest(self) -> int | None: ...
    @property
    def runs(self) -> int: ...
    @property
    def started(self) -> int: ...


class SuggestionRow(Protocol):
    """What sbatch is told, and when the job would start then."""

    @property
    def option(self) -> str: ...
    @property
    def at(self) -> int: ...


class AdviceRow(Protocol):
    """The one change that starts it soonest, and what was tried."""

    @property
    def suggestion(self) -> SuggestionRow | None: ...
    @property
    def tried(self) -> Sequence[str]: ...


class ExplanationRow(Protocol):
    """The answer; instants are seconds since 1970."""

    @property
    def code(self) -> str: ...
    @property
    def headline(self) -> str: ...
    @property
    def checks(self) -> Sequence[CheckRow]: ...
    @property
    def position(self) -> int | None: ...
    @property
    def waiting(self) -> int: ...
    @property
    def expected(self) -> int | None: ...
    @property
    def likely(self) -> StartRangeRow | None: ...
    @property
    def advice(self) -> AdviceRow | None: ...


class JobExplanation(NamedTuple):
    """A job that waits, as of some instant.

    facts       what there is to say of it, by their names; `..._seconds` are lengths of time
    ahead       the names of those ahead of it that want what it wants, in order
    reason      why it waits and
    told        when it would start as slurmctld says, where there is one
    started     when it started in the end, under the policy that is asked about, where that is known
    """

    job: str
    facts: Mapping[str, object]
    submitted: int
    as_of: int
    why: ExplanationRow
    ahead: Sequence[str]
    reason: str | None = None
    told: int | None = None
    started: int | None = None


def lines(row: JobExplanation, look: Look, room: int) -> Iterator[str]:
    """For people, in lines of at most `room` characters where words allow it: what it is, why it waits, each check, when it starts."""
    why = row.why
    facts = ", ".join(
        f"{_word(name)} {_fact(name, value)}"
        for name, value in row.facts.items()
        if value not in (None, "", ())
    )
    yield from folded(plain(f"Job {row.job} ({facts})"), room)
    yield from folded(
        f"Came {look.moment(row.submitted)}, waits for {_lasted(row, row.as_of)} as of {look.as_of(row.as_of)}",
        room,
    )
    yield from folded(plain(_in_time(why.headline, look)), room)
    yield ""
    for check in why.checks:
        said = f"{'ok' if check.ok else 'x '}  {check.what}: {_in_time(check.evidence, look)}"
        yield from _behind("Checks" if check is why.checks[0] else "", said, room)
    yield from _behind("Queue", _queue(row), room)
    yield from _behind("Start", _start(row, look), room)
    if why.advice is not None:
        yield from _behind("Sooner", _sooner(why.advice, row.as_of, look), room)
    if row.started is not None:
        then = f"under this policy it started at {look.moment(row.started)}, after {_lasted(row, row.started)}"
        yield from _behind("In fact", then, room)


def _word(name: str) -> str:
    return name.removesuffix("_seconds").replace("_", " ")


def _fact(name: str, value: object) -> str:
    if name.endswith("_seconds") and isinstance(value, int):
        return show_duration(value)
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _lasted(row: JobExplanation, until: int) -> str:
    return show_duration(max(until - row.submitted, 0))


def _in_time(text: str, look: Look) -> str:
    """The sentences have instants in UTC; people see them in their own time, as everywhere."""
    return _INSTANT.sub(lambda match: look.moment(parse_instant(match[0])), text)


def _behind(head: str, text: str, room: int) -> Iterator[str]:
    for line in folded(plain(text), max(room - HEAD, 20)):
        yield f"{head:<{HEAD}}{line}"
        head = ""


def _queue(row: JobExplanation) -> str:
    if row.why.position is None:
        return "it has no place in it: something else than room holds it back"
    return f"{_th(row.why.position)} of {row.why.waiting:,}; {_ahead(row.ahead)}"


def _th(number: int) -> str:
    ending = (
        "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    )
    return f"{number:,}{ending}"


def _ahead(names: Sequence[str]) -> str:
    if not names:
        return "nobody is ahead"
    more = f" and {len(names) - AHEAD_MAX:,} more" if len(names) > AHEAD_MAX else ""
    return f"ahead: {', '.join(names[:AHEAD_MAX])}{more}"


def _start(row: JobExplanation, look: Look) -> str:
    """As it is found here, and where slurmctld says otherwise, that too."""
    there = "" if row.told is None else f"; slurmctld expects {look.moment(row.told)}"
    other = "" if row.reason in (None, row.why.code) else f"; slurmctld's reason is {row.reason}"
    return f"{_found(row.why, look)}{there}{other}"


def _found(why: ExplanationRow, look: Look) -> str:
    found, expected = why.likely, why.expected
    if found is not None:
        until = "a time that nobody can tell" if found.latest is None else look.moment(found.latest)
        when = (
            f"at {until}"
            if found.latest == found.earliest
            else f"from {look.moment(found.earliest)} to {until}"
        )
        return f"likely {when} (8 of 10 of {found.runs:,} rehearsals)"
    if expected is None:
        return "nobody can say"
    return (
        f"{look.moment(expected)} if everybody uses the whole time limit and nobody comes before it"
    )


def _sooner(advice: AdviceRow, now: int, look: Look) -> str:
    found = advice.suggestion
    if found is None:
        tried = f"nothing that was tried would start it sooner: {'; '.join(advice.tried)}"
        return tried if advice.tried else "there is nothing to try that might start it sooner"
    option = found.option if found.option.startswith("without ") else f"with {found.option}"
    return f"{option} it would start {'at once' if found.at <= now else f'by {look.moment(found.at)}, as things stand'}"


def as_data(row: JobExplanation) -> dict[str, Any]:
    """For programs: instants in UTC."""
    why = row.why
    likely, advice = why.likely, why.advice
    suggestion = advice and advice.suggestion
    return {
        "job": row.job,
        **row.facts,
        "submitted": iso(row.submitted),
        "code": why.code,
        "slurm_reason": row.reason,
        "headline": why.headline,
        "checks": [
            {"what": each.what, "ok": each.ok, "evidence": each.evidence} for each in why.checks
        ],
        "position": why.position,
        "waiting": why.waiting,
        "ahead": list(row.ahead),
        "expected": _iso(why.expected),
        "slurm_expects": _iso(row.told),
        "likely": likely
        and {
            "earliest": iso(likely.earliest),
            "latest": _iso(likely.latest),
            "rehearsals": likely.runs,
            "started": likely.started,
        },
        "suggestion": suggestion and {"option": suggestion.option, "start": iso(suggestion.at)},
        "tried": advice and list(advice.tried),
        "started": _iso(row.started),
    }


def _iso(instant: int | None) -> str | None:
    return None if instant is None else iso(instant)
