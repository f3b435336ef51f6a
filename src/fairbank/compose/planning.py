"""The scheduler on paper (cli.simulated.Planning). It has no bank, so that nothing heavy is imported."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from fairbank.compose.recorded import skim_any
from fairbank.service.simulating import Progress, check_starts, read_shares, simulate_file, write_starts
from fairbank.simulator.simulation import Outcome, Plan


class Planning:
    """Recorded workloads under any policy."""

    def simulate(
        self,
        trace: str,
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
        """Run a trace under each policy; `starts` is a file for the starts of the last one. With `plots` it is seen how it goes."""
        if starts is not None:
            check_starts(Path(starts), Path(trace))
        held = read_shares(Path(shares)) if shares is not None else None
        plan = Plan(processors, fair_starts, by_group=by_group, course=plots)
        outcomes = simulate_file(Path(trace), policies, plan, holdings=held, progress=progress, reader=skim_any)
        if starts is not None:
            write_starts(outcomes[-1].starts, Path(starts))
        return outcomes
