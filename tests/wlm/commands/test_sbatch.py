"""sbatch and srun --batch: what is submitted, what is refused, and what is printed."""

from __future__ import annotations

import io
import os
import re
import stat
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from fairbank.core.errors import FairbankError, Forbidden, InvalidInput, NotFound
from fairbank.wlm.commands import job_submission
from fairbank.wlm.commands.job_environment import job_environment
from fairbank.wlm.protocol.commands import SubmitRequest
from fairbank.wlm.protocol.frames import BODY_MAX
from tests.wlm.client.recording_controller import RecordingController
from tests.wlm.commands.conftest import RunCommand

ACCEPTED: dict[str, Any] = {"job": 7, "start": None, "nodes": []}


@pytest.fixture(autouse=True)
def _accept(controller: RecordingController) -> None:
    controller.answer = lambda request: ACCEPTED


def submitted(controller: RecordingController) -> SubmitRequest:
    request = controller.requests[-1]
    assert isinstance(request, SubmitRequest)
    return request


def write_script(text: str, name: str = "job.sh") -> None:
    Path(name).write_text(text)


# ------------------------------------------------------------------ what is submitted


def test_script_is_submitted_with_its_arguments_and_surroundings(
    command: RunCommand, controller: RecordingController, tmp_path: Path
) -> None:
    write_script("#!/bin/sh\necho\n")
    assert command("sbatch", "-c", "4", "job.sh", "-x", "b c") == (0, "Submitted batch job 7\n", "")
    request = submitted(controller)
    assert request.script == b"#!/bin/sh\necho\n"
    assert request.options == {"cpus-per-task": "4"}
    assert request.arguments == ("-x", "b c")
    assert (request.directory, request.script_name) == (str(tmp_path), "job.sh")
    assert request.host == os.uname().nodename
    assert set(request.limits) >= {"NOFILE", "STACK"}


def test_later_source_of_an_option_wins(
    command: RunCommand, controller: RecordingController, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_script("#!/bin/sh\n#SBATCH -p a -A x --time=1\n#SBATCH -J n\ntrue\n#SBATCH -N 9\n")
    monkeypatch.setenv("SBATCH_PARTITION", "b")
    monkeypatch.setenv("SBATCH_ACCOUNT", "y")
    command("sbatch", "-pc", "job.sh")
    assert submitted(controller).options == {
        "partition": "c", "account": "y", "time": "1", "job-name": "n",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ("--mem=1G", "--mem-per-cpu=2G"),
        ("--no-requeue", "--requeue"),
        ("--oversubscribe", "--exclusive"),
        ("--exclusive", "--oversubscribe"),
        ("--nodefile=no-such-file", "--nodelist=n1"),
    ],
)
def test_option_replaces_its_alternative_of_an_earlier_source(
    command: RunCommand, controller: RecordingController, earlier: str, later: str
) -> None:
    write_script(f"#!/bin/sh\n#SBATCH {earlier}\n")
    command("sbatch", later, "job.sh")
    assert list(submitted(controller).options) == [later[2:].partition("=")[0]]


@pytest.mark.parametrize("text", ["cpu:3,gres/gpu:a100:1", "cpu=3,gres/gpu:a100=1"])
def test_tres_of_tasks_replace_cpus_and_gpus_of_an_earlier_source(
    command: RunCommand, controller: RecordingController, text: str
) -> None:
    write_script("#!/bin/sh\n#SBATCH -c 2 --gpus-per-task=4\n")
    assert command("sbatch", "-n2", f"--tres-per-task={text}", "job.sh").code == 0
    requested = {"ntasks": "2", "cpus-per-task": "3", "gpus-per-task": "a100:1"}
    assert submitted(controller).options == requested


def test_command_is_wrapped_in_a_script(
    command: RunCommand, controller: RecordingController
) -> None:
    assert command("sbatch", "--wrap", "echo ä").code == 0
    script = submitted(controller).script.decode()
    assert script.startswith("#!/bin/sh\n")
    assert script.endswith("\necho ä\n")
    assert submitted(controller).script_name == ""


