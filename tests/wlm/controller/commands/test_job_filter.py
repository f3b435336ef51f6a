"""Selection of jobs by the numbers that commands name."""

from __future__ import annotations

from fairbank.jobqueue.arrays import parse_selection
from fairbank.wlm.controller.commands.job_filter import is_among, selected_jobs
from fairbank.wlm.protocol.commands import RowFilter
from tests.wlm.core.world import World


def test_jobs_by_number_are_those_that_a_look_at_each_job_finds() -> None:
    world = World(nodes=1, cpus=2)
    array, other = world.submit(array="0-4"), world.submit()
    world.settle()
    jobs = world.core.state.jobs
    assert len(jobs) == 4, "two tasks have job ids of their own"
    task = max(jobs)
    texts = [str(array), f"{array}_0", f"{array}_[1-3]", str(task), str(other), "99", "99_1"]
    for wanted in ((text,) for text in texts):
        named = [parse_selection(text) for text in wanted]
        expected = [number for number in sorted(jobs) if is_among(jobs[number], named)]
        shown = selected_jobs(world.core.state, RowFilter(jobs=wanted))
        assert [job.number for job in shown] == expected, wanted
    both = selected_jobs(world.core.state, RowFilter(jobs=(str(other), f"{array}_0")))
    assert len([*both]) == 2
