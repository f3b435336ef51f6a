"""Program of the commands: links, help, versions, unknown names, and what is imported."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import ForwardRef

import pytest

from fairbank.wlm.commands.program import ABSENT, MODULES
from tests.wlm.commands.conftest import RunCommand

# Nothing else of Fairbank, and none of what makes a start slow.
ALLOWED = (
    "fairbank.client_file",
    "fairbank.core",
    "fairbank.report",
    "fairbank.unix_users",
    "fairbank.wlm.client",
    "fairbank.wlm.commands",
)
FRAMES = {"fairbank", "fairbank.wlm", "fairbank.wlm.protocol", "fairbank.wlm.protocol.frames"}
SLOW = {"argparse", "asyncio", "inspect", "msgspec", "numpy", "pathlib", "subprocess"}
MODULES_MAX = 95
START = "from fairbank.wlm.commands.program import main; main()"
LINES = {
    "sbatch": ["--wrap", "true"],
    "srun": ["--batch", "true"],
    "scancel": ["7"],
    "scontrol": ["hold", "7"],
    "seff": ["7"],
    "sacct": [],
    "sacctmgr": ["show", "qos"],
    "sdiag": [],
    "sinfo": [],
    "sprio": [],
    "squeue": [],
    "sshare": [],
    "sstat": ["-j", "7"],
}


def imported(name: str, words: Sequence[str], cluster: Path, **variables: str) -> list[str]:
    """Return the modules that a command imports until it misses the controller."""
    code = (
        "import sys; before = set(sys.modules);"
        "from fairbank.wlm.commands.program import run;"
        f"run({name!r}, {words!r});"
        "print(*sorted(set(sys.modules) - before))"
    )
    environment = {**os.environ, "FAIRBANK_CLUSTER": str(cluster), **variables}
    words = [sys.executable, "-c", code]
    pipe = subprocess.PIPE
    with subprocess.Popen(words, env=environment, stdout=pipe, stderr=pipe, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        errors = process.stderr.readline()
        if errors.endswith("retrying\n"):
            process.terminate()  # srun asks again until a signal comes
        errors += process.stderr.read()
        assert "no answer from the controller" in errors
        return process.stdout.read().split()


@pytest.mark.parametrize("name", LINES)
def test_command_imports_little(name: str, tmp_path: Path) -> None:
    modules = imported(name, LINES[name], tmp_path)
    own = {module for module in modules if module.partition(".")[0] == "fairbank"}
    assert [module for module in own - FRAMES if not module.startswith(ALLOWED)] == []
    assert SLOW.intersection(modules) == set()
    assert len(modules) <= MODULES_MAX


@pytest.mark.parametrize("name", LINES)
def test_fields_of_tuples_are_types_and_no_text_that_python_would_compile(
    name: str, tmp_path: Path
) -> None:
    modules = map(import_module, imported(name, LINES[name], tmp_path))
    values = [value for module in modules for value in vars(module).values()]
    tuples = [one for one in values if isinstance(one, type) and hasattr(one, "_fields")]
    assert tuples
    assert [one for one in tuples if ForwardRef in map(type, one.__annotations__.values())] == []


def test_srun_within_a_job_imports_no_parser_of_other_options(tmp_path: Path) -> None:
    words = ["-n", "1", "--exact", "true"]
    modules = imported("srun", words, tmp_path, SLURM_JOB_ID="7", SLURM_MEM_PER_CPU="100")
    assert {"datetime", "fractions", "shlex", "shutil"}.intersection(modules) == set()


def test_link_runs_the_command_of_its_name(tmp_path: Path) -> None:
    program = tmp_path / "fairbank-slurm"
    program.write_text(f"#!{sys.executable}\n{START}\n")
    program.chmod(0o755)
    (tmp_path / "scancel").symlink_to(program)
    for words in (["scancel", "-V"], ["fairbank-slurm", "scancel", "--version"]):
        process = subprocess.run(
            [str(tmp_path / words[0]), *words[1:]], capture_output=True, text=True, check=True
        )
        assert process.stdout == "slurm-fairbank 24.11.0\n"


@pytest.mark.parametrize("name", MODULES)
def test_each_command_has_help_usage_and_version(command: RunCommand, name: str) -> None:
    code, out, err = command(name, "--help")
    assert (code, err) == (0, "")
    assert out.startswith(f"Usage: {name} ")
    assert "--help" in out
    assert command(name, "--usage").out.startswith(f"Usage: {name} ")
    assert command(name, "-V") == (0, "slurm-fairbank 24.11.0\n", "")


def test_unknown_name_is_refused_with_the_names(command: RunCommand) -> None:
    code, _, err = command("salloc2")
    assert code == 1
    assert "no command 'salloc2': " in err
    assert "sbatch, sbcast, scancel, " in err


def test_output_on_a_full_disk_is_an_error_in_one_line() -> None:
    with Path("/dev/full").open("w") as full:
        process = subprocess.run(
            [sys.executable, "-m", "fairbank.wlm.commands", "sbatch", "--help"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert process.returncode == 1
    assert process.stderr == "sbatch: error: No space left on device\n"


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_standard_file_is_like_dev_null_but_takes_no_output(closed: str) -> None:
    words = f"{sys.executable} -m fairbank.wlm.commands sbatch --help {closed}"
    process = subprocess.run(["sh", "-c", words], capture_output=True, text=True, check=False)
    has_output = ">&-" not in closed.split()
    has_error = not has_output and "2>&-" not in closed
    assert process.returncode == (0 if has_output else 1)
    assert process.stderr == ("sbatch: error: Bad file descriptor\n" if has_error else "")
    assert process.stdout.startswith("Usage: sbatch ") == has_output


def test_reader_that_ends_early_leaves_no_traceback(tmp_path: Path) -> None:
    line = (
        f"{sys.executable} -m fairbank.wlm.commands sbatch --help | true; exit ${{PIPESTATUS[0]}}"
    )
    process = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False)
    assert "Traceback" not in process.stderr


@pytest.mark.parametrize("name", ABSENT)
def test_command_that_is_absent_says_so(command: RunCommand, name: str) -> None:
    code, out, err = command(name, "-n", "1")
    assert (code, out) == (1, "")
    assert err.startswith(f"{name}: error: {name} is not supported: ")
