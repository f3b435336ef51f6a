"""Who knows why jobs wait (cli.waiting.Explaining)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from fairbank.cli import waiting
from fairbank.compose.ranges import without_range
from fairbank.compose.recorded import skim_any
from fairbank.report.explanation import JobExplanation
from fairbank.service.simulation.comparison import in_file, policies_of
from fairbank.simulator.results.explanation import Drawing
from fairbank.simulator.results.job_query import JobQuery, ask


class Explained(NamedTuple):
    row: JobExplanation
    warnings: Sequence[str]


class Explaining:
    """Jobs of recorded workloads."""

    def in_trace(
        self, asked: waiting.Asked, *, progress: Callable[[str, int, int], None] | None
    ) -> Explained:
        """Simulate up to then, and from there on in many ways."""
        (rule,) = policies_of([asked.policy])
        question = JobQuery(
            asked.job, asked.at, asked.absolute, asked.processors, Drawing(asked.runs, asked.seed)
        )
        with in_file(Path(asked.trace), skim_any) as (opened, extent):
            tick = (
                None
                if progress is None
                else lambda jobs: progress(rule.name, jobs, extent.about(jobs))
            )
            found = ask(opened, rule, question, tick)
        facts = {
            "user": found.user,
            "processors": found.processors,
            "limit_seconds": found.limit,
            "policy": found.policy,
        }
        ahead = [str(number) for number in found.why.ahead]
        row = JobExplanation(
            str(asked.job),
            facts,
            found.submitted,
            found.as_of,
            found.why,
            ahead,
            started=found.started,
        )
        return Explained(
            row,
            [*without_range(found.why), *(f"policy {rule.name}: {each}" for each in rule.remarks)],
        )
