"""Agent with a bank on PostgreSQL, fed by a simulated plug-in: events per second, waits, memory."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import msgspec

from benchmarks.bank import benchmark_bank, postgres_server
from benchmarks.measure import Figure, Say, Table, at_least, at_most
from benchmarks.plugin import PluginOrder, PluginRound, run
from tests.agent.running_agent import RunningAgent, agent_at
from tests.support.conditions import wait_until
from tests.support.server import FairbankServer, run_bank

ALLOCATIONS = 1_000
AT_ONCE = 2_000
A_SECOND = 500
QUEUED = 100_000

ABOUT = (
    f"A simulated plug-in has {AT_ONCE:,} jobs in progress over one Unix socket: each asks whether "
    "it may start, and ends as soon as it may. All have the same TRES. The rate counts what the "
    f"bank granted, over {ALLOCATIONS:,} allocations. Then {A_SECOND} jobs begin each second, to "
    "measure their waits. Plug-in, agent, bank and database share the machine."
)
ABOUT_MEMORY = (
    f"The bank is down and the partition is open until {QUEUED:,} reports wait; peak resident "
    "memory of the agent."
)


class Scale(msgspec.Struct, frozen=True):
    rounds: int
    seconds: float
    queued: int


LONG = Scale(5, 6.0, QUEUED)
SHORT = Scale(2, 2.0, 10_000)


def measure(*, short: bool, say: Say) -> list[Table]:
    scale = SHORT if short else LONG
    with ExitStack() as stack:
        server, _ = stack.enter_context(postgres_server())
        url = server.url(stack.enter_context(server.fresh_database()))
        with benchmark_bank(url, ALLOCATIONS):
            pass
        bank = stack.enter_context(run_bank(url))
        agent = stack.enter_context(
            agent_at(f"unix:{bank.socket}", tables='[terms]\noutage_policy = "open"\npatience = 5')
        )
        fast, paced, job = _rounds(agent, scale, say)
        tables = [_speed(fast, paced)]
        say(f"{scale.queued:,} reports wait")
        return [*tables, _memory(agent, bank, scale, job)]


def _rounds(
    agent: RunningAgent, scale: Scale, say: Say
) -> tuple[list[float], list[PluginRound], int]:
    fast, paced, job = [], [], 1
    for number in range(scale.rounds):
        say(f"as fast as it goes, and {A_SECOND} a second; round {number + 1} of {scale.rounds}")
        rate, result = _fast(
            agent, PluginOrder(str(agent.socket), AT_ONCE, scale.seconds, job, ALLOCATIONS)
        )
        fast.append(rate)
        job += result.jobs
        paced.append(
            run(
                PluginOrder(
                    str(agent.socket), 0, scale.seconds, job, ALLOCATIONS, every=1 / A_SECOND
                )
            )
        )
        job += paced[-1].jobs
        agent.wait_until_empty(seconds=120)
    return fast, paced, job


def _fast(agent: RunningAgent, order: PluginOrder) -> tuple[float, PluginRound]:
    """Return the events per second once the agent is warm, and the round itself."""
    with ThreadPoolExecutor(1) as pool:
        idle = _granted(agent)
        result = pool.submit(run, order)
        wait_until(
            lambda: _granted(agent) > idle + 2 * AT_ONCE or result.done(), "it to be under way"
        )
        before, begun = _granted(agent), time.perf_counter()
        time.sleep(order.seconds)
        rate = (_granted(agent) - before) / (time.perf_counter() - begun)
        return rate, result.result()


def _granted(agent: RunningAgent) -> int:
    counts = agent.status()["reports_answered"]
    return sum(int(counts[kind].get("granted", 0)) for kind in ("hold", "complete"))


def _speed(fast: list[float], paced: list[PluginRound]) -> Table:
    rate = Figure("starts and ends that the bank has granted", "operations/s", tuple(fast))
    middle = Figure(
        f"from question to verdict at {A_SECOND}/s: p50",
        "ms",
        tuple(round_.p50_ms for round_ in paced),
    )
    slow = Figure(
        f"from question to verdict at {A_SECOND}/s: p99",
        "ms",
        tuple(round_.p99_ms for round_ in paced),
    )
    promises = (
        at_least("starts and ends", rate, 5_000),
        at_most(f"p99 of verdicts at {A_SECOND}/s", slow, 100),
    )
    return Table("The agent with a bank on PostgreSQL", ABOUT, (rate, middle, slow), promises)


def _memory(agent: RunningAgent, bank: FairbankServer, scale: Scale, job: int) -> Table:
    bank.stop()
    run(PluginOrder(str(agent.socket), AT_ONCE, 0, job, ALLOCATIONS, jobs=scale.queued // 2))
    wait_until(
        lambda: agent.status()["outbox"]["reports"] >= scale.queued,
        "so many reports to wait",
        seconds=60,
    )
    peak = Figure("the agent's greatest memory", "MiB", (_peak_mib(agent.pid),))
    bank.start()
    agent.wait_until_empty(seconds=300)
    return Table(
        "The agent with its outbox full", ABOUT_MEMORY, (peak,), (at_most("memory", peak, 100),)
    )


def _peak_mib(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1_024
