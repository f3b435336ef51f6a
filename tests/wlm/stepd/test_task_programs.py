"""TaskProlog and TaskEpilog: what they change, and what their failures do."""

from __future__ import annotations

from pathlib import Path

from fairbank.wlm.protocol.frames import ERRORS, OUTPUT
from fairbank.wlm.stepd.step import StepTask
from tests.wlm.stepd.conftest import StartStep
from tests.wlm.stepd.reader import Reader


def program(folder: Path, name: str, script: str) -> str:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o700)
    return str(path)


def test_prolog_changes_environment_and_output_of_each_task(
    start_step: StartStep, tmp_path: Path
) -> None:
    lines = "echo export X=$SLURM_PROCID; echo unset HOME; echo print hello; echo other"
    prologs = [program(tmp_path, "first", lines), program(tmp_path, "second", "echo print $X")]
    tasks = [StepTask(0), StepTask(1)]
    step = start_step("echo $X ${HOME-none}", input="", output="", tasks=tasks, prologs=prologs)
    with Reader(step, credit=1_000) as reader:
        reader.receive_all()
    assert reader.output[OUTPUT, 0] == b"hello\n0\n0 none\n"
    assert reader.output[OUTPUT, 1] == b"hello\n1\n1 none\n"


def test_failed_prolog_ends_its_task_with_its_exit_code(
    start_step: StartStep, tmp_path: Path
) -> None:
    prologs = [program(tmp_path, "prolog", "exit 5")]
    tasks = [StepTask(0)]
    step = start_step("echo never", input="", output="", tasks=tasks, prologs=prologs)
    with Reader(step, credit=1_000) as reader:
        reader.receive_all()
    assert reader.exits == {0: 5 << 8}
    assert (OUTPUT, 0) not in reader.output or reader.output[OUTPUT, 0] == b""
    assert reader.output[ERRORS, 0].endswith(b"failed status=5\n")


def test_missing_prolog_is_named(start_step: StartStep) -> None:
    tasks = [StepTask(0)]
    step = start_step("echo never", input="", output="", tasks=tasks, prologs=["/no/such"])
    with Reader(step, credit=1_000) as reader:
        reader.receive_all()
    assert reader.exits == {0: 1 << 8}
    assert b"/no/such cannot be executed: No such file" in reader.output[ERRORS, 0]


def test_task_that_cannot_be_prepared_after_its_prolog_fails(
    start_step: StartStep, tmp_path: Path
) -> None:
    prologs = [program(tmp_path, "prolog", r"printf 'export X=a\000b\n'")]
    tasks = [StepTask(0)]
    step = start_step("echo never", input="", output="", tasks=tasks, prologs=prologs)
    with Reader(step, credit=1_000) as reader:
        reader.receive_all()
    assert reader.exits == {0: 2 << 8}
    line = b"slurmstepd: error: cannot prepare the script: embedded null byte\n"
    assert reader.output[ERRORS, 0] == line


def test_task_with_a_prolog_and_a_full_disk_fails(start_step: StartStep, tmp_path: Path) -> None:
    prologs = [program(tmp_path, "prolog", "exit 0")]
    step = start_step("echo never", output="/dev/full", shows_cpus=True, prologs=prologs)
    assert step.wait().status == 2 << 8


def test_hanging_prolog_can_be_ended(start_step: StartStep, tmp_path: Path) -> None:
    prologs = [program(tmp_path, "prolog", "exec sleep 600")]
    step = start_step("echo never", prologs=prologs)
    step.end("CANCELLED")
    assert step.wait().reason == "CANCELLED"


def test_epilog_runs_after_each_task_and_its_failure_is_said(
    start_step: StartStep, tmp_path: Path
) -> None:
    note = f"echo $SLURM_PROCID >> {tmp_path}/seen; sleep 0.2; echo late >> {tmp_path}/seen; exit 3"
    epilogs = [program(tmp_path, "epilog", note)]
    output = tmp_path / "out"
    tasks = [StepTask(0), StepTask(1)]
    step = start_step("exit 4", output=str(output), tasks=tasks, epilogs=epilogs)
    end = step.wait()
    assert end.status == 4 << 8
    assert sorted((tmp_path / "seen").read_text().split()) == ["0", "1", "late", "late"]
    assert output.read_text() == "slurmstepd: error: TaskEpilog failed status=3\n" * 2
