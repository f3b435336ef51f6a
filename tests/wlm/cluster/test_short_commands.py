"""Short commands on a cluster with a bank: prices, other users, and what is imported.

tests/wlm/scenarios/short.txt has their sessions, under Slurm and here.
"""

from __future__ import annotations

import csv
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fairbank.core.time import show_duration
from tests.cli.test_startup import FORBIDDEN, START, interpreter_modules
from tests.support.conditions import wait_until
from tests.support.json_schemas import check_schema
from tests.support.server import FAIRBANK
from tests.wlm.cluster.live_cluster import LiveCluster

NAME = "Überprüfung der Werte"
PAGE = Path(__file__).parents[3] / "docs/howto/coming-from-task-spooler.md"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveCluster]:
    running = LiveCluster(tmp_path_factory.mktemp("short"))
    try:
        yield running
    finally:
        running.close()


def job_of(answer: subprocess.CompletedProcess[str]) -> str:
    match = re.match(r"job (\d+): ", answer.stdout)
    assert match, answer
    return match[1]


def test_answer_tells_what_the_bank_holds(cluster: LiveCluster) -> None:
    answer = cluster.run("run", "-c", "4", "-t", "2h", "--", "true")
    number = job_of(answer)
    assert (answer.stdout, answer.stderr, answer.returncode) == (
        f"job {number}: 4 CPUs, 2 h, holds 8 SU; starts now\n", "", 0,
    )  # fmt: skip
    assert cluster.run("wait", number).stdout == f"job {number}: COMPLETED\n"


def test_answer_of_a_job_that_cannot_be_paid_has_what_is_left(cluster: LiveCluster) -> None:
    cluster.fairbank("project", "create", "daemon", "-A", "poor")
    cluster.fairbank("project", "add-user", "poor", str(os.getuid()))
    terms = ("--end", "now+9days", "--amount", "1", "--reason", "test")
    cluster.fairbank("alloc", "create", "-A", "poor", "-r", "cpu", *terms)
    answer = cluster.run("run", "-A", "poor", "-t", "2h", "--", "true")
    number = job_of(answer)
    assert answer.stdout == (
        f"job {number}: 1 CPU, 2 h, needs 2 SU, of which poor has 1 SU; waits for credit:"
        f" fairbank why {number}\n"
    )

    def is_refused() -> bool:
        return "(Allocation_exhausted)" in cluster.slurm("squeue", "-j", number)

    wait_until(is_refused, "the refusal")
    assert cluster.slurm("scontrol", "release", number) == ""
    wait_until(is_refused, "the refusal after the release")
    assert cluster.run("cancel", number).returncode == 0


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("run", "-A", "nobodys", "--", "true"), 4, "has no association with account 'nobodys'"),
        (("run", "-c", "5", "--", "true"), 2, "could ever run this job"),
        (("run", "--gpus", "1", "--", "true"), 2, "without these GPUs: 1 of any type"),
        (("log", "4000000"), 3, "there is no job 4000000"),
    ],
)
def test_wrong_request_is_refused_in_a_sentence(
    cluster: LiveCluster, words: tuple[str, ...], code: int, message: str
) -> None:
    result = cluster.run(*words)
    assert (result.returncode, result.stdout) == (code, "")
    assert message in " ".join(result.stderr.split())
    assert "  try: " in result.stderr


def test_efficiency_names_what_would_have_been_enough(cluster: LiveCluster) -> None:
    hold = "x = bytearray(30_000_000); import time; time.sleep(2)"
    words = ("-c", "4", "--mem", "400M", "-t", "1h", "--wait", "--", sys.executable, "-c", hold)
    number = job_of(cluster.run("run", *words))
    lines = cluster.slurm("seff", number).splitlines()
    assert {"State: COMPLETED (exit code 0)", "Cores per node: 4"} <= {*lines}
    assert re.search(r"^Memory Efficiency: .* of 400.00 MB", "\n".join(lines), re.MULTILINE)
    cluster.settle()
    (row,) = json.loads(cluster.run("eff", number, "--json").stdout)["data"]
    assert f"CPU Utilized: {show_duration(row['cpu_used'])}" in lines
    memory = re.fullmatch(r"cpu=1,node=1,mem=(\d+)M", row["enough"]["tres"])
    assert memory
    assert 29 < int(memory[1]) < 200
    assert 0 < row["enough"]["cost"] <= row["cost"]


