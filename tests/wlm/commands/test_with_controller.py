"""Commands that change jobs and nodes, with the real controller and a node daemon."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from fairbank.wlm.client import requests
from fairbank.wlm.client.connection import Controller
from tests.support.conditions import wait_until
from tests.wlm.commands.conftest import RunCommand
from tests.wlm.controller.small_cluster import SmallCluster

OUTPUT = "--output=out"


@pytest.fixture
def cluster_directory(cluster: SmallCluster) -> Path:
    return cluster.directory


def submit(command: RunCommand, *words: str, script: str = "sleep 300") -> str:
    code, out, err = command("sbatch", "--parsable", *words, "--wrap", script)
    assert code == 0, err
    return out.strip()


def states(job: str) -> dict[str, str]:
    """Return the state of each task of a job that squeue would show, by its name."""
    with Controller() as controller:
        columns = ["job_id", "task", "state", "flag", "reason"]
        lines = requests.rows(controller, "jobs", columns, matching={"jobs": [job]})
    return {
        f"{number}" if task is None else f"{job}_{task}": f"{state} {flag or reason}"
        for number, task, state, flag, reason in lines.rows or ()
    }


def wait_for(job: str, state: str) -> None:
    wait_until(lambda: all(text.startswith(state) for text in states(job).values()), state)


# ------------------------------------------------------------------ sbatch


def test_script_runs_with_options_arguments_and_environment(
    command: RunCommand, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("GREETING", "hello")
    Path("job.sh").write_text(
        "#!/bin/sh\n#SBATCH -J named -o %x-%j.txt\n"
        'echo "$1|$2|$GREETING|$SLURM_JOB_NAME|$PWD|$(umask)"\n'
    )
    before = os.umask(0o027)
    try:
        code, out, err = command("sbatch", "--wait", "job.sh", "a b", "-c")
    finally:
        os.umask(before)
    assert (code, err) == (0, "")
    number = out.split()[-1]
    lines = (tmp_path / f"named-{number}.txt").read_text()
    assert lines == f"a b|-c|hello|named|{tmp_path}|0027\n"


def test_wait_ends_with_the_exit_code_of_the_job(command: RunCommand) -> None:
    assert command("sbatch", "-W", OUTPUT, "--wrap", "exit 3").code == 3
    assert command("sbatch", "-W", OUTPUT, "--wrap", "kill -TERM $$").code == 1
    script = "exit $SLURM_ARRAY_TASK_ID"
    assert command("sbatch", "-W", OUTPUT, "-a", "0-2", "--wrap", script).code == 2


@pytest.mark.parametrize(
    ("script", "status", "shown"),
    [("#!/bin/sh\n#SBATCH -o /\n", 1, "FAILED|0:53"), ("#!/no/interpreter\n", 2, "FAILED|2:0")],
)
def test_job_whose_files_cannot_be_opened_fails_as_in_slurm(
    command: RunCommand, script: str, status: int, shown: str
) -> None:
    Path("job.sh").write_text(script)
    code, out, _ = command("sbatch", "--wait", "job.sh")
    assert code == status
    assert command("sacct", "-nXPj", out.split()[-1], "-o", "State,ExitCode").out == f"{shown}\n"


def test_accounting_has_the_submission_the_reason_and_single_steps(command: RunCommand) -> None:
    Path("job.sh").write_text("#!/bin/sh\n")
    job = command("sbatch", "--hold", OUTPUT, "job.sh", "a b").out.split()[-1]
    assert (
        f"Command={Path('job.sh').resolve()} a b\n"
        in command("scontrol", "show", f"jobid={job}").out
    )
    columns = "-oJobID,AllocCPUS,Reason,Eligible,SubmitLine"
    assert command("sacct", "-nPj", job, columns).out == (
        f"{job}|0|JobHeldUser|Unknown|sbatch --hold {OUTPUT} job.sh a b\n"
    )
    command("scontrol", "release", job)
    wait_until(lambda: "COMPLETED" in command("sacct", "-nXPj", job, "-oState").out, "the end")
    assert (
        command("sacct", "-nPj", f"{job}.batch", "-oJobID,State").out == f"{job}.batch|COMPLETED\n"
    )
    assert command("sacct", "-nXPj", job, "-oReason").out == "JobHeldUser\n"
    assert command("scancel", "-v", job).err.endswith("Job/step already completing or completed\n")


def test_held_job_that_is_cancelled_shows_why_it_waited(command: RunCommand) -> None:
    job = command("sbatch", "--hold", "--wrap", "true").out.split()[-1]
    assert command("scancel", "-s", "USR1", job).code == 228
    assert command("scancel", job).code == 0
    shown = command("scontrol", "-o", "show", "job", job).out
    for field in ("Priority=0", "JobState=CANCELLED Reason=JobHeldUser", "NumTasks=N/A"):
        assert f"{field} " in shown
    assert command("sacct", "-nXPj", job, "-oStart,AllocCPUS").out == "None|0\n"


def test_export_chooses_the_environment(
    command: RunCommand, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("KEPT", "1")
    monkeypatch.setenv("LEFT_OUT", "1")
    script = "env | grep -c -e ^KEPT=1$ -e ^LEFT_OUT= -e ^ADDED=2,3$"
    assert command("sbatch", "-W", OUTPUT, "--export=KEPT,ADDED='2,3'", "--wrap", script).code == 0
    assert (tmp_path / "out").read_text() == "2\n"


def test_test_only_submits_nothing(command: RunCommand) -> None:
    code, out, err = command("sbatch", "--test-only", "--wrap", "true")
    assert (code, out) == (0, "")
    assert re.search(r" using 1 processors on nodes n[12] in partition main\n", err)
    assert states(err.split()[2]) == {}


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("-p nope", "Invalid partition name specified"),
        ("-c 100", "Requested node configuration is not available"),
        ("-N 3", "Requested node configuration is not available"),
        ("--reservation nope", "Requested reservation is invalid"),
        ("-q nope", "Invalid qos specification"),
        ("-d afterok:999", "Job dependency problem"),
        ("-L nope:1", "Invalid license specification"),
        ("-a 1-5000", "Invalid job array specification"),
        ("-C nope", "Invalid feature specification"),
        ("-w nope", "Invalid node name specified"),
    ],
    ids=[
        "partition", "cpus", "nodes", "reservation", "qos", "dependency", "license", "array",
        "feature", "node",
    ],
)  # fmt: skip
def test_request_that_cannot_be_is_refused_in_words_of_slurm(
    command: RunCommand, words: str, sentence: str
) -> None:
    code, out, err = command("sbatch", *words.split(), "--wrap", "true")
    assert (code, out) == (1, "")
    assert f"sbatch: error: Batch job submission failed: {sentence}\n" in err


@pytest.mark.parametrize(
    "name", ["a\nb", "a\x1b[31m", "a\u202eb", "n" * 300], ids=["line", "control", "rtl", "long"]
)
def test_name_that_would_break_tables_is_refused(command: RunCommand, name: str) -> None:
    code, out, err = command("sbatch", "-J", name, "--wrap", "true")
    assert (code, out) == (1, "")
    assert "is not the name of a job\nsbatch: printable characters, at most 255 bytes" in err


def test_name_with_a_pipe_is_one_cell(command: RunCommand) -> None:
    job = submit(command, "-H", "-J", "a|b")
    assert command("squeue", "-h", "-j", job, "-o", "%i %j %t").out == f"{job} a|b PD\n"


def test_variables_of_loaders_and_of_slurm_reach_only_the_script(
    command: RunCommand, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Neither a daemon nor the step daemon loads what the user's variables name."""
    (tmp_path / "sitecustomize.py").write_text(f"open({str(tmp_path / 'loaded')!r}, 'w')\n")
    (tmp_path / "start.sh").write_text(f"echo $0 >> {tmp_path}/sourced\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("BASH_ENV", str(tmp_path / "start.sh"))
    monkeypatch.setenv("LD_PRELOAD", "/no/library.so")
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    script = 'echo "$PYTHONPATH $BASH_ENV $LD_PRELOAD $SLURM_JOB_ID"'
    code, out, _ = command("sbatch", "-W", "-o", "out", "-e", "/dev/null", "--wrap", script)
    assert code == 0
    (job,) = out.split()[-1:]
    expected = f"{tmp_path} {tmp_path}/start.sh /no/library.so {job}\n"
    assert (tmp_path / "out").read_text() == expected
    assert not (tmp_path / "loaded").exists()
    assert not (tmp_path / "sourced").exists()


def test_100_000_variables_reach_the_script(cluster: SmallCluster, tmp_path: Path) -> None:
    result = subprocess.run(
        [sys.executable, "-m", "fairbank.wlm.commands", "sbatch", "-W", OUTPUT, "--wrap", "env"],
        env={f"V{number}": "" for number in range(100_000)}
        | {"FAIRBANK_CLUSTER": str(cluster.directory), "PATH": os.environ["PATH"]},
        cwd=tmp_path,
        check=False,
    )
    assert result.returncode == 0
    lines = (tmp_path / "out").read_text().splitlines()
    assert sum(line.startswith("V") for line in lines) == 100_000


def test_variable_above_128_kib_is_refused(
    command: RunCommand, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LARGE", "x" * (1 << 18))
    code, out, err = command("sbatch", "-W", "--wrap", "true")
    assert (code, out) == (1, "")
    assert "a variable or argument has 262,150 bytes\nsbatch: at most 131,072 bytes\n" in err
    monkeypatch.delenv("LARGE")
    assert command("sbatch", "-W", OUTPUT, "--wrap", "true").code == 0


def test_user_without_a_home_runs_jobs(
    command: RunCommand, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("HOME")
    assert command("sbatch", "-W", OUTPUT, "--wrap", "echo ${HOME-none}").code == 0
    assert (tmp_path / "out").read_text() == "none\n"


@pytest.mark.parametrize("kind", ["directory", "link", "fifo", "full", "below a file"])
def test_output_that_cannot_be_written_fails_the_job(
    command: RunCommand, tmp_path: Path, kind: str
) -> None:
    place = tmp_path / "place"
    if kind == "directory":
        place.mkdir()
    elif kind == "link":
        place.symlink_to("/etc/passwd")
    elif kind == "fifo":
        os.mkfifo(place)
    elif kind == "full":
        place = Path("/dev/full")
    else:
        place.touch()
        place = place / "out"
    code, out, _ = command("sbatch", "-W", "-o", str(place), "--wrap", "echo text")
    assert code == 1
    number = out.split()[-1]
    end = command("sacct", "-nXPj", number, "-o", "State,ExitCode,SystemComment").out.strip()
    # On a full disk the script has begun, and decides itself.
    if kind == "full":
        assert end == "FAILED|1:0|"
        return
    assert end.startswith(f"FAILED|0:53|cannot open the output {place}: ")
    comment = end.rpartition("|")[2]
    assert f"SystemComment={comment} \n" in command("scontrol", "show", "job", number).out


def test_job_whose_step_daemon_was_killed_has_failed_by_the_system_and_says_why(
    command: RunCommand, tmp_path: Path
) -> None:
    job = submit(command, OUTPUT, script="echo $PPID > pid; mv pid daemon; exec sleep 300")
    wait_until((tmp_path / "daemon").exists, "the script")
    os.kill(int((tmp_path / "daemon").read_text()), signal.SIGKILL)
    wait_for(job, "FAILED SystemFailure")
    text = command("scontrol", "show", "job", job).out
    comment = "the step daemon was killed, and its processes were ended"
    assert "JobState=FAILED Reason=SystemFailure " in text
    assert f"SystemComment={comment} \n" in text
    rows = command("sacct", "-nPj", job, "-o", "State,ExitCode,SystemComment").out.splitlines()
    assert rows == [f"FAILED|0:9|{comment}", "FAILED|0:9|"]


def test_missing_directory_of_an_output_file_is_created(
    command: RunCommand, tmp_path: Path
) -> None:
    options = ("-o", "logs/%j/out", "-e", f"{tmp_path}/errors/err")
    code, out, _ = command("sbatch", "-W", *options, "--wrap", "echo text; echo error >&2")
    assert code == 0
    assert (tmp_path / "logs" / out.split()[-1] / "out").read_text() == "text\n"
    assert (tmp_path / "errors" / "err").read_text() == "error\n"


# ------------------------------------------------------------------ scancel, scontrol


def test_jobs_are_cancelled_by_name_state_and_task(command: RunCommand) -> None:
    array = submit(command, OUTPUT, "-H", "-a", "1-5")
    assert command("scancel", f"{array}_[2-3,5]") == (0, "", "")
    remaining = {name for name, text in states(array).items() if text.startswith("PENDING")}
    assert remaining <= {array, f"{array}_1", f"{array}_4"}
    job = submit(command, OUTPUT, "-J", "one")
    assert command("scontrol", "wait_job", job) == (0, "", "")
    assert command("scancel", "-n", "one", "-t", "PENDING") == (0, "", "")
    assert states(job)[job].startswith("RUNNING")
    assert command("scancel", "-n", "one") == (0, "", "")
    assert command("scancel", array) == (0, "", "")
    wait_for(job, "CANCELLED")
    # Slurm's scancel has no error for a job that has ended.
    assert command("scancel", job) == (0, "", "")
    assert command("scontrol", "wait_job", job).code == 1


def test_unknown_job_is_refused(command: RunCommand) -> None:
    for words, last in (
        (["scancel", "-b", "999"], "scancel: error: Kill job error on job id 999: "),
        (["scontrol", "hold", "999"], ""),
        (["scontrol", "update", "JobId=999", "TimeLimit=5"], ""),
    ):
        code, _, err = command(*words)
        assert code == 1
        sentence = "Invalid job id specified" + ("" if last else " for job 999")
        assert err.endswith(f"{last}{sentence}\n")


def test_signal_reaches_the_script(command: RunCommand, tmp_path: Path) -> None:
    script = "trap 'echo got it; exit 0' USR1; touch ready; while :; do sleep 0.05; done"
    job = submit(command, OUTPUT, script=script)
    wait_until((tmp_path / "ready").exists, "the script")
    assert command("scancel", "-b", "-s", "USR1", job) == (0, "", "")
    wait_for(job, "COMPLETED")
    assert (tmp_path / "out").read_text() == "got it\n"


def test_job_is_held_updated_released_and_requeued(command: RunCommand) -> None:
    job = submit(command, OUTPUT, "-H", "-t", "5")
    assert states(job)[job] == "PENDING JobHeldUser"
    assert command("scontrol", "update", f"JobId={job}", "TimeLimit=+10", "JobName=new").code == 0
    assert command("scontrol", "release", job).code == 0
    assert command("scontrol", "wait_job", job).code == 0
    code, _, err = command("scontrol", "top", job)
    assert (code, err.splitlines()[-1]) == (1, f"Job is no longer pending execution for job {job}")
    assert command("scontrol", "requeuehold", "State=SpecialExit", job).code == 0
    wait_for(job, "PENDING SPECIAL_EXIT")
    assert command("scancel", job).code == 0


def test_script_of_a_job_is_written_as_it_was_submitted(
    command: RunCommand, tmp_path: Path
) -> None:
    content = b"#!/bin/sh\n# \xff\ntrue\n"
    Path("job.sh").write_bytes(content)
    number = command("sbatch", "--parsable", "-H", "job.sh").out.strip()
    assert command("scontrol", "write", "batch_script", number, "copy").code == 0
    assert (tmp_path / "copy").read_bytes() == content
    command("scancel", number)


def test_processes_of_a_job_are_shown(command: RunCommand, tmp_path: Path) -> None:
    job = submit(command, OUTPUT, script="sleep 300 & echo $$ > pid; exec sleep 300")
    wait_for(job, "RUNNING None")
    wait_until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text(), "the pid")
    pid = (tmp_path / "pid").read_text().strip()
    rows = [line.split() for line in command("scontrol", "listpids", job).out.splitlines()]
    assert [row[1:] for row in rows[1:]] == [[job, "batch", "0", "0"], [job, "batch", "-", "-"]]
    assert rows[1][0] == pid
    assert command("scontrol", "listpids").out == command("scontrol", "listpids", job).out
    assert command("scontrol", "pidinfo", pid).out.startswith(f"Slurm job id {job} ends at ")
    assert command("scontrol", "pidinfo", str(os.getpid())).code == 1
    command("scancel", job)


def test_node_is_drained_and_resumed(command: RunCommand) -> None:
    assert command("scontrol", "update", "NodeName=n2", "State=DRAIN").code == 1
    assert command("scontrol", "update", "NodeName=n2", "State=DRAIN", "Reason=disk").code == 0
    assert command("sinfo", "-h", "-n", "n2", "-o", "%T %E").out == "drained disk\n"
    assert command("scontrol", "update", "NodeName=n2", "State=RESUME").code == 0
    assert command("sinfo", "-h", "-n", "n2", "-o", "%T %E").out == "idle none\n"
    code, _, err = command("scontrol", "update", "NodeName=n9", "State=RESUME")
    assert code == 1
    assert err.endswith("slurm_update error: Invalid node name specified\n")


def test_partition_and_reservation_are_created_changed_and_deleted(command: RunCommand) -> None:
    assert command("scontrol", "create", "PartitionName=p", "Nodes=n2").code == 0
    assert command("scontrol", "update", "PartitionName=p", "State=DOWN").code == 0
    assert command("sinfo", "-h", "-p", "p", "-o", "%a").out == "down\n"
    assert command("scontrol", "delete", "PartitionName=p") == (0, "", "")
    fields = "StartTime=now+1hour Duration=60 Users=root Nodes=n2".split()
    assert command("scontrol", "create", "ReservationName=r", *fields) == (
        0,
        "Reservation created: r\n",
        "",
    )
    assert command("scontrol", "update", "ReservationName=r", "Duration=90").code == 0
    assert "Duration=01:30:00" in command("scontrol", "show", "reservation", "r").out
    assert command("scontrol", "delete", "ReservationName=r") == (0, "", "")
    code, _, err = command("scontrol", "delete", "ReservationName=r")
    assert code == 1
    assert err.endswith("Requested reservation is invalid\n")


def test_settings_are_read_again(command: RunCommand, cluster: SmallCluster) -> None:
    assert command("scontrol", "ping").out.endswith(" is UP\n")
    assert command("scontrol", "reconfigure").code == 0
    good = cluster.settings.read_text()
    cluster.settings.write_text(good + "\n[unknown]\nkey = 1\n")
    try:
        code, _, err = command("scontrol", "reconfigure")
    finally:
        cluster.settings.write_text(good)
    assert code == 1
    assert "unknown" in err
