"""The main job on paper (cli.paper.Paper)."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

from fairbank.bank.policy import Overrun, Policy
from fairbank.core.time import Instant
from fairbank.service.ledger import Ledger
from fairbank.service.ops.atomic_file import whole_file
from fairbank.service.replay import Progress, ReplayPlan, ReplayResult, replay
from fairbank.service.simulation.trace_files import open_trace
from fairbank.simulator.engine.bank_replay import Payer
from fairbank.simulator.traces.swf import write
from fairbank.simulator.traces.synthetic import month
from fairbank.simulator.traces.synthetic_site import SyntheticSite
from fairbank.store.factory import open_store
from fairbank.store.migration import migrate


class Paper:
    """Recorded and synthetic workloads."""

    def replay(
        self,
        trace: str,
        store: str,
        *,
        cluster: str,
        percent: int,
        periods: int,
        days: int | None,
        payer: str | None,
        record_overruns: bool,
        progress: Progress | None,
    ) -> ReplayResult:
        """Run a recorded workload through a new bank at `store`."""
        path = Path(trace)
        plan = ReplayPlan(
            cluster=cluster,
            percent=percent,
            periods=periods,
            days=days,
            payer=Payer(payer) if payer else None,
            actor=os.getuid(),
        )
        policy = Policy(overrun=Overrun.RECORD if record_overruns else Overrun.WRITE_OFF)
        with open_trace(path):  # before a store is made for nothing
            migrate(store)
        opened = open_store(store)
        try:
            return replay(Ledger(opened, policy), partial(open_trace, path), plan, progress)
        finally:
            opened.close()

    def synthesise(self, path: str, *, seed: int, starts: int) -> int:
        """Write the trace of a synthetic month that begins at `starts`. Returns the number of jobs."""
        centre = SyntheticSite(starts=Instant(starts))
        with whole_file(Path(path)) as file:
            file.writelines(map(str.encode, write(*month(centre, seed))))
        return centre.jobs