def test_queue_has_own_jobs_that_run_before_those_that_wait(cluster: LiveCluster) -> None:
    running = job_of(cluster.run("run", "-t", "2h", "--", "sleep", "600"))
    wait_until(lambda: cluster.job_states().get(running) == "RUNNING", "the start")
    waiting = job_of(cluster.run("run", "--after", running, "-t", "20m", "--", "true"))
    cluster.slurm("sbatch", "-H", "--wrap=true", "-J", "Übung 1, b")
    answer = cluster.run("queue")
    caption, _, heads, first, *others = answer.stdout.splitlines()
    assert caption.endswith("   yours: 1 running, 2 waiting")
    assert heads.split()[:3] == ["JOBID", "NAME", "PART"]
    assert heads.split()[-3:] == ["LEFT", "START", "NODELIST(REASON)"]
    assert first.split()[:4] == [running, "sleep", "main", "RUNNING"]
    assert [line.split()[-1] for line in others] == ["(Dependency)", "(JobHeldUser)"]
    header, _, _, held = csv.reader(cluster.run("queue", "--csv").stdout.splitlines())
    assert header == [
        *("JOBID", "NAME", "PART", "STATE", "NODES", "CPUS", "GPUS", "TIME-LIMIT", "LEFT"),
        *("START", "NODELIST(REASON)"),
    ]
    assert (held[1], held[-1]) == ("Übung 1, b", "(JobHeldUser)")
    document = json.loads(cluster.run("queue", "--json").stdout)
    check_schema(document)
    (row, *_) = document["data"]
    assert (row["job_id"], row["state"], row["start_in_seconds"]) == (running, "RUNNING", None)
    assert 7_000 < row["left_seconds"] <= 7_200
    assert row["node_list"]
    everyones = cluster.run("queue", "--all", "--no-likely", "-n", "-o", "JOBID").stdout.split()
    assert running not in everyones
    assert waiting in everyones
    for job in json.loads(cluster.run("queue", "--json").stdout)["data"]:
        cluster.run("cancel", job["job_id"])


@pytest.mark.parametrize("columns", [80, 120])
def test_queue_at_a_terminal_fits_on_its_screen(cluster: LiveCluster, columns: int) -> None:
    jobs = cluster.slurm("sbatch", "-H", "--parsable", "--array=1-1", "--wrap=true").split()
    held = ("sbatch", "-H", "--parsable", "--wrap=true", "-J", NAME)
    jobs += [cluster.slurm(*held).strip() for _ in range(11)]
    command = f"stty rows 16 cols {columns}; exec {FAIRBANK} queue"
    main, side = os.openpty()
    shell = subprocess.run(
        ["sh", "-c", command], env={**cluster.environment, "NO_COLOR": "1"},
        stdin=side, stdout=side, stderr=side, check=False, timeout=60,
    )  # fmt: skip
    os.close(side)
    screen = os.read(main, 1 << 16).decode()
    os.close(main)
    for job in jobs:
        cluster.run("cancel", job)
    assert shell.returncode == 0, screen
    assert screen.count("JobHeldUser") == 7
    assert screen.count(NAME if columns == 120 else NAME[:8]) == 6
    assert "5 more jobs of yours: fairbank queue -l" in screen
    assert screen.count("\n") < 16
    assert max(map(len, screen.splitlines())) <= columns


def test_interrupted_wait_leaves_the_job_and_names_the_way_to_end_it(cluster: LiveCluster) -> None:
    output = cluster.home / "output"
    with output.open("wb") as file:
        waiting = subprocess.Popen(
            [FAIRBANK, "run", "--wait", "--", "sleep", "600"],
            env=cluster.environment, cwd=cluster.home, stdout=file, stderr=file,
        )  # fmt: skip
    wait_until(lambda: output.read_text().endswith("\n"), "the number of the job")
    waiting.send_signal(signal.SIGINT)
    assert waiting.wait(30) == 130
    match = re.search(r"job (\d+) goes on; to end it: fairbank cancel \1\n", output.read_text())
    assert match, output.read_text()
    assert cluster.run("cancel", match[1]).stdout == f"job {match[1]} is cancelled\n"


