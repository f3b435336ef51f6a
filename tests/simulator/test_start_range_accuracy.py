"""Share of jobs that start within their forecast range: on a synthetic workload, and on real traces
where this machine has them. The figures are in docs/howto/explain-a-waiting-job.md. They are
counts: the same on any machine.
"""

from __future__ import annotations

import gzip
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from fairbank.simulator.traces.fast_reader import FastTrace, ReaderNotes, fast_line, read_fast
from fairbank.simulator.traces.synthetic import SitePartition, SyntheticSite, month
from tests.simulator.start_range_accuracy import Coverage, coverage
from tests.support.traces import KTH, LUBLIN, METACENTRUM, UBCCR

CENTRE = SyntheticSite(
    pools=(SitePartition("cpu", 64),), projects=4, users=12, jobs=1_500, days=20, node_failures=0
)
RUNS = 40


def drawn(centre: SyntheticSite, seed: int) -> FastTrace:
    header, jobs = month(centre, seed=seed)
    return FastTrace(header, map(fast_line, jobs), ReaderNotes())


def synthetic() -> FastTrace:
    return drawn(CENTRE, seed=3)


def test_three_in_four_start_within_their_range_on_a_synthetic_workload() -> None:
    """The range covers 80 % of simulated runs. The other jobs are neither all early nor late."""
    covered = coverage(synthetic, "easy", every=20, runs=RUNS)
    assert covered.jobs >= 40
    assert 0.65 <= covered.within / covered.jobs <= 0.95
    assert covered.untold == 0


def test_no_start_range_for_jobs_that_start_at_once() -> None:
    roomy = SyntheticSite(
        pools=(SitePartition("cpu", 64),), projects=2, users=2, jobs=5, days=20, node_failures=0
    )
    assert coverage(lambda: drawn(roomy, seed=1), "fcfs", every=1, runs=10) == Coverage(
        0, 0, 0, 0, 0
    )


STATED = {
    ("synthetic", "easy", 5): Coverage(161, 28, 122, 11, 0),
    ("synthetic", "conservative", 20): Coverage(40, 4, 33, 3, 0),
    ("synthetic", "fcfs", 20): Coverage(44, 6, 32, 6, 0),
    (KTH, "easy", 100): Coverage(132, 10, 101, 21, 0),
    (KTH, "easy", 1_000): Coverage(13, 3, 9, 1, 0),  # the short form, not on the page
    (KTH, "conservative", 200): Coverage(71, 2, 57, 12, 0),
    (KTH, "fcfs", 300): Coverage(85, 1, 54, 30, 0),
    (METACENTRUM, "easy", 40): Coverage(75, 15, 54, 6, 0),
    (LUBLIN, "easy", 200): Coverage(42, 2, 38, 2, 0),
    (UBCCR, "easy", 600): Coverage(30, 1, 5, 21, 3),
    ("synthetic", "slurm", 20): Coverage(39, 5, 31, 3, 0),
    (KTH, "slurm", 100): Coverage(127, 7, 100, 20, 0),
    (METACENTRUM, "slurm", 40): Coverage(74, 9, 50, 15, 0),
    (UBCCR, "slurm", 600): Coverage(29, 2, 20, 7, 0),
    (LUBLIN, "slurm", 400): Coverage(23, 1, 14, 3, 5),
}


# These take from 4 s to some minutes each, most of the time of all cases.
LONG = {
    ("synthetic", "slurm", 20),
    (KTH, "easy", 100),
    (LUBLIN, "easy", 200),
    (METACENTRUM, "easy", 40),
    (UBCCR, "easy", 600),
    (UBCCR, "slurm", 600),
    (KTH, "conservative", 200),
    (KTH, "fcfs", 300),
    (KTH, "slurm", 100),
    (METACENTRUM, "slurm", 40),
    (LUBLIN, "slurm", 400),
}
CASES = [
    pytest.param(*case, marks=[pytest.mark.campaign] if case in LONG else []) for case in STATED
]


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize(("trace", "policy", "every"), CASES)
def test_stated_coverage(
    request: pytest.FixtureRequest, trace: str, policy: str, every: int
) -> None:
    """If a figure changes, the test prints the new one for this table and the page."""
    if trace == "synthetic":
        covered = coverage(synthetic, policy, every=every, runs=RUNS)
    else:
        recorded: Callable[[str], Path] = request.getfixturevalue("recorded")
        path = recorded(trace)
        with ExitStack() as files:
            covered = coverage(
                lambda: read_fast(files.enter_context(gzip.open(path))),
                policy,
                every=every,
                runs=10 if trace == UBCCR else RUNS,
            )
    print(f"{trace} {policy}: {covered}")
    assert covered == STATED[trace, policy, every]
