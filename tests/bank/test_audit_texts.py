"""Findings in plain words: units, times, hexadecimal digits, and no internal names."""

from __future__ import annotations

import msgspec
import pytest

from fairbank.bank.allocation import Allocation, AllocationState, AllocationTerms
from fairbank.bank.audit.findings import differences, unreadable, value_text
from fairbank.bank.run import ReportedRun, RunRecord, RunState
from fairbank.cluster.job import JobDetails, Run
from fairbank.core.time import Instant
from fairbank.core.units import SuMinutes

RUN = RunRecord(
    id=5,
    reported=ReportedRun(
        run=Run("darwin", 12, Instant(100), 0),
        project=1,
        partition="cpu",
        start=Instant(1_826_843_078),
        until=Instant(1_826_843_078),
    ),
    allocation=1,
    owner=1001,
    state=RunState.HELD,
    held=SuMinutes(60),
    set_by=5,
)
ALLOCATION = Allocation(
    id=1,
    terms=AllocationTerms(
        project=1, resource="cpu", category="research", start=Instant(0), end=Instant(9)
    ),
    link=b"\x01" * 32,
)
replace = msgspec.structs.replace


def test_amounts_are_shown_with_unit_and_instants_as_times() -> None:
    longer = replace(RUN.reported, until=Instant(1_826_843_079))
    other = replace(RUN, reported=longer, charged=SuMinutes(855), set_by=7, state=RunState.LAPSED)
    assert list(differences(other, RUN)) == [
        "the end of the hold is 2027-11-22T00:24:39Z, due 2027-11-22T00:24:38Z",
        "state is lapsed, due held",
        "the entry that set it is 7, due 5",
        "charged is 855 SU-minutes, due 0 SU-minutes",
    ]


def with_details(details: JobDetails) -> RunRecord:
    return replace(RUN, reported=replace(RUN.reported, job_details=details))


def test_job_details_are_compared_by_field() -> None:
    other = with_details(JobDetails(name="x", qos="long"))
    assert list(differences(other, RUN)) == [
        "name is 'x', due nothing",
        "qos is 'long', due nothing",
    ]
    assert list(differences(RUN, other)) == [
        "name is nothing, due 'x'",
        "qos is nothing, due 'long'",
    ]
    assert list(differences(with_details(JobDetails(name="y", qos="long")), other)) == [
        "name is 'y', due 'x'"
    ]


def test_links_are_shown_in_hexadecimal() -> None:
    terms = replace(ALLOCATION.terms, shared=True)
    other = replace(ALLOCATION, link=b"\xff" * 32, terms=terms, state=AllocationState.FROZEN)
    rows = list(differences(other, ALLOCATION))
    assert f"the link of its last entry is {'ff' * 32}, due {'01' * 32}" in rows
    assert not [row for row in rows if "b'" in row or "<" in row]
    assert [value_text("end", value) for value in ("soon", -1, 10**15)] == [
        "'soon'",
        "-1",
        "1000000000000000",
    ]
    assert value_text("scopes", ("read", "write")) == "read write"


@pytest.mark.parametrize(
    ("details", "why"),
    [
        ("{", "they are not JSON, or were cut short"),
        ("{x", "they are not JSON"),
        ('{"start": "x"}', "start: expected a whole number, got text"),
        ("{}", "they lack start"),
        ("7", "the whole: expected an object, got a whole number"),
    ],
)
def test_unreadable_details_state_the_reason(details: str, why: str) -> None:
    class Facts(msgspec.Struct):
        start: int

    with pytest.raises(msgspec.DecodeError) as bad:
        msgspec.json.decode(details, type=Facts)
    assert unreadable(bad.value) == why
    assert unreadable(KeyError("project")) == "they lack project"
