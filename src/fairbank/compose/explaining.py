"""Who knows why jobs wait (cli.waiting.Explaining)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from fairbank.compose.recorded import skim_any
from fairbank.scheduling.explain.answer import Why
from fairbank.service.simulating import in_file
from fairbank.simulator.asking import Asked, ask
from fairbank.simulator.explaining import Drawing
from fairbank.simulator.policies import policy_named
from fairbank.values.time import show_duration


class Waiting(NamedTuple):
    """A job that waits (report.waiting.Waiting)."""

    why: Why
    facts: Mapping[str, object]
    submitted: int
    as_of: int
    started: int | None = None


class Explaining:
    """Jobs of recorded workloads."""

    def in_trace(
        self,
        trace: str,
        job: int,
        *,
        policy: str,
        at: int | None,
        absolute: bool,
        processors: int | None,
        runs: int,
        seed: int,
        progress: Callable[[str, int, int], None] | None,
    ) -> Waiting:
        """Simulate up to then, and from there on in many ways."""
        rule, asked = policy_named(policy), Asked(job, at, absolute, processors, Drawing(runs, seed))
        with in_file(Path(trace), skim_any) as (opened, extent):
            tick = None if progress is None else lambda jobs: progress(policy, jobs, extent.about(jobs))
            found = ask(opened, rule, asked, tick)
        facts = {
            "user": found.user,
            "processors": found.processors,
            "limit": show_duration(found.limit),
            "policy": found.policy,
        }
        return Waiting(found.why, facts, found.submitted, found.as_of, found.started)
