"""Explanation of a waiting job, in lines and as an object: unknown parts are omitted, long ones
truncated.
"""

from __future__ import annotations

from datetime import timedelta, timezone
from typing import Any

from msgspec.structs import replace

from fairbank.report.columns import DisplayFormat
from fairbank.report.explanation import JobExplanation, as_data, lines
from fairbank.scheduling.explain.answer import (
    EarlierStart,
    EarlierStartAdvice,
    Explanation,
    JobCheck,
    StartRange,
)


def why(**fields: Any) -> Explanation:
    """Return the explanation of job 7, with some fields replaced."""
    return Explanation(
        **{
            "number": 7,
            "code": "Priority",
            "headline": "Job 7 waits behind job 6 (Priority).",
            "checks": (
                JobCheck("no job ahead", False, "ahead is job 6"),
                JobCheck("credit", True, "enough"),
            ),
            "position": 2,
            "ahead": (6,),
            "waiting": 3,
            "expected": None,
            **fields,
        }
    )


JOB = JobExplanation(
    "7", {"user": "ann", "account": ""}, submitted=0, as_of=90_061, why=why(), ahead=["6"]
)


def shown_lines(job: JobExplanation, limit: int = 120) -> list[str]:
    return list(lines(job, DisplayFormat(), limit))


def test_lines_of_an_explanation() -> None:
    assert shown_lines(JOB) == [
        "Job 7 (user ann)",
        "Submitted 1970-01-01 00:00:00, waited 1-01:01:01 as of 1970-01-02 01:01:01 +00:00",
        "Job 7 waits behind job 6 (Priority).",
        "",
        "Checks    x   no job ahead: ahead is job 6",
        "          ok  credit: enough",
        "Queue     2nd of 3; ahead: 6",
        "Start     unknown",
    ]


def test_start_is_reported_as_far_as_known() -> None:
    def start(**fields: Any) -> str:
        return shown_lines(JOB._replace(why=why(**fields)))[7]

    assert (
        start(expected=60)
        == "Start     now, 1970-01-01 00:01:00, at the latest if no job comes before it: when"
        " every job uses its whole time limit"
    )
    # The answer is as of 01:01:01 on the second day.
    likely = StartRange(JOB.as_of + 3600, JOB.as_of + 5 * 3600, JOB.as_of + 7 * 3600, 100, 100)
    assert (
        start(likely=likely)
        == "Start     likely in 5 h, 1970-01-02 06:01:01; at the latest in 7 h, 1970-01-02"
        " 08:01:01 (90 % of 100 simulated runs)"
    )
    assert start(likely=replace(likely, latest=likely.median)).endswith(
        "likely in 5 h, 1970-01-02 06:01:01 (by then in 90 % of 100 simulated runs)"
    )
    assert start(likely=replace(likely, typical=JOB.as_of + 8 * 3600)).endswith(
        "likely in 8 h, 1970-01-02 09:01:01 (by then in at least 90 % of 100 simulated runs)"
    )
    assert "the latest start is unknown" in start(likely=replace(likely, latest=None))
    assert "not before in 60 min, 1970-01-02 02:01:01" in start(
        likely=replace(likely, median=None, latest=None)
    )


def test_command_that_releases_a_held_job_is_shown() -> None:
    result = shown_lines(JOB._replace(why=why(remedy="scontrol release 7, by its owner")))
    assert result[-1] == "Remedy    scontrol release 7, by its owner"


def test_position_in_the_queue() -> None:
    assert "Queue     not in the queue: it waits for something other than resources" in shown_lines(
        JOB._replace(why=why(position=None))
    )
    assert (
        shown_lines(JOB._replace(why=why(position=1), ahead=[]))[6]
        == "Queue     1st of 3; no job is ahead"
    )
    many = shown_lines(
        JOB._replace(why=why(position=23, waiting=111), ahead=list(map(str, range(1, 23))))
    )[6]
    assert many == "Queue     23rd of 111; ahead: 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and 12 more"
    places = [
        shown_lines(JOB._replace(why=why(position=place)))[6].split()[1]
        for place in (3, 4, 11, 12, 13, 21, 101, 111)
    ]
    assert places == ["3rd", "4th", "11th", "12th", "13th", "21st", "101st", "111th"]


