"""What would have been (cli.simulated.Questions)."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from fairbank.compose.planning import budget_of
from fairbank.compose.recorded import skim_any
from fairbank.service.simulation.comparison import Progress, in_file, read_shares
from fairbank.service.simulation.what_if import MachineChange, Question, WhatIfResult, what_if
from fairbank.simulator.engine.simulation import SimulationPlan
from fairbank.simulator.traces.workload_edits import Resized, WorkloadEdits

if TYPE_CHECKING:
    from fairbank.cli.otherwise import Asked
    from fairbank.cli.simulated import Terms


class Questions:
    """Recorded workloads with something changed in them."""

    def what_if(
        self, trace: str, asked: Asked, terms: Terms, *, progress: Progress | None
    ) -> WhatIfResult:
        """Run a trace in a file as it was recorded, and as it is asked for; and both of each shaken copy."""
        held = read_shares(Path(terms.shares)) if terms.shares is not None else None
        plan = SimulationPlan(terms.processors, by_group=terms.by == "group")
        source = partial(in_file, Path(trace), skim_any)
        budget = terms.granting and budget_of(terms.granting)
        return what_if(
            source, question_of(asked), plan, holdings=held, budget=budget, progress=progress
        )


def question_of(asked: Asked) -> Question:
    """What the options say, as the simulator has it."""
    changes = WorkloadEdits(
        users=frozenset(asked.users),
        groups=frozenset(asked.groups),
        jobs=dict.fromkeys(asked.jobs, Resized(asked.size, asked.limit)),
        limits_percent=asked.limits_percent,
    )
    machine = MachineChange(nodes=asked.add_nodes, processors=asked.add_procs)
    return Question(asked.policy, asked.other, changes, machine, asked.copies, asked.seed)
