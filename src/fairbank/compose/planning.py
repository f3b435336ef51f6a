"""The scheduler on paper (cli.simulated.Planning). It has no bank, so that nothing heavy is imported."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from fairbank.compose.recorded import skim_any
from fairbank.service.simulating import Progress, check_starts, in_file, read_shares, simulate_each, write_starts
from fairbank.simulator.simulation import Outcome, Plan

if TYPE_CHECKING:  # a trace in a file needs nothing of the model
    from fairbank.service.modelled import Modelled


class Planning:
    """Recorded workloads under any policy."""

    def simulate(
        self,
        workload: str | Modelled,
        policies: Sequence[str],
        *,
        processors: int | None,
        starts: str | None,
        shares: str | None,
        by_group: bool,
        fair_starts: int,
        plots: bool,
        progress: Progress | None,
    ) -> list[Outcome]:
        """Run a trace in a file, or a synthetic one, under each policy; `starts` is a file for the starts of the last one. With `plots` it
        is seen how it goes."""
        path = Path(workload) if isinstance(workload, str) else None
        if starts is not None:
            check_starts(Path(starts), path)
        held = read_shares(Path(shares)) if shares is not None else None
        plan = Plan(processors, fair_starts, by_group=by_group, course=plots)
        source = partial(in_file, Path(workload), skim_any) if isinstance(workload, str) else workload.opened
        outcomes = simulate_each(source, policies, plan, holdings=held, progress=progress)
        if starts is not None:
            write_starts(outcomes[-1].starts, Path(starts))
        return outcomes