def test_advice_and_actual_start_are_shown() -> None:
    assert shown_lines(
        JOB._replace(
            why=why(advice=EarlierStartAdvice(EarlierStart("-n 4", 100_000), ())), started=3_600
        )
    )[-2:] == [
        "Sooner    with -n 4 it would start by 1970-01-02 03:46:40, if the queue does not change",
        "In fact   under this policy it started at 1970-01-01 01:00:00, after 01:00:00",
    ]
    left_out = EarlierStart("--exclusive", 0, leaves_out=True)
    row = JOB._replace(why=why(advice=EarlierStartAdvice(left_out, ())))
    assert shown_lines(row)[-1] == "Sooner    without --exclusive it would start at once"
    assert as_data(row)["suggestion"]["option"] == "without --exclusive"


def test_tried_changes_are_listed_if_none_helps() -> None:
    result = shown_lines(
        JOB._replace(why=why(advice=EarlierStartAdvice(None, ("-p cpu,gpu", "a shorter -t"))))
    )
    assert (
        result[-1]
        == "Sooner    nothing that was tried would start it sooner: -p cpu,gpu; a shorter -t"
    )
    assert (
        shown_lines(JOB._replace(why=why(advice=EarlierStartAdvice(None, ()))))[-1]
        == "Sooner    there is nothing to try that might start it sooner"
    )


def test_time_zone_is_shown_once() -> None:
    result = "\n".join(lines(JOB, DisplayFormat(zone=timezone(timedelta(hours=-5))), 120))
    assert "as of 1970-01-01 20:01:01 -05:00" in result
    assert result.count("-05:00") == 1


def test_lines_fit_the_terminal_and_are_escaped() -> None:
    fields = why(headline="word " * 40, checks=(JobCheck("no job ahead", False, "word " * 60),))
    long = JOB._replace(why=fields, facts={"user": "\x1b[31mann"})
    result = shown_lines(long, 60)
    assert max(map(len, result)) <= 60
    assert not [line for line in result if "\x1b" in line]
    checks = result[result.index("") + 1 :]
    assert checks[0].startswith("Checks    x   no job ahead: word")
    assert checks[1].startswith("              word")


def test_json_of_a_waiting_job_has_times_as_text_and_the_advice() -> None:
    fields = why(
        expected=60,
        likely=StartRange(60, None, None, 50, 20),
        advice=EarlierStartAdvice(EarlierStart("-t 00:10:00", 0), ("-n 4", "a shorter -t")),
    )
    result = as_data(
        JOB._replace(why=fields, started=3_600, reason="Resources", expected_start=120)
    )
    assert (result["job"], result["ahead"], result["slurm_reason"], result["slurm_expects"]) == (
        "7",
        ["6"],
        "Resources",
        "1970-01-01T00:02:00Z",
    )
    assert result["likely"] == {
        "likely": None,
        "earliest": "1970-01-01T00:01:00Z",
        "median": None,
        "latest": None,
        "simulated_runs": 50,
        "started": 20,
    }
    assert result["suggestion"] == {"option": "-t 00:10:00", "start": "1970-01-01T00:00:00Z"}
    assert result["tried"] == ["-n 4", "a shorter -t"]
    assert (result["expected"], result["started"], result["user"]) == (
        "1970-01-01T00:01:00Z",
        "1970-01-01T01:00:00Z",
        "ann",
    )
    assert (as_data(JOB)["likely"], as_data(JOB)["suggestion"], as_data(JOB)["tried"]) == (
        None,
        None,
        None,
    )


def test_different_expectation_of_slurm_is_shown() -> None:
    output = shown_lines(
        JOB._replace(why=why(expected=60), reason="Resources", expected_start=120), 200
    )[7]
    assert output.endswith(
        "its whole time limit; slurmctld expects 1970-01-01 00:02:00; slurmctld's reason is"
        " Resources"
    )
    assert "slurmctld's reason" not in shown_lines(JOB._replace(reason="Priority"))[7]


def test_durations_and_lists_are_formatted() -> None:
    facts = {"limit_seconds": 3_600, "partitions": ("cpu", "gpu")}
    assert shown_lines(JOB._replace(facts=facts))[0] == "Job 7 (limit 01:00:00, partitions cpu,gpu)"
