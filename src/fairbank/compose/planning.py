"""The scheduler on paper (cli.simulated.Planning). It has no bank, so that nothing heavy is imported."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from fairbank.cli.simulated import is_table
from fairbank.compose.recorded import skim_any
from fairbank.report.simulations import SimulatedJobRow, schedules_csv
from fairbank.service.simulation.comparison import (
    Progress,
    check_starts,
    in_file,
    read_shares,
    simulate_each,
    write_starts,
)
from fairbank.simulator.engine.simulation import SimulationPlan, SimulationResult

if TYPE_CHECKING:  # a trace in a file needs nothing of the model, nor of the bank
    from fairbank.cli.granting import Granting
    from fairbank.cli.simulated import Terms
    from fairbank.service.simulation.synthetic import Modelled
    from fairbank.simulator.engine.grants import Budget


class Planning:
    """Recorded workloads under any policy."""

    def simulate(
        self,
        workload: str | Modelled,
        policies: Sequence[str],
        terms: Terms,
        *,
        starts: str | None,
        fair_starts: int,
        plots: bool,
        progress: Progress | None,
    ) -> list[SimulationResult]:
        """Run a trace in a file, or a synthetic one, under each policy; before that it is seen whether `starts` can be written. With
        `plots` it is seen how it goes, and where `starts` is a table every job is kept."""
        path = Path(workload) if isinstance(workload, str) else None
        if starts is not None:
            check_starts(Path(starts), path)
        held = read_shares(Path(terms.shares)) if terms.shares is not None else None
        every = starts is not None and is_table(starts)
        plan = SimulationPlan(
            terms.processors, fair_starts, by_group=terms.by == "group", course=plots, every=every
        )
        source = (
            partial(in_file, Path(workload), skim_any)
            if isinstance(workload, str)
            else workload.opened
        )
        budget = terms.granting and budget_of(terms.granting)
        return simulate_each(
            source, policies, plan, holdings=held, budget=budget, progress=progress
        )

    def save_starts(self, outcomes: Sequence[SimulationResult], path: str) -> None:
        """A line for each start, or a table of all schedules. Raises what `write_starts` raises."""
        schedules = ((each.policy, _rows(each)) for each in outcomes)
        write_starts(
            schedules_csv(schedules) if is_table(path) else outcomes[-1].starts.text(), Path(path)
        )


def _rows(outcome: SimulationResult) -> Iterator[SimulatedJobRow]:
    """Users and groups by their names, or by the numbers that the trace knows them by."""
    people = outcome.people
    user, group = (_name, _name) if people is None else (people.users.name, people.groups.name)
    for job in outcome.runs or ():
        yield SimulatedJobRow(
            job.job,
            user(job.user),
            group(job.group),
            job.submitted,
            job.started,
            job.ended,
            job.processors,
        )


def _name(number: int) -> str:
    return "" if number < 0 else str(number)


def budget_of(granting: Granting) -> Budget:
    """What the options say, as the simulator has it."""
    from fairbank.simulator.engine.bank_replay import Payer  # noqa: PLC0415
    from fairbank.simulator.engine.grants import Budget, Unpaid  # noqa: PLC0415  only who grants credit pays for the bank

    payer = None if granting.by is None else Payer(granting.by)
    return Budget(
        granting.percent, payer, Unpaid(granting.unpaid), granting.periods, granting.staggered
    )
