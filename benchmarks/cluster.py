"""A real Slurm with and without Fairbank enforcing: an array of a thousand tasks that do nothing, and how long `srun true` takes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import msgspec

from benchmarks.books import postgres_server
from benchmarks.measure import Figure, Promise, Say, Table, at_most, ratio
from tests.agent.running import RunningAgent
from tests.slurm.desk import build, install, settings
from tests.slurm.lab.cluster import Cluster
from tests.slurm.office import RICH, Office, agent_beside, prices
from tests.support.server import made
from tests.support.waiting import wait_until

CHECKOUT = Path(__file__).parents[1]
USER = "alice"
ALONE, BESIDE, AHEAD = "without Fairbank", "with Fairbank", "with Fairbank, optimistic start"
LEAST_RATE, MOST_MS = 0.95, 10
OVER_SECONDS = 300

ABOUT = (
    "The cluster of `make test-slurm`: ten nodes, slurmctld, slurmdbd and MariaDB on the same machine as the agent, the bank and its "
    "PostgreSQL. slurmctld is started anew with and without the plug-in, in turns, and each of them is first, second and last as often: "
    "ended jobs stay with slurmctld for minutes, and it is the slower the more there are. Jobs per second: one array of {tasks:,} tasks of "
    "`true`, from sbatch to an empty queue; one such array goes before all. Latency: `srun true`, {sruns} times one after the other; a "
    "round's figure is their median."
)
REMARK = """
srun asks slurmctld whether its job is ready as soon as it is allocated, and if it is not, again after 0.1 s. A bank that writes to a
disk has not answered by then, so that each srun waits for that second question. With
`optimistic_start` ([the agent's settings](reference/agent.md))
a job of a project with plenty left does not wait for the bank.
"""


class Scale(msgspec.Struct, frozen=True):
    rounds: int
    tasks: int
    sruns: int


LONG, SHORT = Scale(6, 1_000, 40), Scale(1, 100, 5)


@dataclass(frozen=True)
class Place:
    """The cluster, and the agent that it asks when it is told to."""

    slurm: Cluster
    agent: RunningAgent

    def turn(self, contender: str) -> None:
        """slurmctld asks, or does not; in either case it was started anew."""
        self.slurm.reconfigure({} if contender == ALONE else settings(self.slurm))
        terms = f"[terms]\noptimistic_start = {10 if contender == AHEAD else 0}\n"
        self.agent.stop()
        self.agent.config.write_text(self.agent.config.read_text().partition("[terms]")[0] + terms)
        self.agent.start()
        self.slurm.calm()
        self.slurm.run(
            USER, "srun", "true"
        ).done()  # the plug-in has found the agent, and the agent knows what is left

    def rate(self, tasks: int) -> float:
        """Tasks a second."""
        begun = time.perf_counter()
        job = self.slurm.submit(USER, f"--array=1-{tasks}", "--time=10")
        wait_until(lambda: not self.slurm.queued(), "the array to be over", seconds=OVER_SECONDS)
        taken = time.perf_counter() - begun
        if set(self.slurm.states(job)) != {"COMPLETED"}:
            raise RuntimeError(f"tasks of {job} did not run: {set(self.slurm.states(job))}")
        return tasks / taken

    def latency(self, sruns: int) -> float:
        """Milliseconds, at the median."""
        took = []
        for _ in range(sruns):
            begun = time.perf_counter()
            self.slurm.run(USER, "srun", "--time=10", "true").done()
            took.append((time.perf_counter() - begun) * 1_000)
        return median(took)


def measure(*, short: bool, say: Say) -> list[Table]:
    """Raises tests.slurm.lab.packages.Unobtainable where there can be no Slurm."""
    scale = SHORT if short else LONG
    contenders = (ALONE, BESIDE, AHEAD)
    rates: dict[str, list[float]] = {name: [] for name in contenders}
    latencies: dict[str, list[float]] = {name: [] for name in contenders}
    with _place() as place:
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


def _slower(what: str, ours: Figure, theirs: Figure) -> Promise:
    found = [one - other for one, other in zip(ours.rounds, theirs.rounds, strict=True)]
    return at_most(what, Figure(what, "ms", tuple(found)), MOST_MS)


@contextmanager
def _place() -> Iterator[Place]:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="fb-bench-")))
        cluster = Cluster.up("bench")
        stack.callback(cluster.down)
        install(build(CHECKOUT, folder), cluster)
        server, _ = stack.enter_context(postgres_server())
        bank = stack.enter_context(made(server.url(stack.enter_context(server.fresh_database()))))
        bank.config.write_text(bank.config.read_text() + prices())
        bank.start()
        agent = agent_beside(cluster, bank, tables="[terms]\n")
        stack.callback(agent.close)
        agent.start()
        office = Office(cluster, agent, bank)
        office.found()
        office.leave("wg_astro", RICH)
        yield Place(cluster, agent)
