"""Priorities of jobs of a real Slurm 22.05, computed from its jobs, partitions and settings, and
printed as its sprio printed them.
"""

from __future__ import annotations

from functools import cache
from itertools import pairwise

import pytest

from fairbank.priority.fairshare.regimes import RankingRule
from fairbank.report.slurm.sprio import PriorityRow, default_format, lines, parse_format, sort_rows
from fairbank.slurm.fairshare_view import shares as share_view
from fairbank.slurm.fairshare_view.priorities import compute_priorities, merge_factors
from fairbank.slurm.parsers.job_lines import read_pending
from tests.support.fairshare_recordings import (
    printed,
    priorities_then,
    priority_inputs,
    recorded_commands,
    standings,
    weights_then,
)

RULES = ("fair-tree", "classic")


@cache
def rows(rule: str) -> list[PriorityRow]:
    """Return the rows with a given priority as recorded, and all others computed from the recorded
    jobs.
    """
    result = standings(rule)
    factors = merge_factors(
        result, share_view.compute_shares(result, RankingRule(fair_tree=rule == "fair-tree"))
    )
    given = [row for row in priorities_then(rule) if row.direct is not None]
    return sort_rows(
        [*compute_priorities(priorities_then(rule), priority_inputs(rule), factors), *given],
        weights_then(rule),
    )


QUESTIONS = [
    (rule, name)
    for rule in RULES
    for name in recorded_commands(rule, "sprio")
    if (rule, name) != ("classic", "format-left")
    and name
    in (
        "default",
        "long",
        "norm",
        "norm-long",
        "format-left",
        "by-priority",
        "by-fair-share",
        "by-size",
        "by-tres",
        "no-header",
    )
]


@pytest.mark.parametrize(("rule", "name"), QUESTIONS)
def test_output_equals_recorded_sprio(rule: str, name: str) -> None:
    _, words = recorded_commands(rule, "sprio")[name]
    weights = weights_then(rule)
    fields = dict(pairwise(words))
    expected = fields.get("-o")
    form = (
        parse_format(expected)
        if expected
        else default_format(weights, long="-l" in words, norm="-n" in words)
    )
    ordered = sort_rows(rows(rule), weights, fields.get("-S", "i"))
    made = lines(ordered, weights, form, header="-h" not in words)
    assert "".join(f"{line}\n" for line in made) == printed(rule, f"sprio-{name}")


@pytest.mark.parametrize("rule", RULES)
def test_priority_of_job_is_that_of_one_partition(rule: str) -> None:
    result = rows(rule)
    jobs = {job.job_id: job.priority for job in read_pending(printed(rule, "jobs")).rows}
    assert {row.job for row in result} == {row.job for row in priorities_then(rule)}
    for number in {row.job for row in result}:
        assert jobs[number] in {int(row.priority) for row in result if row.job == number}
