"""Likely start of a job that is not submitted yet, in the recorded queue of 2026-11-22 18:01:17.

Job 2 has three of the four GPUs of one node of gpu until 18:31:15. Job 16 waits for all eight GPUs
of both nodes, for an hour. Accounting says that jobs use their whole limit.
"""

from __future__ import annotations

from datetime import UTC
from pathlib import Path
from shutil import copytree

import pytest

from fairbank.core.errors import InvalidInput, NotFound
from fairbank.core.time import iso
from fairbank.slurm.explain.new_job import NewJob, likely_start
from tests.support.golden import GOLDEN

RECORDED = GOLDEN / "slurm-22.05"
SHARES = """\
root|lab||||0.0|100||1.0|||||1|
 wg_astro|lab|||1|1.0|100|1.0|1.0||1.0|||2|
  wg_astro|lab|alice||1|0.25|100|1.0|0.5|0.75|0.5|||3|
"""
WHOLE_LIMIT = (
    "1|2026-11-21T16:29:00|2026-11-21T16:29:02|2026-11-21T16:59:02|1800|TIMEOUT|alice|30|"
    "billing=1,cpu=1,mem=1000M,node=1\n"
)
TWO_GPUS = NewJob("lab", "wg_astro", "alice", None, ("gpu",), 3_600, {"cpu": 1, "gres/gpu": 2})


@pytest.fixture
def queue(tmp_path: Path) -> Path:
    folder = tmp_path / "queue"
    copytree(RECORDED / "queue", folder)
    (folder / "qos.txt").write_text((RECORDED / "qos-plain.txt").read_text())
    (folder / "associations.txt").write_text("")
    (folder / "sshare.txt").write_text(SHARES)
    (folder / "history.txt").write_text(WHOLE_LIMIT)
    return folder


def test_new_job_starts_after_the_jobs_that_it_would_delay(queue: Path) -> None:
    """An hour on the free node would delay job 16, whose priority is higher (101,101 against about
    75,000 for alice's share of 0.75). That ends at 18:31:15 + 1 h.
    """
    start = likely_start(TWO_GPUS, str(queue), UTC)
    assert start is not None
    assert iso(start.as_of) == "2026-11-22T18:01:17Z"
    assert [iso(start.range.earliest), iso(start.range.latest or 0)] == ["2026-11-22T19:31:15Z"] * 2


def test_new_job_that_fits_before_a_reserved_start_starts_at_once(queue: Path) -> None:
    """29 minutes from 18:01:17 end before 18:31:15."""
    start = likely_start(TWO_GPUS._replace(limit_seconds=29 * 60), str(queue), UTC)
    assert start is not None
    assert (start.range.median, start.range.runs) == (start.as_of, 0)


def test_new_job_of_high_fair_share_goes_before_others(queue: Path) -> None:
    """With a share of 1.0 and QOS high alice has 100,000 + 1,000 and more, above job 16."""
    (queue / "sshare.txt").write_text(SHARES.replace("|0.5|0.75|", "|0.0|1.0|"))
    start = likely_start(TWO_GPUS._replace(qos="high"), str(queue), UTC)
    assert start is not None
    assert start.range.median == start.as_of


def test_later_start_is_unknown_without_run_times_in_accounting(queue: Path) -> None:
    (queue / "history.txt").write_text("")
    assert likely_start(TWO_GPUS, str(queue), UTC) is None
    at_once = likely_start(TWO_GPUS._replace(limit_seconds=60), str(queue), UTC)
    assert at_once is not None
    assert at_once.range.runs == 0


def test_queue_of_another_cluster_or_without_shares_is_refused(queue: Path) -> None:
    with pytest.raises(InvalidInput, match="the queue is that of cluster lab, not darwin"):
        likely_start(TWO_GPUS._replace(cluster="darwin"), str(queue), UTC)
    (queue / "sshare.txt").unlink()
    with pytest.raises(NotFound, match=r"there is no sshare\.txt"):
        likely_start(TWO_GPUS, str(queue), UTC)