def test_log_ends_with_its_reader(cluster: LiveCluster) -> None:
    number = job_of(cluster.run("run", "--wait", "--", "seq", "100000"))
    script = f"{FAIRBANK} log {number} | head -n 1; echo ${{PIPESTATUS[0]}}"
    shell = subprocess.run(
        ["bash", "-c", script], env=cluster.environment,
        capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    assert (shell.stdout, shell.stderr) == ("1\n0\n", "")
    shell = subprocess.run(
        ["sh", "-c", f"exec {FAIRBANK} log {number} > /dev/full"], env=cluster.environment,
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert (shell.returncode != 0, "cannot read" in shell.stderr) == (True, False)


def test_job_that_the_queue_has_forgotten_is_found_in_accounting(cluster: LiveCluster) -> None:
    settings = cluster.directory / "wlm.toml"
    settings.write_text(settings.read_text().replace("[cluster]", "[cluster]\nmin_job_age = 2", 1))
    cluster.slurm("scontrol", "reconfigure")
    number = job_of(cluster.run("run", "--wait", "--", "sh", "-c", "echo kept; exit 3"))
    wait_until(lambda: number not in cluster.job_states(), "the queue to forget the job")
    ended = cluster.run("wait", number)
    assert (ended.stdout, ended.returncode) == (f"job {number}: FAILED, exit code 3\n", 3)
    assert cluster.run("log", number).stdout == "kept\n"
    assert cluster.run("cancel", number).returncode == 7
    assert cluster.run("run", "--wait", "--after", number, "--", "true").returncode == 0


def test_waiting_survives_a_killed_controller(cluster: LiveCluster) -> None:
    number = job_of(cluster.run("run", "--", "sh", "-c", "until [ -e go ]; do sleep 0.1; done"))
    waiting = subprocess.Popen(
        [FAIRBANK, "wait", number],
        env=cluster.environment, cwd=cluster.home, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    pid = cluster.daemon("controller")
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    (cluster.home / "go").touch()
    printed, _ = waiting.communicate(timeout=60)
    assert (printed, waiting.returncode) == (f"job {number}: COMPLETED\n", 0)


def test_process_of_a_job_is_warned_before_its_end(cluster: LiveCluster) -> None:
    """The limit is nearer than the warning, so that it is due at once."""
    script = f"trap 'exit 7' USR1; {FAIRBANK} warn USR1@3600; while :; do sleep 0.1; done"
    started = cluster.run("run", "-t", "10m", "--wait", "--", "sh", "-c", script)
    assert started.returncode == 7
    output = cluster.run("log", job_of(started)).stdout
    words = rf"process \d+ of job {job_of(started)} gets SIGUSR1 3600 s before its end; the limit "
    assert re.match(words, output), output


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("USR1@60",), 3, "belongs to no job"),
        (("USR1@60", "--pid", "1"), 3, "process 1 belongs to no job"),
        (("B:USR1@60",), 2, "without B and R"),
        (("NONE@60",), 2, "'NONE@60' is not a signal"),
        (("65@60",), 2, "'65@60' is not a signal"),
        (("USR1@70000",), 2, "'USR1@70000' is not a signal"),
        (("USR1@60", "--pid", "0"), 2, "--pid"),
    ],
)
def test_wrong_warning_is_refused(
    cluster: LiveCluster, words: tuple[str, ...], code: int, message: str
) -> None:
    result = cluster.run("warn", *words)
    assert (result.returncode, result.stdout) == (code, "")
    assert message in " ".join(result.stderr.split())


def test_nothing_heavy_is_imported(cluster: LiveCluster) -> None:
    process = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", START, "run", "--", "true"],
        env=cluster.environment, cwd=cluster.home, capture_output=True, text=True, check=True,
    )  # fmt: skip
    imported = {line.split("|")[2].strip() for line in process.stderr.splitlines() if "|" in line}
    # The command is quoted, and counts of TRES are fractions: together 3 ms.
    heavy = FORBIDDEN - {"shlex", "fractions", "decimal"}
    assert imported & heavy - interpreter_modules() == set()
    assert not [name for name in imported if name.startswith(("fairbank.bank", "fairbank.slurm"))]


def rows() -> list[tuple[str, str]]:
    """Return the commands of the table: of task-spooler, and of Fairbank."""
    row = re.compile(r"^\| `(tsp[^`]*)` \| `(fairbank [^`]*)` \|", re.MULTILINE)
    commands = row.findall(PAGE.read_text())
    assert len(commands) > 10
    return commands


def test_table_for_users_of_task_spooler_runs_as_written(cluster: LiveCluster) -> None:
    """JOB is a job that has ended; of --after one that runs, and of cancel one that waits."""
    (cluster.home / "train.py").write_text("print('trained')\n")
    path = f"{Path(FAIRBANK).parent}:{cluster.environment['PATH']}"
    ended = job_of(cluster.run("run", "--wait", "--", "true"))
    for _, command in rows():
        job = ended
        if " cancel " in command:
            job = job_of(cluster.run("run", "--", "sleep", "600"))
        line = command.replace("JOB", job)
        shell = subprocess.run(
            ["bash", "-c", line],
            env={**cluster.environment, "PATH": path},
            cwd=cluster.home, capture_output=True, text=True, check=False, timeout=60,
        )  # fmt: skip
        assert shell.returncode == 0, (line, shell)