def test_script_comes_from_standard_input(
    command: RunCommand, controller: RecordingController, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = b"#!/bin/sh\n#SBATCH -N 2\n"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(script)))
    assert command("sbatch").code == 0
    assert submitted(controller).script == script
    assert submitted(controller).options == {"nodes": "2"}


def test_script_is_searched_on_path_after_the_directory(
    command: RunCommand, controller: RecordingController, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("bin").mkdir()
    write_script("#!/bin/sh\n# path\n", "bin/one.sh")
    monkeypatch.setenv("PATH", f"/nowhere:{Path('bin').resolve()}")
    command("sbatch", "one.sh")
    assert submitted(controller).script == b"#!/bin/sh\n# path\n"
    write_script("#!/bin/sh\n# here\n", "one.sh")
    command("sbatch", "one.sh")
    assert submitted(controller).script == b"#!/bin/sh\n# here\n"


def test_hosts_come_from_files(command: RunCommand, controller: RecordingController) -> None:
    Path("hosts").write_text("n1\nn[3-4], n6\n")
    command("sbatch", "-F", "hosts", "-x", "./hosts", "--wrap", "true")
    options = submitted(controller).options
    assert (options["nodelist"], options["exclude"]) == ("n1,n3,n4,n6", "n1,n3,n4,n6")
    assert "nodefile" not in options


def test_host_file_names_the_node_of_each_task(
    command: RunCommand, controller: RecordingController, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("hosts").write_text("# two tasks, one\nn2*2, n1\n")
    monkeypatch.setenv("SLURM_HOSTFILE", "hosts")
    command("sbatch", "--wrap", "true")
    options = submitted(controller).options
    names = ("nodelist", "distribution", "ntasks")
    assert [options[name] for name in names] == ["n2,n2,n1", "arbitrary", "3"]
    command("sbatch", "-n", "2", "--wrap", "true")
    assert submitted(controller).options["nodelist"] == "n2,n2"
    command("sbatch", "-w", "n1", "--wrap", "true")
    assert "distribution" not in submitted(controller).options
    monkeypatch.delenv("SLURM_HOSTFILE")
    monkeypatch.setenv("SLURM_ARBITRARY_NODELIST", "n3,n1")
    command("sbatch", "-m", "arbitrary", "--wrap", "true")
    assert submitted(controller).options["nodelist"] == "n3,n1"


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("n1\n-x\n", "Invalid hostfile ./hosts contents on line 2: '-x'"),
        ("n1*0\n", "Invalid hostfile ./hosts contents on line 1: 'n1*0'"),
        ("# none\n", "Hostlist is empty! ./hosts names no node"),
        ("n1\n", "Too few NodeNames in Slurm Hostfile: ./hosts names 1 for 2 tasks"),
        (None, "Unable to open file ./hosts: No such file or directory"),
    ],
)
def test_host_file_that_cannot_be_used_is_refused(
    command: RunCommand, monkeypatch: pytest.MonkeyPatch, text: str | None, error: str
) -> None:
    if text is not None:
        Path("hosts").write_text(text)
    monkeypatch.setenv("SLURM_HOSTFILE", "hosts")
    result = command("sbatch", "-n", "2", "--wrap", "true")
    assert result.code == 1
    assert error in result.err


def test_option_without_effect_is_named(command: RunCommand) -> None:
    assert command("sbatch", "--network=x", "--wrap", "true").err == (
        "sbatch: --network has no effect\n"
    )
    assert command("sbatch", "-Q", "--network=x", "--wrap", "true").err == ""


# ------------------------------------------------------------------ environment

OWN = {b"A": b"1", b"B": b"\xff", b"SLURM_X": b"s"}


