"""Second part of `fairbank demo`: a queue on this host, and a small lab that uses it."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from fairbank.core.errors import FairbankError, Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from fairbank.cli.framework.context import Context

FAIRBANK = (sys.executable, "-P", "-m", "fairbank.cli")  # -P: no modules of this directory
WAIT_SECONDS = 120

SETTINGS = """\
[cluster]
cluster_name = "lab"

[scheduling]
def_mem_per_cpu = 64
preempt_type = "preempt/partition_prio"
preempt_mode = "REQUEUE"
scheduler_parameters = "bf_interval=1,sched_min_interval=0"

[jobs]
kill_wait = 2

[[nodes]]
node_name = "lab[1-4]"
cpus = 4
real_memory = 1024

[[partitions]]
partition_name = "main"
nodes = "ALL"
default = true
default_time = "10"
max_time = "1-00:00:00"
preempt_mode = "REQUEUE"

[[partitions]]
partition_name = "urgent"
nodes = "ALL"
priority_tier = 10
max_time = "60"
preempt_mode = "OFF"
"""

TRAIN = """\
#!/bin/bash
#SBATCH --job-name=train
#SBATCH --account=chem
#SBATCH --cpus-per-task=4
#SBATCH --time=5
echo "training with $SLURM_CPUS_PER_TASK CPUs on $SLURM_JOB_NODELIST"
sleep 3
"""


class QueueShell:
    """Shell of a user of the queue. Each command is shown with its output."""

    def __init__(self, context: Context, folder: Path) -> None:
        self._context, self._folder = context, folder
        self._directory = folder / "cluster"
        self._environ = {name: text for name, text in os.environ.items() if _is_passed_on(name)}
        links = self._directory / "bin"
        self._path = os.pathsep.join([str(links), *os.get_exec_path()])
        self._environ |= {
            "PATH": self._path,
            "FAIRBANK_CLUSTER": str(self._directory),
            "FAIRBANK_CONFIG": str(self._directory / "bank" / "fairbank.toml"),
            "FAIRBANK_AGENT_CONFIG": str(self._directory / "bank" / "agent.toml"),
        }

    def say(self, text: str) -> None:
        self._context.print_text(f"\n{text}")

    def type(self, line: str, *, codes: tuple[int, ...] = (0,)) -> None:
        """Show a command and its output. Raises FairbankError if it ends with another code."""
        self._context.print_text(f"\n$ {line}")
        sys.stdout.flush()
        code = self._run(shlex.split(line)).returncode
        if code not in codes:
            raise FairbankError(f"{line} ended with {code}")

    def submit(self, options: str) -> str:
        """Submit a job, which is shown, and return its id."""
        line = f"sbatch {options}"
        done = self._run(shlex.split(line), capture=True)
        self._context.print_text(f"\n$ {line}\n{done.stdout.strip()}")
        if done.returncode:
            raise FairbankError(f"{line} failed: {done.stderr.strip()}")
        return done.stdout.split()[-1]

    def output(self, line: str) -> str:
        """Return the output of a command that is not shown. Raises FairbankError if it fails."""
        done = self._run(shlex.split(line), capture=True)
        if done.returncode:
            raise FairbankError(f"{line} failed: {done.stderr.strip()}")
        return done.stdout

    def _run(self, words: list[str], *, capture: bool = False) -> subprocess.CompletedProcess[str]:
        command = [*FAIRBANK, *words[1:]] if words[0] == "fairbank" else words
        program = shutil.which(command[0], path=self._path) or command[0]
        return subprocess.run(
            [program, *command[1:]],
            cwd=self._folder,
            env=self._environ,
            capture_output=capture,
            text=True,
            check=False,
        )

    def wait(self, condition: Callable[[dict[str, str]], bool], what: str) -> None:
        """Wait until a condition holds for the states of the jobs in the queue, by id."""
        deadline = time.monotonic() + WAIT_SECONDS
        while True:
            lines = self.output("squeue --noheader --states=all --format='%i %T:%r'").splitlines()
            if condition(dict(line.split(" ", 1) for line in lines)):
                return
            if time.monotonic() > deadline:
                raise Unavailable(f"the demo's queue waits in vain for {what}")
            time.sleep(0.2)

    def wait_for_reports(self) -> None:
        """Wait until the bank has the ends of all runs."""
        deadline = time.monotonic() + WAIT_SECONDS
        while json.loads(self.output("fairbank agent status --json"))["data"]["outbox"]["reports"]:
            if time.monotonic() > deadline:
                raise Unavailable("the demo's agent does not reach its bank")
            time.sleep(0.2)


def _is_open(state: str) -> bool:
    return state.startswith(("PENDING", "CONFIGURING", "RUNNING", "COMPLETING"))


def _is_passed_on(name: str) -> bool:
    return not name.startswith(("FAIRBANK_", "SLURM_", "SBATCH_", "SQUEUE_", "SACCT_", "SINFO_"))


def show_queue(context: Context, folder: Path) -> None:
    """Start a cluster of four virtual nodes, show how jobs of a small lab fare, and end it.

    Raises FairbankError if a command fails or accounting and bank differ.
    """
    (folder / "lab.toml").write_text(SETTINGS, encoding="utf-8")
    (folder / "train.sh").write_text(TRAIN, encoding="utf-8")
    shell = QueueShell(context, folder)
    shell.say("A queue on this host: the embedded workload manager, with a bank of its own.")
    with _cluster(shell):
        _grant(shell)
        shell.submit("-A chem -J over -w lab4 -t 1 --wrap 'sleep 300'")
        _plain_jobs(shell)
        _parallel_step(shell)
        _credit(shell)
        _scheduling(shell)
        shell.wait(lambda states: not any(map(_is_open, states.values())), "the end of all jobs")
        shell.say("All of them in accounting, and in the bank.")
        shell.type("sacct -X -D --format=JobID,JobName,Account,Elapsed,State,ExitCode")
        shell.wait_for_reports()
        shell.type("fairbank statement 2 --limit 6")
        # All reports have arrived, so that no run may be left for the next time.
        shell.type("fairbank reconcile --grace 0")


@contextmanager
def _cluster(shell: QueueShell) -> Iterator[None]:
    shell.type("fairbank cluster up --config lab.toml --dir cluster")
    try:
        yield
    except BaseException:
        shell.output("fairbank cluster down --now")
        raise
    shell.type("fairbank cluster down")


def _grant(shell: QueueShell) -> None:
    """Create the projects of the lab: chem has credit, bio has too little."""
    user = os.getuid()
    for account, gid in (("chem", 7001), ("bio", 7002)):
        shell.output(f"fairbank project create {account} --gid {gid}")
        shell.output(f"fairbank project add-user {account} {user}")
    term = "--start today --end now+1year --reason 'a small lab'"
    shell.type(f"fairbank alloc create -A chem -r cpu {term} --amount 100")
    shell.type(f"fairbank alloc create -A bio -r cpu {term} --amount 10")


def _plain_jobs(shell: QueueShell) -> None:
    shell.say("A script with #SBATCH lines, and one that begins when it has succeeded.")
    train = shell.submit("train.sh")
    shell.submit(f"-A chem -J merge -t 2 --dependency=afterok:{train} --wrap 'sleep 1'")
    shell.say("An array of which two tasks run at a time.")
    sweep = shell.submit("-A chem -J sweep -t 2 --array=1-4%2 --wrap 'sleep 1'")
    shell.say("A job that fails, and one that needs its success.")
    broken = shell.submit("-A chem -J broken -t 2 --wrap 'exit 3'")
    after = shell.submit(f"-A chem -J never -t 2 --dependency=afterok:{broken} --wrap true")
    shell.wait(lambda states: "DependencyNeverSatisfied" in states[after], "the failed job")
    shell.type("squeue")
    shell.output(f"scancel {after}")
    shell.wait(
        lambda states: all(
            state.startswith("COMPLETED") for job, state in states.items() if job.startswith(sweep)
        ),
        "the array",
    )


def _parallel_step(shell: QueueShell) -> None:
    shell.say("A parallel step: four tasks on two nodes, each line with the number of its task.")
    shell.type(
        "salloc -A chem -J step -N 2 --ntasks-per-node=2 -t 2 srun --label printenv SLURMD_NODENAME"
    )


def _credit(shell: QueueShell) -> None:
    shell.say("A job of bio costs more than bio has. It waits for a deposit.")
    large = shell.submit("-A bio -J large -c 4 -t 10:00:00 --wrap 'sleep 1'")
    shell.wait(lambda states: "Allocation_exhausted" in states[large], "the refusal of the bank")
    shell.type(f"squeue -j {large}")
    shell.type(f"fairbank why {large}", codes=(0, 4))
    shell.type("fairbank balance -A bio", codes=(0, 4))
    shell.type("fairbank deposit 3 100 --reason 'more for bio'")
    shell.wait(lambda states: states[large].startswith("COMPLETED"), "the job after the deposit")


def _scheduling(shell: QueueShell) -> None:
    shell.say("A wide job waits for all nodes; a short one behind it does not delay it (backfill).")
    shell.submit("-A chem -J long -t 30 -w lab1,lab2,lab3 -N 3 -n 12 --wrap 'sleep 600'")
    wide = shell.submit("-A chem -J wide -t 5 -N 4 --exclusive --wrap 'sleep 1'")
    short = shell.submit("-A chem -J short -t 1 -c 2 --wrap 'sleep 2'")
    shell.wait(lambda states: states[short].startswith(("RUNNING", "COMPLETED")), "the short job")
    shell.type("squeue")
    shell.output(f"scancel {wide}")
    shell.say("A job of a higher partition takes the nodes of a running one, which waits again.")
    urgent = shell.submit("-A chem -J urgent -p urgent -t 1 -w lab1 -c 4 --wrap 'sleep 1'")
    shell.wait(lambda states: states[urgent].startswith(("RUNNING", "COMPLETED")), "preemption")
    shell.type("squeue")
    shell.output("scancel --name=long")
