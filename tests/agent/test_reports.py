"""Reports to the bank: their order, and the fields of each."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairbank.agent.reports.report import PendingReport, ReportKind, convert_report, report_body
from fairbank.agent.reports.send_queue import SendQueue, drop_superseded
from fairbank.core import ids
from fairbank.core.units import exact_decimal
from tests.agent.plugin import epilog_event, prolog_request


def pending_report(seq: int, run: str, kind: ReportKind, **more: Any) -> PendingReport:
    return PendingReport(seq, run, kind, b"{}", 0.0, **more)


def test_superseded_limits_are_not_sent() -> None:
    batch = [
        pending_report(1, "a", ReportKind.HOLD),
        pending_report(2, "a", ReportKind.ADJUST),
        pending_report(3, "a", ReportKind.ADJUST),
        pending_report(4, "a", ReportKind.COMPLETE),
    ]
    sent, needless = drop_superseded(batch)
    assert [report.seq for report in sent] == [1, 4]
    assert [report.seq for report in needless] == [2, 3]


RUNS = st.sampled_from("abc")
STEPS = st.lists(
    st.tuples(
        st.sampled_from(("news", "question", "take", "done", "back", "split", "write", "load")),
        RUNS,
    ),
    max_size=60,
)


@given(STEPS)
def test_reports_of_a_run_are_sent_in_order_and_none_is_lost(steps: list[tuple[str, str]]) -> None:
    queue, seq, disk = SendQueue(window=3), 0, dict[int, PendingReport]()
    unwritten: list[int] = []  # not in memory and not on disk yet
    under_way: list[list[PendingReport]] = []
    sent: dict[str, list[int]] = {}
    requested: set[str] = set()
    added = answered = 0

    def done(batch: list[PendingReport]) -> None:
        nonlocal answered
        for report in batch:
            queue.done(report)
            sent.setdefault(report.run, []).append(report.seq)
            answered += 1

    def write() -> None:
        queue.spilled(unwritten)
        unwritten.clear()

    def take() -> bool:
        batch, needless = queue.take(2)
        assert not needless
        runs = {report.run for report in batch}
        assert all(runs.isdisjoint(report.run for report in other) for other in under_way)
        if batch:
            under_way.append(batch)
        return bool(batch)

    for step, run in steps:
        match step:
            case "news" | "question":
                urgent = step == "question" and run not in requested
                requested.add(run)
                seq += 1
                added += 1
                new = pending_report(seq, run, ReportKind.HOLD)
                if not queue.add(new, urgent=urgent):
                    disk[seq] = new
                    unwritten.append(seq)
            case "take":
                take()
            case "done" if under_way:
                done(under_way.pop(0))
            case "back" if under_way:
                queue.put_back(under_way.pop())
            case "split" if under_way:
                queue.split(under_way.pop())
            case "write":
                write()
            case "load":
                queue.loaded([disk[number] for number in queue.take_wanted()])
    while len(queue):
        while take():
            pass
        while under_way:
            done(under_way.pop())
        write()
        queue.loaded([disk[number] for number in queue.take_wanted()])
    assert answered == added
    assert all(numbers == sorted(numbers) for numbers in sent.values())


def test_billing_is_reported_exactly() -> None:
    for exact in (
        Fraction(1, 16),
        Fraction("0.1"),
        Fraction(24),
        Fraction(0),
        Fraction("123456.000244140625"),
        Fraction("1e-12"),
    ):
        assert Fraction(exact_decimal(exact)) == exact


def test_run_that_never_started_has_no_elapsed_time() -> None:
    fields = msgspec.json.decode(
        report_body(epilog_event(1, 7, begun=False), ReportKind.COMPLETE, "k")
    )
    assert (fields["elapsed"], fields["state"]) == (0, "COMPLETED")
    assert (
        msgspec.json.decode(report_body(epilog_event(1, 7), ReportKind.COMPLETE, "k"))["elapsed"]
        == 7
    )


@pytest.mark.parametrize(
    ("state", "expected"),
    [("PENDING", "REQUEUED"), ("RUNNING", "REQUEUED"), ("OUT_OF_MEMORY", "OUT_OF_MEMORY")],
)
def test_end_of_a_requeued_job_has_a_final_state(state: str, expected: str) -> None:
    """Report REQUEUED when slurmctld has put the job back into its queue before the epilog."""
    assert (
        msgspec.json.decode(report_body(epilog_event(1, 7, state=state), ReportKind.COMPLETE, "k"))[
            "state"
        ]
        == expected
    )


def test_report_has_name_tres_and_exit_code() -> None:
    named: dict[str, Any] = {"name": "relax w64", "tres": "cpu=8,mem=64G,node=1,billing=32"}
    hold = msgspec.json.decode(report_body(prolog_request(1, **named), ReportKind.HOLD, "k"))
    end = msgspec.json.decode(
        report_body(epilog_event(1, exit_status=127 * 256, **named), ReportKind.COMPLETE, "k")
    )
    killed = msgspec.json.decode(
        report_body(epilog_event(1, exit_status=0x80 | 9, **named), ReportKind.COMPLETE, "k")
    )  # with a core dump
    assert named.items() <= hold.items()
    assert named.items() <= end.items()
    assert [(report["exit_code"], report["exit_signal"]) for report in (end, killed)] == [
        (127, 0),
        (0, 9),
    ]
    never = msgspec.json.decode(
        report_body(epilog_event(1, begun=False, exit_status=256), ReportKind.COMPLETE, "k")
    )
    assert never.keys().isdisjoint({"exit_code", "name", "tres"})


@pytest.mark.parametrize(
    ("name", "tres", "expected"),
    [
        ("", "", {}),
        ("two\nlines\x1b[31m", "cpu=1", {"name": "two?lines?[31m", "tres": "cpu=1"}),
        ("job", "cpu=0,mem=1G", {"name": "job"}),
        ("n" * 300, "bananas=7", {"name": "n" * 128}),
        ("job", "cpu=1" + ",gres/gpu:x=1" * 40, {"name": "job"}),
    ],
)
def test_invalid_name_and_tres_are_left_out(name: str, tres: str, expected: dict[str, str]) -> None:
    body = report_body(prolog_request(1, name=name, tres=tres), ReportKind.HOLD, "k")
    fields = msgspec.json.decode(body)
    assert {key: fields[key] for key in ("name", "tres") if key in fields} == expected
    if "name" in expected:
        assert ids.job_name(expected["name"]) == expected["name"]


def test_converted_report_has_the_same_facts() -> None:
    hold = PendingReport(
        1,
        "r",
        ReportKind.HOLD,
        report_body(prolog_request(1), ReportKind.HOLD, "a.1"),
        0.0,
        stored=True,
        attempts=2,
    )
    other = convert_report(hold, ReportKind.ADJUST, "a.2")
    assert msgspec.json.decode(other.body) == msgspec.json.decode(hold.body) | {
        "do": "adjust",
        "key": "a.2",
    }
    assert (other.converted, other.stored, other.attempts) == (True, False, 0)