@pytest.mark.parametrize(
    ("export", "expected"),
    [
        (None, {b"A=1", b"B=\xff", b"SLURM_X=s"}),
        ("ALL", {b"A=1", b"B=\xff", b"SLURM_X=s", b"SLURM_EXPORT_ENV=ALL"}),
        ("ALL,A=2", {b"A=2", b"B=\xff", b"SLURM_X=s", b"SLURM_EXPORT_ENV=ALL,A=2"}),
        ("NIL", {b"SLURM_X=s", b"SLURM_EXPORT_ENV=NIL"}),
    ],
)
def test_export_selects_variables(export: str | None, expected: set[bytes]) -> None:
    entries = set(job_environment(OWN, export, from_login=False))
    nice = b"SLURM_PRIO_PROCESS=%d" % os.getpriority(os.PRIO_PROCESS, 0)
    assert entries == {*expected, nice}


@pytest.mark.parametrize(
    ("export", "expected"),
    [
        ("NONE", {b"SLURM_X=s"}),
        ("A,C,D=4", {b"A=1", b"D=4", b"SLURM_X=s"}),
        ("D='4,5',E=\"a=b\"", {b"D=4,5", b"E=a=b", b"SLURM_X=s"}),
    ],
)
def test_listed_variables_are_added_to_those_of_a_login_shell(
    export: str, expected: set[bytes]
) -> None:
    entries = set(job_environment(OWN, export, from_login=False))
    assert expected <= entries
    assert b"SLURM_GET_USER_ENV=1" in entries
    assert any(entry.startswith(b"PATH=") for entry in entries)
    assert b"B=\xff" not in entries
    assert not any(entry.startswith(b"C=") for entry in entries)


def test_user_without_an_account_of_the_host_has_no_login_shell(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 3_999_999_999)
    assert b"SLURM_X=s" in job_environment(OWN, "NONE", from_login=False)


# ------------------------------------------------------------------ what is refused

BAD_SCRIPTS = {
    "empty": (b"", ["Batch script is empty!"]),
    "whitespace": (b" \n\n", ["Batch script contains only whitespace!"]),
    "without-interpreter": (
        b"echo\n",
        [
            "This does not look like a batch script.  The first",
            "line must start with #! followed by the path to an interpreter.",
            "For instance: #!/bin/sh",
        ],
    ),
    "binary": (
        b"#!/bin/sh\n\0",
        ["The Slurm controller does not allow scripts that", "contain a NULL character '\\0'."],
    ),
    "dos": (
        b"#!/bin/sh\r\ntrue\r\n",
        [
            "Batch script contains DOS line breaks (\\r\\n)",
            "instead of expected UNIX line breaks (\\n).",
        ],
    ),
}


@pytest.mark.parametrize("name", BAD_SCRIPTS)
def test_script_that_is_none_is_refused_in_words_of_slurm(
    command: RunCommand, controller: RecordingController, name: str
) -> None:
    content, sentences = BAD_SCRIPTS[name]
    Path("job.sh").write_bytes(content)
    lines = "".join(f"sbatch: error: {sentence}\n" for sentence in sentences)
    result = command("sbatch", "job.sh")
    assert (result.code, result.out) == (1, "")
    assert re.fullmatch(re.escape(lines) + "sbatch: (write|run|convert) .+\n", result.err)
    assert controller.requests == []


def test_controller_alone_limits_the_size_of_a_script(
    command: RunCommand, controller: RecordingController
) -> None:
    write_script("#!/bin/sh\n" + "#" * (8 << 20))
    assert command("sbatch", "job.sh").code == 0
    controller.answer = lambda request: InvalidInput("the script has", field="script", remedy="4")
    code, _, err = command("sbatch", "job.sh")
    assert code == 1
    assert "Pathname of a file, directory or other parameter too long" in err


def test_script_that_no_request_can_carry_is_refused(
    command: RunCommand, controller: RecordingController
) -> None:
    write_script("#!/bin/sh\n" + "#" * BODY_MAX)
    code, _, err = command("sbatch", "job.sh")
    assert (code, f"at most {BODY_MAX} are allowed" in err) == (1, True)
    assert controller.requests == []


