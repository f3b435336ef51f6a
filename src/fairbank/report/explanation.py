"""Explanation of a pending job: for people as lines, for programs as an object."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from fairbank.core.time import iso, show_duration, show_rounded
from fairbank.core.units import counted
from fairbank.report.cells import folded, ordinal_ending, plain
from fairbank.report.columns import DisplayFormat

if TYPE_CHECKING:
    from fairbank.scheduling.explain.answer import (
        BankRefusal,
        EarlierStartAdvice,
        Explanation,
        StartRange,
    )

AHEAD_MAX = 10
"""Number of jobs before it that are listed; --json lists all."""
LABEL_WIDTH = 10


class TermsBesideJobAhead(NamedTuple):
    """Terms of the priorities of a job and of the one just ahead: lines, and rows for programs."""

    lines: Sequence[str]
    rows: Sequence[Mapping[str, object]]


class JobExplanation(NamedTuple):
    """Pending job at a time, with its explanation.

    facts       named facts about the job; `..._seconds` are durations
    ahead       jobs before it that need the same resources, in order
    reason      reason of Slurm, if known
    expected_start  start that slurmctld expects, if any
    started     actual start under the policy, if known
    priority    terms of its priority, if it is in the queue
    """

    job: str
    facts: Mapping[str, object]
    submitted: int
    as_of: int
    why: Explanation
    ahead: Sequence[str]
    reason: str | None = None
    expected_start: int | None = None
    started: int | None = None
    priority: TermsBesideJobAhead | None = None


def lines(row: JobExplanation, form: DisplayFormat, width: int) -> Iterator[str]:
    """Yield lines for people: the job, why it waits, each check, its expected start.

    Args:
        row: the explanation.
        form: the format of times.
    """
    why = row.why
    facts = ", ".join(
        f"{name.removesuffix('_seconds').replace('_', ' ')} {_fact(name, value)}"
        for name, value in row.facts.items()
        if value not in (None, "", ())
    )
    yield from folded(plain(f"Job {row.job} ({facts})"), width)
    yield from folded(
        f"Submitted {form.moment(row.submitted)}, waited {_lasted(row, row.as_of)} as of"
        f" {form.as_of(row.as_of)}",
        width,
    )
    yield from folded(plain(form.sentence(why.headline)), width)
    yield ""
    for check in why.checks:
        text = f"{'ok' if check.ok else 'x '}  {check.what}: {form.sentence(check.evidence)}"
        yield from labelled("Checks" if check is why.checks[0] else "", text, width)
    yield from labelled("Queue", _queue(row), width)
    yield from labelled("Start", _start(row, form), width)
    for place, line in enumerate([] if row.priority is None else row.priority.lines):
        yield f"{'' if place else 'Priority':<{LABEL_WIDTH}}{line}".rstrip()
    if why.remedy is not None:
        yield from labelled("Remedy", why.remedy, width)
    if why.refusal is not None:
        yield from _refusal(why.refusal, width)
    # Nothing can be tried for a job that the bank holds: its remedies are above.
    if why.advice is not None and (why.advice.tried or why.refusal is None):
        yield from labelled("Sooner", _sooner(why.advice, row.as_of, form), width)
    if row.started is not None:
        started, lasted = form.moment(row.started), _lasted(row, row.started)
        then = f"under this policy it started at {started}, after {lasted}"
        yield from labelled("In fact", then, width)


def _fact(name: str, value: object) -> str:
    if name.endswith("_seconds") and isinstance(value, int):
        return show_duration(value)
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _lasted(row: JobExplanation, until: int) -> str:
    return show_duration(max(until - row.submitted, 0))


def labelled(label: str, text: str, width: int) -> Iterator[str]:
    """Yield the lines of a text, the first with its label.

    Args:
        label: label at the begin of the first line, shorter than LABEL_WIDTH.
        text: text, made safe for a terminal.
        width: columns of the terminal; the text gets 20 at least.
    """
    for line in folded(plain(text), max(width - LABEL_WIDTH, 20)):
        yield f"{label:<{LABEL_WIDTH}}{line}"
        label = ""


def _queue(row: JobExplanation) -> str:
    if row.why.position is None:
        return "not in the queue: it waits for something other than resources"
    place = f"{row.why.position:,}{ordinal_ending(row.why.position)}"
    more = f" and {len(row.ahead) - AHEAD_MAX:,} more" if len(row.ahead) > AHEAD_MAX else ""
    ahead = f"ahead: {', '.join(row.ahead[:AHEAD_MAX])}{more}" if row.ahead else "no job is ahead"
    return f"{place} of {row.why.waiting:,}; {ahead}"


def _start(row: JobExplanation, form: DisplayFormat) -> str:
    """Return the computed start, and what slurmctld reports if it differs."""
    expected = row.expected_start
    there = "" if expected is None else f"; slurmctld expects {form.moment(expected)}"
    other = "" if row.reason in (None, row.why.code) else f"; slurmctld's reason is {row.reason}"
    return f"{_computed_start(row.why, row.as_of, form)}{there}{other}"


def _soon(at: int, now: int, form: DisplayFormat) -> str:
    """Return a time as far from now as people plan, and by the clock."""
    return (
        f"now, {form.moment(at)}"
        if at <= now
        else f"in {show_rounded(at - now)}, {form.moment(at)}"
    )


def _computed_start(why: Explanation, now: int, form: DisplayFormat) -> str:
    likely, expected = why.likely, why.expected
    if likely is None:
        if expected is None:
            return "unknown" if why.refusal is None else "unknown as long as the bank refuses it"
        return (
            f"{_soon(expected, now, form)}, at the latest if no job comes before it: when every job"
            " uses its whole time limit"
        )
    text = likely_start(likely, now, form)
    return text if likely.likely is None else f"likely {text}"


def likely_start(likely: StartRange, now: int, form: DisplayFormat) -> str:
    """Return the likely start, and by when the job starts in nine of ten simulated runs.

    Args:
        likely: range of likely starts.
        now: current time in seconds since 1970.
        form: format of the times.
    """
    runs = counted(likely.runs, "simulated run")
    if likely.likely is None:
        earliest = _soon(likely.earliest or now, now, form)
        return f"not before {earliest}; in fewer than half of {runs} it starts at all"
    start = _soon(likely.likely, now, form)
    if not likely.runs:  # it starts with the next pass
        return start
    if likely.latest is None:
        return f"{start}; the latest start is unknown, from {runs}"
    if likely.latest <= likely.likely:
        at_least = "at least " if likely.latest < likely.likely else ""
        return f"{start} (by then in {at_least}90 % of {runs})"
    return f"{start}; at the latest {_soon(likely.latest, now, form)} (90 % of {runs})"


def start_range_data(likely: StartRange) -> dict[str, Any]:
    """Return the range for programs: times in UTC."""
    return {
        "likely": _iso(likely.likely),
        "earliest": _iso(likely.earliest),
        "median": _iso(likely.median),
        "latest": _iso(likely.latest),
        "simulated_runs": likely.runs,
        "started": likely.started,
    }


def _refusal(refusal: BankRefusal, width: int) -> Iterator[str]:
    """Yield the remedies of the bank, and how a held job is released."""
    label = "Remedy"
    for remedy in refusal.remedies:
        yield from labelled(label, remedy, width)
        label = ""
    if refusal.release is not None:
        yield from labelled("Release", refusal.release, width)


def _sooner(advice: EarlierStartAdvice, now: int, form: DisplayFormat) -> str:
    suggestion = advice.suggestion
    if suggestion is None:
        tried = f"nothing that was tried would start it sooner: {'; '.join(advice.tried)}"
        return tried if advice.tried else "there is nothing to try that might start it sooner"
    change = suggestion.name if suggestion.leaves_out else f"with {suggestion.option}"
    when = (
        "at once"
        if suggestion.at <= now
        else f"by {form.moment(suggestion.at)}, if the queue does not change"
    )
    return f"{change} it would start {when}"


def as_data(row: JobExplanation) -> dict[str, Any]:
    """Return the explanation for programs: times in UTC."""
    why = row.why
    likely, advice = why.likely, why.advice
    suggestion = advice and advice.suggestion
    refusal = why.refusal
    return {
        "job": row.job,
        **row.facts,
        "submitted": iso(row.submitted),
        "code": why.code,
        "slurm_reason": row.reason,
        "headline": why.headline,
        "checks": [
            {"what": check.what, "ok": check.ok, "evidence": check.evidence} for check in why.checks
        ],
        "position": why.position,
        "waiting": why.waiting,
        "ahead": list(row.ahead),
        "expected": _iso(why.expected),
        "slurm_expects": _iso(row.expected_start),
        "likely": likely and start_range_data(likely),
        "suggestion": suggestion and {"option": suggestion.name, "start": iso(suggestion.at)},
        "tried": advice and list(advice.tried),
        "refusal": None
        if refusal is None
        else {
            "held_as": refusal.held_as,
            "reason": refusal.reason,
            "detail": refusal.detail,
            "remedies": list(refusal.remedies),
            "release": refusal.release,
        },
        "remedy": why.remedy,
        "priority_terms": [] if row.priority is None else list(row.priority.rows),
        "started": _iso(row.started),
    }


def _iso(instant: int | None) -> str | None:
    return None if instant is None else iso(instant)
