"""The compiled client that asks the agent from PrologSlurmctld, without Slurm: facts in, verdict
out.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import time
from itertools import pairwise
from pathlib import Path

import pytest

from fairbank.agent.outage_policy import DEFERRED_REASON
from fairbank.agent.protocol import Greeting, PrologRequest
from tests.slurm.agent import Policy, SimulatedAgent, cancel_policy, hold_policy, let_run
from tests.support.conditions import wait_until

pytestmark = pytest.mark.slow

ENVIRONMENT = {
    "SLURM_CLUSTER_NAME": "lab",
    "SLURM_JOB_ID": "8",
    "SLURM_JOB_UID": "5101",
    "SLURM_JOB_GID": "5201",
    "SLURM_JOB_ACCOUNT": "wg_astro",
    "SLURM_JOB_PARTITION": "cpu",
}
TRES = "cpu=2,mem=2000M,node=1,billing=2"
FACTS = f"8  1700000000  1700000007  1-02:03:04  1  {TRES}  normal\n"
CUT_SHORT = FACTS.partition(",billing=")[0]
DEFER, UNDECIDED = 3, 4


@pytest.fixture(scope="module")
def program(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler here: apt-get install gcc")
    program = tmp_path_factory.mktemp("c") / "prolog_client"
    sources = [checkout / "plugins" / "prep" / f"{stem}.c" for stem in ("prolog_client", "frame")]
    options = ("-std=gnu11", "-D_GNU_SOURCE", "-g", "-fsanitize=address,undefined", "-Werror")
    subprocess.run([compiler, *options, "-Wall", "-o", program, *sources], check=True)
    return program


def squeue(folder: Path, output: str) -> dict[str, str]:
    """Write a squeue that prints this, and return the environment of a prolog that finds it."""
    program, lines = folder / "squeue", folder / "lines"
    lines.write_text(output)
    program.write_text(f"#!/bin/sh\necho call >>{folder}/calls\ncat {lines}\n")
    program.chmod(0o755)
    return ENVIRONMENT | {"PATH": f"{folder}:{os.defpath}"}


def ask(
    program: Path, socket: Path, facts: str = FACTS, *, seconds: str = "10", **environment: str
) -> tuple[int, str]:
    """Run the client; return its exit status and what it prints."""
    process = subprocess.run(
        [program, socket, seconds],
        env=squeue(socket.parent, facts) | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Sanitizer" not in process.stderr, process.stderr
    return process.returncode, process.stdout.strip()


@pytest.mark.parametrize(
    ("policy", "status", "text"),
    [
        (let_run, 0, ""),
        (hold_policy("Short", "wg_astro: 3 SU short"), 1, "wg_astro: 3 SU short"),
        (cancel_policy("100% gone"), 2, "100% gone"),
        (hold_policy(DEFERRED_REASON, "later"), DEFER, "later"),
    ],
)
def test_verdict_is_the_exit_status(
    program: Path, tmp_path: Path, policy: Policy, status: int, text: str
) -> None:
    with SimulatedAgent(tmp_path / "s", policy).running() as agent:
        assert ask(program, agent.path) == (status, text)


def test_request_has_the_facts_of_the_job(program: Path, tmp_path: Path) -> None:
    with SimulatedAgent(tmp_path / "s").running() as agent:
        array = {"SLURM_ARRAY_JOB_ID": "7", "SLURM_ARRAY_TASK_ID": "5"}
        ask(program, agent.path, SLURM_JOB_RESTART_COUNT="2", **array)
        greeting, request = agent.received
    assert isinstance(greeting, Greeting)
    assert greeting.is_for_one_job
    assert isinstance(request, PrologRequest)
    assert str(request.run) == "lab/8@1700000000.2"
    assert (request.uid, request.gid, request.account) == (5101, 5201, "wg_astro")
    assert (request.partition, request.qos, request.array) == ("cpu", "normal", (7, 5))
    assert (request.tres, int(request.billing), request.batch) == (TRES, 2, True)
    assert (request.start, request.limit_seconds) == (1_700_000_007, 93_784)


@pytest.mark.parametrize(
    ("limit", "seconds"),
    [("10:00", 600), ("1:00:00", 3600), ("2-00:00:00", 172_800), ("UNLIMITED", None)],
)
def test_time_limit_is_read(program: Path, tmp_path: Path, limit: str, seconds: int | None) -> None:
    with SimulatedAgent(tmp_path / "s").running() as agent:
        ask(program, agent.path, FACTS.replace("1-02:03:04", limit))
        (request,) = agent.requests()
    assert request.limit_seconds == seconds


def test_less_than_one_billing_unit_is_none(program: Path, tmp_path: Path) -> None:
    """Slurm rounds down and leaves out what is 0."""
    with SimulatedAgent(tmp_path / "s").running() as agent:
        assert ask(program, agent.path, FACTS.replace(",billing=2", "")) == (0, "")
        (request,) = agent.requests()
    assert request.billing == 0


def test_batch_job_after_a_failed_node_is_one(program: Path, tmp_path: Path) -> None:
    with SimulatedAgent(tmp_path / "s").running() as agent:
        ask(program, agent.path, FACTS.replace(f"  1  {TRES}", f"  2  {TRES}"))
        (request,) = agent.requests()
    assert request.batch


@pytest.mark.parametrize(
    "facts", ["", "slurm_load_jobs error\n", FACTS.replace("cpu", "c"), CUT_SHORT]
)
def test_job_without_facts_is_undecided(program: Path, tmp_path: Path, facts: str) -> None:
    with SimulatedAgent(tmp_path / "s").running() as agent:
        assert ask(program, agent.path, facts) == (UNDECIDED, "")
        assert agent.requests() == []


@pytest.mark.parametrize("seconds", ["", "abc", "30s", "-1", "nan", "inf", "1e99", " 5"])
def test_wrong_number_of_seconds_is_named(program: Path, tmp_path: Path, seconds: str) -> None:
    process = subprocess.run(
        [program, tmp_path / "s", seconds],
        env=squeue(tmp_path, FACTS),
        capture_output=True,
        text=True,
        check=False,
    )
    message = f"prolog_client: '{seconds}' is not a number of seconds, such as 30\n"
    assert (process.returncode, process.stderr) == (UNDECIDED, message)


def test_path_that_is_too_long_for_a_socket_is_named(program: Path, tmp_path: Path) -> None:
    """Cut short it would be the path of another agent."""
    path = str(tmp_path).ljust(108, "s")
    with SimulatedAgent(Path(path[:107])).running() as agent:
        process = subprocess.run(
            [program, path, "10"],
            env=squeue(tmp_path, FACTS),
            capture_output=True,
            text=True,
            check=False,
        )
        assert agent.requests() == []
    message = f"prolog_client: {path} is too long for a socket: at most 107 bytes\n"
    assert (process.returncode, process.stderr) == (UNDECIDED, message)


def squeue_calls(folder: Path) -> int:
    log = folder / "calls"
    return log.read_text().count("call") if log.exists() else 0


def ask_beside_another(program: Path, socket: Path, written: str) -> int:
    """Run the client while another one writes the shared list; return its exit status."""
    shared = socket.with_name(f"{socket.name}.starting")
    with shared.open("w") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        command = [str(program), str(socket), "10"]
        with subprocess.Popen(command, env=squeue(socket.parent, FACTS)) as process:
            files = Path(f"/proc/{process.pid}/fd")
            wait_until(
                lambda: any(link.resolve() == shared for link in files.iterdir()),
                "the client to wait for the list",
            )
            other.write(f"{time.time():.6f}\n{written}")
            other.flush()
            fcntl.flock(other, fcntl.LOCK_UN)
        return process.returncode


def test_list_that_another_client_begins_is_shared(program: Path, tmp_path: Path) -> None:
    other = FACTS.replace("8", "7", 1)
    with SimulatedAgent(tmp_path / "s").running() as agent:
        lines = other + FACTS.replace("1-02:03:04", "1:00")
        assert ask_beside_another(program, agent.path, lines) == 0
        (request,) = agent.requests()
    assert request.limit_seconds == 60
    assert squeue_calls(tmp_path) == 0


def test_job_that_is_not_in_the_list_is_queried_alone(program: Path, tmp_path: Path) -> None:
    with SimulatedAgent(tmp_path / "s").running() as agent:
        assert ask_beside_another(program, agent.path, "") == 0
        assert len(agent.requests(8)) == 1


@pytest.mark.parametrize("age", [1_000, -1_000], ids=["older", "before the clock was set back"])
def test_list_of_an_earlier_start_is_not_used(program: Path, tmp_path: Path, age: int) -> None:
    shared = tmp_path / "s.starting"
    shared.write_text(f"{time.time() - age:.6f}\n{FACTS.replace('1-02:03:04', '1:00')}")
    with SimulatedAgent(tmp_path / "s").running() as agent:
        assert ask(program, agent.path) == (0, "")
        (request,) = agent.requests()
    assert request.limit_seconds == 93_784
    assert squeue_calls(tmp_path) == 1


def test_lists_are_at_least_a_tenth_of_a_second_apart(program: Path, tmp_path: Path) -> None:
    """Jobs that start in quick succession share one."""
    times = []
    for _ in range(4):
        # quick enough for two in a tenth of a second
        ask(program, tmp_path / "s", seconds="0", ASAN_OPTIONS="detect_leaks=0")
        times.append(float((tmp_path / "s.starting").read_text().split()[0]))
    assert min(later - earlier for earlier, later in pairwise(times)) > 0.099


def test_list_that_was_cut_short_gives_no_price(program: Path, tmp_path: Path) -> None:
    """The squeue of another client has failed within the line of this job."""
    with SimulatedAgent(tmp_path / "s").running() as agent:
        assert ask_beside_another(program, agent.path, CUT_SHORT) == 0
        (request,) = agent.requests()
    assert int(request.billing) == 2


def test_absent_agent_leaves_the_job_undecided(program: Path, tmp_path: Path) -> None:
    assert ask(program, tmp_path / "s", seconds="0.05") == (UNDECIDED, "")


def test_client_asks_again_after_a_lost_connection(program: Path, tmp_path: Path) -> None:
    with SimulatedAgent(tmp_path / "s").running() as agent:
        agent.raw = b"\0\0\0\1?"
        with subprocess.Popen([program, agent.path, "10"], env=squeue(tmp_path, FACTS)) as process:
            wait_until(lambda: agent.connections > 1, "the client to connect again")
            agent.raw = None
        assert process.returncode == 0