BAD_LINES = {
    "missing-file": (["no.sh"], "Unable to open file no.sh"),
    "directory": (["."], "Unable to open file ."),
    "two-sizes": (["--mem=1", "--mem-per-cpu=1", "job.sh"], "mutually exclusive"),
    "refused": (["--x11", "job.sh"], "--x11 is not supported"),
    "gpus": (["--gpus-per-socket=1", "job.sh"], "--gpus-per-socket is not supported"),
    "tasks-of-gpus": (["--ntasks-per-gpu=1", "job.sh"], "--ntasks-per-gpu needs GPUs, or tasks"),
    "tres-of-tasks": (["--tres-per-task=cpu:1,license/x:1", "job.sh"], "only cpu and gres/gpu"),
    "two-counts": (["-c1", "--tres-per-task=cpu:1", "job.sh"], "mutually exclusive"),
    "wrap-and-script": (["--wrap", "true", "job.sh"], "not permitted with --wrap"),
    "no-hosts-file": (["-F", "no", "job.sh"], "Unable to open file no"),
    "encoding": (["job.sh", "\udcff"], "is not UTF-8"),
    "heterogeneous": (["het.sh"], "heterogeneous jobs are not supported"),
    "components": (["-n1", ":", "-n2", "het.sh"], "heterogeneous jobs are not supported"),
}


@pytest.mark.parametrize("name", BAD_LINES)
def test_bad_command_line_is_refused_before_it_is_sent(
    command: RunCommand, controller: RecordingController, name: str
) -> None:
    words, sentence = BAD_LINES[name]
    write_script("#!/bin/sh\n")
    write_script("#!/bin/sh\n#SBATCH -n1\n#SBATCH hetjob\n#SBATCH -n2\n", "het.sh")
    code, out, err = command("sbatch", *words)
    assert (code, out) == (1, "")
    assert err.startswith("sbatch: ")
    assert sentence in err
    assert controller.requests == []


