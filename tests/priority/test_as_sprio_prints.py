"""Priorities of jobs on a real Slurm 22.05, computed from its jobs, partitions and settings, and printed as its sprio printed them."""

from __future__ import annotations

from functools import cache, partial
from itertools import pairwise

import pytest

from fairbank.report.priorities import PriorityRow, in_order, lines, parse_format, usual_format
from fairbank.report.rule import Rule
from fairbank.report.shares import ShareRow
from fairbank.slurm.answers.pending import Pending, read_pending
from fairbank.slurm.ranking import shares_anew
from tests.support.reckoned import Told, reckoned
from tests.support.standing import asked, printed, priorities_then, standings, weights_then

RULES = ("fair-tree", "classic")


def told(rule: str) -> Told:
    return Told(
        config=printed(rule, "config"),
        jobs=printed(rule, "jobs"),
        partitions=printed(rule, "partitions"),
        listed=priorities_then(rule),
        nodes=10,
        cpus=6 * 64 + 2 * 48 + 2 * 64,
        qos={"normal": 0, "high": 100, "low": 1, "dear": 0},
        associations={("wg_astro", "alice"): 40, ("wg_bio", "carol"): 100},
        tested={18: 6 * 64},
    )


def computed(rule: str) -> list[PriorityRow]:
    given = [row for row in priorities_then(rule) if row.direct is not None]
    return in_order([*reckoned(told(rule), partial(_fair_share, rule)), *given], weights_then(rule))


def _fair_share(rule: str, job: Pending, partition: str) -> float:
    """From shares and usage. Under the classic rule sshare reckons anew when it is asked: there sprio's own, if it has enough digits."""
    said = next(row.fair_share for row in priorities_then(rule) if (row.job, row.partition_name) == (job.job_id, partition)) / 100_000
    if rule == "classic" and said < 0.9999999:
        return said
    of = {(row.account, row.user, row.partition): row.factor or 0.0 for row in _stand(rule) if row.user}
    return of.get((job.account, job.user, partition), of.get((job.account, job.user, ""), 0.0))


@cache
def _stand(rule: str) -> list[ShareRow]:
    """From shares and usage."""
    return shares_anew.computed(standings(rule), Rule(fair_tree=rule == "fair-tree"))


QUESTIONS = [
    (rule, name)
    for rule in RULES
    for name in asked(rule, "sprio")
    if (rule, name) != ("classic", "format-left")
    and name in ("default", "long", "norm", "norm-long", "format-left", "by-priority", "by-fair-share", "by-size", "by-tres", "no-header")
]


@pytest.mark.parametrize(("rule", "name"), QUESTIONS)
def test_computed_and_printed_as_slurm_printed_it(rule: str, name: str) -> None:
    _, words = asked(rule, "sprio")[name]
    weights = weights_then(rule)
    given = dict(pairwise(words))
    wanted = given.get("-o")
    form = parse_format(wanted) if wanted else usual_format(weights, long="-l" in words, norm="-n" in words)
    rows = in_order(computed(rule), weights, given.get("-S", "i"))
    made = lines(rows, weights, form, header="-h" not in words)
    assert "".join(f"{line}\n" for line in made) == printed(rule, f"sprio-{name}")


@pytest.mark.parametrize("rule", RULES)
def test_the_priority_of_a_job_is_that_of_one_of_its_partitions(rule: str) -> None:
    found = computed(rule)
    jobs = {job.job_id: job.priority for job in read_pending(printed(rule, "jobs")).rows}
    assert {row.job for row in found} == {row.job for row in priorities_then(rule)}
    for number in {row.job for row in found}:
        assert jobs[number] in {int(row.priority) for row in found if row.job == number}
