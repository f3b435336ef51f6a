"""Real Slurm with and without enforcement by Fairbank: an array of a thousand empty tasks, and the
latency of `srun true`.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import msgspec

from benchmarks.bank import postgres_server
from benchmarks.measure import Figure, Say, Table, Target, at_most, ratio
from tests.agent.running_agent import RunningAgent
from tests.slurm.bank_cluster import RICH, BankStack, agent_for, prices
from tests.slurm.lab.cluster import Cluster
from tests.slurm.lab.guard import running_cluster
from tests.slurm.prep_cluster import build, install, settings
from tests.support.conditions import wait_until
from tests.support.server import create_bank

CHECKOUT = Path(__file__).parents[1]
USER = "alice"
ALONE, BESIDE, AHEAD = "without Fairbank", "with Fairbank", "with Fairbank, optimistic start"
LEAST_RATE, MOST_MS = 0.95, 10
OVER_SECONDS = 300

ABOUT = (
    "The cluster of `make test-slurm`: ten nodes, slurmctld, slurmdbd and MariaDB on the same"
    " machine as the agent, the bank and its PostgreSQL. slurmctld restarts with and without the"
    " plug-in in alternation, because ended jobs stay in its memory for minutes and slow it down;"
    " each contender is first, second and last equally often. Jobs per second: one array of"
    " {tasks:,} tasks of `true`, from sbatch to an empty queue, after one array that is not"
    " counted. Latency: `srun true`, {sruns} times in sequence; the figure of a round is their"
    " median."
)
REMARK = """
srun asks slurmctld whether its job is ready as soon as it is allocated, and if not, again after
0.1 s. A bank that writes to a disk has not answered by then, so each srun waits for that second
question. With `optimistic_start` ([the agent's settings](reference/agent.md)) a job of a project
with plenty of credit does not wait for the bank.
"""


class Scale(msgspec.Struct, frozen=True):
    rounds: int
    tasks: int
    sruns: int


LONG, SHORT = Scale(6, 1_000, 40), Scale(1, 100, 5)


@dataclass(frozen=True)
class Place:
    """Cluster, and the agent that its plug-in uses when it is switched on."""

    slurm: Cluster
    agent: RunningAgent

    def turn(self, contender: str) -> None:
        """Restart slurmctld with or without the plug-in. Both contenders get a fresh slurmctld."""
        self.slurm.reconfigure({} if contender == ALONE else settings(self.slurm))
        terms = f"[terms]\noptimistic_start = {10 if contender == AHEAD else 0}\n"
        self.agent.stop()
        self.agent.config.write_text(self.agent.config.read_text().partition("[terms]")[0] + terms)
        self.agent.start()
        self.slurm.calm()
        self.slurm.run(
            USER, "srun", "true"
        ).checked()  # the plug-in has found the agent, and the agent knows what is left

    def rate(self, tasks: int) -> float:
        """Return the tasks per second."""
        begun = time.perf_counter()
        job = self.slurm.submit(USER, f"--array=1-{tasks}", "--time=10")
        wait_until(lambda: not self.slurm.queued(), "the array to be over", seconds=OVER_SECONDS)
        taken = time.perf_counter() - begun
        if set(self.slurm.states(job)) != {"COMPLETED"}:
            raise RuntimeError(f"tasks of {job} did not run: {set(self.slurm.states(job))}")
        return tasks / taken

    def latency(self, sruns: int) -> float:
        """Return the median latency, in milliseconds."""
        took = []
        for _ in range(sruns):
            begun = time.perf_counter()
            self.slurm.run(USER, "srun", "--time=10", "true").checked()
            took.append((time.perf_counter() - begun) * 1_000)
        return median(took)


def measure(*, short: bool, say: Say) -> list[Table]:
    """Measure both. Raises tests.slurm.lab.packages.Unobtainable where Slurm cannot be
    installed.
    """
    scale = SHORT if short else LONG
    contenders = (ALONE, BESIDE, AHEAD)
    rates: dict[str, list[float]] = {name: [] for name in contenders}
    latencies: dict[str, list[float]] = {name: [] for name in contenders}
    with place_of("full") as place:
        say("an array before all")
        place.rate(scale.tasks)
        for number in range(scale.rounds):
            first = number % len(contenders)
            for name in contenders[first:] + contenders[:first]:
                say(f"{name}; round {number + 1} of {scale.rounds}")
                place.turn(name)
                latencies[name].append(place.latency(scale.sruns))
                rates[name].append(place.rate(scale.tasks))
    about = ABOUT.format(tasks=scale.tasks, sruns=scale.sruns)
    speed = {
        name: Figure(f"array, {name}", "jobs/s", tuple(values)) for name, values in rates.items()
    }
    waits = {
        name: Figure(f"srun true, {name}", "ms", tuple(values))
        for name, values in latencies.items()
    }
    promises = [
        ratio(f"jobs per second, {name}", speed[name], speed[ALONE], LEAST_RATE)
        for name in (BESIDE, AHEAD)
    ]
    promises += [
        _slower(f"srun {name}, slower by", waits[name], waits[ALONE]) for name in (BESIDE, AHEAD)
    ]
    return [
        Table(
            "Slurm with Fairbank enforcing",
            about,
            (*speed.values(), *waits.values()),
            () if short else tuple(promises),
        )
    ]


def _slower(what: str, ours: Figure, theirs: Figure) -> Target:
    differences = [one - other for one, other in zip(ours.rounds, theirs.rounds, strict=True)]
    return at_most(what, Figure(what, "ms", tuple(differences)), MOST_MS)


@contextmanager
def place_of(size: str) -> Iterator[Place]:
    """Run a cluster of the lab, an agent, and a bank with credit for the users of Slurm."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="fb-bench-")))
        cluster = stack.enter_context(running_cluster("bench", size))
        install(build(CHECKOUT, folder), cluster)
        server, _ = stack.enter_context(postgres_server())
        bank = stack.enter_context(
            create_bank(server.url(stack.enter_context(server.fresh_database())))
        )
        bank.config.write_text(bank.config.read_text() + prices())
        bank.start()
        agent = agent_for(cluster, bank, tables="[terms]\n")
        stack.callback(agent.close)
        agent.start()
        bank_stack = BankStack(cluster, agent, bank)
        bank_stack.create_projects()
        bank_stack.set_available("wg_astro", RICH)
        yield Place(cluster, agent)
