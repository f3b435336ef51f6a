"""The courier without Slurm: each question is settled exactly once, whatever the agent does. The compiler watches threads and memory."""

from __future__ import annotations

import shutil
import subprocess
import threading
from pathlib import Path

import pytest

from fairbank.agent.protocol.messages import PrologRequest, Verdict
from tests.slurm.agent import Agent, holding, let_run, say_nothing
from tests.support.waiting import wait_until

pytestmark = pytest.mark.slow

GUARDS = ("address,undefined", "thread")


def compiled(name: str, guard: str, checkout: Path, folder: Path) -> Path:
    """The program that checks the courier, watched by the compiler."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler here: apt-get install gcc")
    program = folder / name
    sources = [
        checkout / "plugins" / "prep" / f"{each}.c" for each in (name, "courier", "clerk", "frame")
    ]
    words = [
        "-std=gnu11",
        "-D_GNU_SOURCE",
        "-g",
        "-O1",
        f"-fsanitize={guard}",
        "-Wall",
        "-Wextra",
        "-Werror",
    ]
    subprocess.run([compiler, *words, "-o", program, *sources, "-lpthread"], check=True)
    return program


@pytest.fixture(scope="module", params=GUARDS)
def courier(
    request: pytest.FixtureRequest, checkout: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    return compiled("check_courier", request.param, checkout, tmp_path_factory.mktemp("c"))


def said_by(
    courier: Path, agent: Agent, questions: int, patience: int = 30, letters: int = 100_000
) -> str:
    words = [str(courier), str(agent.path), str(questions), str(patience), str(letters)]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=50)
    assert "Sanitizer" not in done.stderr, done.stderr
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()


def test_each_question_is_settled_once(courier: Path, tmp_path: Path) -> None:
    def mixed(asked: PrologRequest) -> Verdict:
        return (let_run if asked.run.job_id % 2 else holding("Short", "3 SU short"))(
            asked
        ) or Verdict(number=0, action="run")

    with Agent(tmp_path / "s", mixed).at_work() as agent:
        assert said_by(courier, agent, 4000).endswith("cancel 0 wrong 0")
        assert (
            len({each.run for each in agent.asked()}) >= 3900
        )  # those withdrawn may not have been sent


def test_an_agent_that_comes_and_goes(courier: Path, tmp_path: Path) -> None:
    agent = Agent(tmp_path / "s").start()
    over = threading.Event()

    def come_and_go() -> None:
        while not over.wait(0.05):
            agent.stop()
            agent.start()

    flapping = threading.Thread(target=come_and_go)
    flapping.start()
    try:
        assert said_by(courier, agent, 4000).endswith("wrong 0")
    finally:
        over.set()
        flapping.join()
        agent.stop()


def test_nobody_there(courier: Path, tmp_path: Path) -> None:
    said = said_by(courier, Agent(tmp_path / "s"), 100, patience=1)
    assert said == "run 2 hold 98 cancel 0 wrong 0"  # two were withdrawn


def test_silence(courier: Path, tmp_path: Path) -> None:
    with Agent(tmp_path / "s", say_nothing).at_work() as agent:
        assert said_by(courier, agent, 100, patience=1) == "run 2 hold 98 cancel 0 wrong 0"


def test_more_letters_than_there_is_room_for(courier: Path, tmp_path: Path) -> None:
    with Agent(tmp_path / "s", say_nothing).at_work() as agent:
        agent.notes = False
        assert said_by(courier, agent, 4000, patience=1, letters=50).endswith("wrong 0")


def test_garbage(courier: Path, tmp_path: Path) -> None:
    with Agent(tmp_path / "s").at_work() as agent:
        agent.raw = b"\x00\x00\x00\x07garbage"
        assert said_by(courier, agent, 100, patience=2) == "run 2 hold 98 cancel 0 wrong 0"
        wait_until(lambda: agent.connections > 1, "the courier to have tried again")


def test_withdrawing_a_question_does_not_look_through_ends(checkout: Path, tmp_path: Path) -> None:
    """slurmctld withdraws at every epilog, holding its locks, while the agent may be away and thousands of ends wait."""
    program = compiled("check_withdraw", "address,undefined", checkout, tmp_path)

    def nanoseconds(ends: int) -> int:
        done = subprocess.run(
            [str(program), str(tmp_path / "s"), str(ends)],
            capture_output=True,
            text=True,
            check=False,
            timeout=50,
        )
        assert "Sanitizer" not in done.stderr, done.stderr
        assert done.stdout.startswith("settled 1 of 1 in "), done.stdout + done.stderr
        return int(done.stdout.split()[-2])

    few, many = (min(nanoseconds(ends) for _ in range(3)) for ends in (1, 20_000))
    assert many < 50 * few  # looking at each would take a thousand times as long and more


@pytest.mark.parametrize("guard", GUARDS)
@pytest.mark.parametrize(("when", "clerks"), [("stuck", 1), ("late", 2)])
def test_a_clerk_that_was_left_behind_goes_on_or_is_followed_and_is_never_beside_another(
    checkout: Path, tmp_path: Path, guard: str, when: str, clerks: int
) -> None:
    """slurmctld stops its plug-in holding the locks that the clerk waits for, and starts it again in the same process."""
    program = compiled("check_clerk", guard, checkout, tmp_path)
    done = subprocess.run(
        [str(program), str(tmp_path / "s"), when],
        capture_output=True,
        text=True,
        check=False,
        timeout=50,
    )
    assert "Sanitizer" not in done.stderr, done.stderr
    assert done.stdout == f"settled 21 clerks {clerks} at once 1 more threads 0\n", done.stderr
