"""The plug-in's agent client without Slurm, built with sanitizers for threads and memory.

Each prolog request gets exactly one verdict, whatever the agent does.
"""

from __future__ import annotations

import shutil
import subprocess
import threading
from pathlib import Path

import pytest

from fairbank.agent.protocol import PrologRequest, Verdict
from tests.slurm.agent import SimulatedAgent, hold_policy, let_run, send_no_verdict
from tests.support.conditions import wait_until

pytestmark = pytest.mark.slow

SANITIZERS = ("address,undefined", "thread")


def compiled(name: str, sanitizer: str, checkout: Path, folder: Path) -> Path:
    """Return a test program of the agent client."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler here: apt-get install gcc")
    program = folder / name
    sources = [
        checkout / "plugins" / "prep" / f"{stem}.c"
        for stem in (name, "agent_client", "worker", "frame")
    ]
    options = [
        "-std=gnu11",
        "-D_GNU_SOURCE",
        "-g",
        "-O1",
        f"-fsanitize={sanitizer}",
        "-Wall",
        "-Wextra",
        "-Werror",
    ]
    subprocess.run([compiler, *options, "-o", program, *sources, "-lpthread"], check=True)
    return program


@pytest.fixture(scope="module", params=SANITIZERS)
def client(
    request: pytest.FixtureRequest, checkout: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    folder = tmp_path_factory.mktemp("c")
    return compiled("check_agent_client", request.param, checkout, folder)


def output(
    client: Path,
    agent: SimulatedAgent,
    requests: int,
    patience: int = 30,
    max_messages: int = 100_000,
) -> str:
    """Run the client and return the line that it prints."""
    command = [str(client), str(agent.path), str(requests), str(patience), str(max_messages)]
    process = subprocess.run(command, capture_output=True, text=True, check=False, timeout=50)
    assert "Sanitizer" not in process.stderr, process.stderr
    assert process.returncode == 0, process.stdout + process.stderr
    return process.stdout.strip()


def test_each_request_gets_one_verdict(client: Path, tmp_path: Path) -> None:
    def mixed(request: PrologRequest) -> Verdict:
        policy = let_run if request.run.job_id % 2 else hold_policy("Short", "3 SU short")
        return policy(request) or Verdict(number=0, action="run")

    with SimulatedAgent(tmp_path / "s", mixed).running() as agent:
        assert output(client, agent, 4000).endswith("cancel 0 wrong 0")
        # Withdrawn requests may not have been sent.
        assert len({request.run for request in agent.requests()}) >= 3900


def test_each_request_gets_one_verdict_while_the_agent_restarts(
    client: Path, tmp_path: Path
) -> None:
    agent = SimulatedAgent(tmp_path / "s").start()
    finished = threading.Event()

    def restart() -> None:
        while not finished.wait(0.05):
            agent.stop()
            agent.start()

    restarts = threading.Thread(target=restart)
    restarts.start()
    try:
        assert output(client, agent, 4000).endswith("wrong 0")
    finally:
        finished.set()
        restarts.join()
        agent.stop()


def test_jobs_are_held_without_an_agent(client: Path, tmp_path: Path) -> None:
    line = output(client, SimulatedAgent(tmp_path / "s"), 100, patience=1)
    assert line == "run 2 hold 98 cancel 0 wrong 0"  # two were withdrawn


def test_jobs_are_held_when_the_agent_does_not_answer(client: Path, tmp_path: Path) -> None:
    with SimulatedAgent(tmp_path / "s", send_no_verdict).running() as agent:
        assert output(client, agent, 100, patience=1) == "run 2 hold 98 cancel 0 wrong 0"


def test_requests_beyond_the_queue_get_one_verdict(client: Path, tmp_path: Path) -> None:
    with SimulatedAgent(tmp_path / "s", send_no_verdict).running() as agent:
        agent.acknowledges = False
        assert output(client, agent, 4000, patience=1, max_messages=50).endswith("wrong 0")


def test_bad_answer_closes_the_connection(client: Path, tmp_path: Path) -> None:
    with SimulatedAgent(tmp_path / "s").running() as agent:
        agent.raw = b"\x00\x00\x00\x07garbage"
        assert output(client, agent, 100, patience=2) == "run 2 hold 98 cancel 0 wrong 0"
        wait_until(lambda: agent.connections > 1, "the client to connect again")


def test_withdrawal_does_not_search_ends(checkout: Path, tmp_path: Path) -> None:
    """Withdraw quickly while thousands of ends wait: slurmctld does it at each epilog, with
    locks.
    """
    program = compiled("check_withdraw", "address,undefined", checkout, tmp_path)

    def nanoseconds(ends: int) -> int:
        process = subprocess.run(
            [str(program), str(tmp_path / "s"), str(ends)],
            capture_output=True,
            text=True,
            check=False,
            timeout=50,
        )
        assert "Sanitizer" not in process.stderr, process.stderr
        assert process.stdout.startswith("verdicts 1 of 1 in "), process.stdout + process.stderr
        return int(process.stdout.split()[-2])

    few, many = (min(nanoseconds(ends) for _ in range(3)) for ends in (1, 20_000))
    assert many < 50 * few  # a search of all messages takes more than a thousand times as long


@pytest.mark.parametrize("sanitizer", SANITIZERS)
@pytest.mark.parametrize(("when", "workers"), [("stuck", 1), ("late", 2)])
def test_abandoned_worker_is_resumed_or_replaced(
    checkout: Path, tmp_path: Path, sanitizer: str, when: str, workers: int
) -> None:
    """Never run two workers at once.

    slurmctld stops the plug-in with the locks that the worker waits for, and starts it again.
    """
    program = compiled("check_worker", sanitizer, checkout, tmp_path)
    process = subprocess.run(
        [str(program), str(tmp_path / "s"), when],
        capture_output=True,
        text=True,
        check=False,
        timeout=50,
    )
    assert "Sanitizer" not in process.stderr, process.stderr
    expected = f"verdicts 21 workers {workers} at once 1 more threads 0\n"
    assert process.stdout == expected, process.stderr