BAD_OPTIONS = {  # exit code and the last lines of Slurm 22.05
    "unknown": ("--no-such job.sh", 255, "unrecognized option '--no-such'"),
    "unknown-letter": ("-Y job.sh", 255, "invalid option -- 'Y'"),
    "ambiguous": ("--par", 255, "option '--par' is ambiguous; possibilities: '--parsable'"),
    "missing-value": ("--time", 255, "option '--time' requires an argument"),
    "missing-value-of-a-letter": ("-t", 255, "option requires an argument -- 't'"),
    "needless-value": ("--hold=3 job.sh", 255, "option '--hold' doesn't allow an argument"),
    "script": ("bad.sh", 255, "unrecognized option '--no-such'"),
    "time": ("-t soon job.sh", 255, "error: Invalid --time specification"),
    "gpu-binding": ("--gpu-bind=near job.sh", 255, "error: Invalid --gpu-bind argument: near"),
    "memory": ("--mem=much job.sh", 255, "error: Invalid --mem specification"),
    "begin": ("-b soon job.sh", 255, "error: Invalid --begin specification"),
    "deadline": ("--deadline=soon job.sh", 255, "error: Invalid --deadline specification"),
    "signal": ("--signal=FOO job.sh", 255, "error: Invalid --signal specification"),
    "nodes": ("-N x job.sh", 255, 'error: "x" is not a valid node count'),
    "named nodes": ("-N 1 -w n[2-3] job.sh", 1, "error: invalid number of nodes (-N 2-1)"),
    "node-range": (
        "-N 4-2 job.sh", 255, "error: Maximum node count 2 is less than minimum node count 4",
    ),
    "count": ("-n 0 job.sh", 1, 'error: Invalid numeric value "0" for --ntasks.'),
    "limits": ("--propagate=FOO job.sh", 1, "error: --propagate=FOO is not valid."),
    "array": (
        "-a x job.sh", 1,
        "error: Batch job submission failed: Invalid job array specification",
    ),
    "dependency": (
        "-d x job.sh", 1, "error: Batch job submission failed: Job dependency problem",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD_OPTIONS)
def test_option_that_cannot_be_read_has_the_line_and_exit_code_of_slurm(
    command: RunCommand, controller: RecordingController, name: str
) -> None:
    words, expected, line = BAD_OPTIONS[name]
    write_script("#!/bin/sh\n")
    write_script("#!/bin/sh\n#SBATCH --no-such\n", "bad.sh")
    code, out, err = command("sbatch", *words.split())
    assert (code, out) == (expected, "")
    last = err.splitlines()[-2 if "--help" in err else -1]
    assert last.startswith(f"sbatch: {line}")
    assert controller.requests == []


@pytest.mark.parametrize("option", ["begin", "deadline"])
def test_time_is_in_the_zone_of_the_user(
    command: RunCommand,
    controller: RecordingController,
    monkeypatch: pytest.MonkeyPatch,
    option: str,
) -> None:
    sent = []
    for zone in ("Asia/Tokyo", "UTC"):
        monkeypatch.setenv("TZ", zone)
        time.tzset()
        command("sbatch", f"--{option}=2030-01-02T03:04:05", "--wrap", "true")
        sent.append(submitted(controller).options[option])
    assert sent == ["@1893521045", "@1893553445"]


REFUSALS = {
    "partition": (NotFound("x", field="partition"), "Invalid partition name specified"),
    "account": (
        Forbidden("x", field="account"),
        "Invalid account or account/partition combination specified",
    ),
    "never": (InvalidInput("x", field="nodes"), "Requested node configuration is not available"),
    "rights": (Forbidden("x", field="priority"), "Access/permission denied"),
    "least-time": (
        InvalidInput("x", field="time-min"),
        "Invalid time-min specification (exceeds job's time or other limits)",
    ),
    "other": (InvalidInput("no task", field="--array"), "Invalid job array specification"),
    "unknown": (InvalidInput("some sentence", field="--zzz"), "some sentence"),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_refusal_of_the_controller_ends_with_the_sentence_of_slurm(
    command: RunCommand, controller: RecordingController, name: str
) -> None:
    error, sentence = REFUSALS[name]
    controller.answer = lambda request: error
    code, out, err = command("sbatch", "--wrap", "true")
    assert (code, out) == (1, "")
    assert err.endswith(f"sbatch: error: Batch job submission failed: {sentence}\n")


def test_remedy_has_a_line_of_its_own_before_the_sentence_of_slurm(
    command: RunCommand, controller: RecordingController
) -> None:
    error = NotFound("there is no partition 'x'", field="partition", remedy="sinfo lists them")
    controller.answer = lambda request: error
    assert command("sbatch", "-p", "x", "--wrap", "true").err == (
        "sbatch: there is no partition 'x'\nsbatch: sinfo lists them\n"
        "sbatch: error: Batch job submission failed: Invalid partition name specified\n"
    )


def test_remedy_follows_a_refusal_that_slurm_does_not_know(
    command: RunCommand, controller: RecordingController
) -> None:
    error: FairbankError = InvalidInput("'x' is not a name", field="--job-name", remedy="write y")
    controller.answer = lambda request: error
    assert command("sbatch", "-J", "x", "--wrap", "true").err == (
        "sbatch: error: Batch job submission failed: 'x' is not a name\nsbatch: write y\n"
    )


def test_controller_that_does_not_run_is_named(
    command: RunCommand, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("FAIRBANK_CLUSTER", str(tmp_path))
    code, _, err = command("sbatch", "--wrap", "true")
    assert code == 1
    assert "fairbank cluster up" in err
    assert "Unable to contact slurm controller (connect failure)" in err


def test_directory_that_is_gone_is_refused(command: RunCommand, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    os.chdir(gone)
    gone.rmdir()
    assert command("sbatch", "--wrap", "true").err.startswith("sbatch: error: getcwd failed")


# ------------------------------------------------------------------ answers


def test_parsable_answer_is_the_number(command: RunCommand) -> None:
    assert command("sbatch", "--parsable", "--wrap", "true").out == "7\n"
    assert command("sbatch", "--parsable", "-M", "c1", "--wrap", "true").out == "7;c1\n"


def test_test_only_prints_the_sentence_of_slurm(
    command: RunCommand, controller: RecordingController, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "UTC")
    answer = {"job": 7, "start": 0, "nodes": ["n1", "n2"], "cpus": 4, "partition": "main"}
    controller.answer = lambda request: answer
    assert command("sbatch", "--test-only", "--wrap", "true") == (
        0,
        "",
        "sbatch: Job 7 to start at 1970-01-01T00:00:00 using 4 processors on nodes n[1-2] in"
        " partition main\n",
    )
    controller.answer = lambda request: ACCEPTED
    assert command("sbatch", "--test-only", "--wrap", "true").code == 1


@pytest.mark.parametrize(("status", "code"), [(0, 0), (3 << 8, 3), (9, 1)])
def test_wait_ends_with_the_exit_code_of_the_job(
    command: RunCommand, controller: RecordingController, status: int, code: int
) -> None:
    controller.answer = lambda request: (
        ACCEPTED if isinstance(request, SubmitRequest) else {"status": status}
    )
    assert command("sbatch", "-W", "--wrap", "true")[:2] == (code, "Submitted batch job 7\n")


def test_wait_goes_on_after_a_restart_of_the_controller(
    command: RunCommand, controller: RecordingController, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_submission, "RETRY_SECONDS", 0.0)
    answers = [ACCEPTED, None, None, {"status": 5 << 8}]
    controller.answer = lambda request: answers.pop(0)
    code, _, err = command("sbatch", "--wait", "--wrap", "true")
    assert code == 5
    assert err.count("retrying") == 1


# ------------------------------------------------------------------ srun


def test_srun_batch_runs_a_program_as_a_step(
    command: RunCommand, controller: RecordingController
) -> None:
    Path("mping").write_bytes(b"\x7fELF")
    assert command("srun", "--batch", "--nodes", "2", "--nprocs", "2", "./mping", "1", "-x") == (
        0,
        "",
        "srun: Job 7 has been submitted\n",
    )
    request = submitted(controller)
    assert request.script == b'#!/bin/sh\nexec srun "$@"\n'
    assert request.arguments == ("./mping", "1", "-x")
    assert request.options == {"batch": "", "nodes": "2", "ntasks": "2"}
    assert (request.command, request.script_name) == ("srun", "./mping")


def test_srun_batch_submits_a_script_as_it_is(
    command: RunCommand, controller: RecordingController
) -> None:
    write_script("#!/bin/sh\n#SBATCH -N 9\n")
    command("srun", "--batch", "job.sh", "a")
    assert submitted(controller).script == b"#!/bin/sh\n#SBATCH -N 9\n"
    assert submitted(controller).arguments == ("a",)
    assert submitted(controller).options == {"batch": ""}


def test_srun_says_that_a_request_will_never_run(
    command: RunCommand, controller: RecordingController
) -> None:
    error: FairbankError = InvalidInput("too many nodes", field="nodes")
    controller.answer = lambda request: error
    write_script("#!/bin/sh\n")
    code, _, err = command("srun", "--batch", "job.sh")
    assert code == 1
    assert err.startswith("srun: request will never run\nsrun: too many nodes\n")


def test_umask_is_sent_and_unchanged(command: RunCommand, controller: RecordingController) -> None:
    before = os.umask(0o027)
    try:
        command("sbatch", "--wrap", "true")
        assert submitted(controller).umask == 0o027
        Path("file").touch()
        assert stat.S_IMODE(Path("file").stat().st_mode) == 0o640
    finally:
        os.umask(before)
