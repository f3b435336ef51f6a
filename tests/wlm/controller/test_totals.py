"""Totals of jobs by the rows that are stored."""

from __future__ import annotations

from typing import Any

import msgspec

from fairbank.wlm.controller.state_store import ROW_TYPES
from fairbank.wlm.controller.totals import Totals
from fairbank.wlm.core import events as ev
from fairbank.wlm.core.effects import StoredRow
from tests.wlm.core.world import World, named


class CountedWorld(World):
    """World whose commits are counted."""

    def __init__(self, **fields: Any) -> None:
        self.totals = Totals()
        self.totals.count_rows([])
        super().__init__(**fields)

    def _commit(self, rows: tuple[StoredRow, ...]) -> None:
        self.totals.count_rows(rows)
        super()._commit(rows)


def test_starts_and_ends_are_counted_by_state() -> None:
    world = CountedWorld()
    for status in (0, 0, 256):
        world.end(world.run_one(), status)
    cancelled = world.submit()
    world.request(ev.CancelJob(named(cancelled)))
    assert world.totals.started == 3
    assert world.totals.ended == {"COMPLETED": 2, "FAILED": 1, "CANCELLED": 1}


def test_each_run_of_a_requeued_job_has_a_start() -> None:
    world = CountedWorld()
    job = world.run_one()
    world.request(ev.RequeueJob(named(job)))
    world.clear(job)
    world.advance(200)  # a requeued job waits for a moment
    world.settle()
    world.answer_prologs()
    world.begin_all()
    assert (world.job(job).restarts, world.totals.started) == (1, 2)


def test_jobs_that_ran_before_the_start_of_the_controller_are_not_counted() -> None:
    world = CountedWorld()
    job = world.run_one()
    totals = Totals()
    totals.count_rows(
        StoredRow(table, key, msgspec.json.decode(data, type=ROW_TYPES[table]))
        for (table, key), data in world.rows.items()
    )
    totals.count_rows([StoredRow("jobs", str(job), world.job(job))])
    assert totals.started == 0
