"""Examples 1.4 and 1.5 of the SLURM report of 2002: mping, as a batch job and interactively."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.support.conditions import wait_until
from tests.wlm.commands.shell import Shell

MPING = (sys.executable, str(Path(__file__).with_name("ping_program.py")), "1", "1048576")
SIZES = [2**power for power in range(21)]


def pinged(lines: Sequence[str]) -> list[int]:
    """Return the sizes of the messages in the output of mping."""
    pattern = r"1 pinged 0: +(\d+) bytes +[\d.]+ uSec +[\d.]+ MB/s"
    matches = [re.fullmatch(pattern, line) for line in lines]
    assert None not in matches, lines
    return [int(match[1]) for match in matches if match]


def test_batch_job_of_the_report_runs_its_program_as_a_step(shell: Shell) -> None:
    code, out, err = shell.run("srun", "--batch", "--nodes", "2", "--nprocs", "2", *MPING)
    assert (code, out) == (0, [])
    number = re.fullmatch(r"srun: Job (\d+) has been submitted", err[-1])
    assert number, err
    output = shell.directory / f"slurm-{number[1]}.out"
    wait_until(lambda: output.exists() and output.read_text().count("\n") == len(SIZES), "mping")
    assert pinged(output.read_text().splitlines()) == SIZES


def test_arguments_of_a_batch_program_keep_their_blanks(shell: Shell) -> None:
    code, out, err = shell.run("srun", "--batch", "-o", "out", "printf", "%s;", "a b", "c")
    assert (code, out, err[-1].endswith(" has been submitted")) == (0, [], True)
    output = shell.directory / "out"
    wait_until(lambda: output.exists() and output.read_text() == "a b;c;", "the output")


def test_interactive_job_of_the_report_shows_the_output_of_its_program(shell: Shell) -> None:
    code, out, err = shell.run("srun", "--nodes", "2", "--nprocs", "2", *MPING)
    assert (code, err) == (0, [])
    assert pinged(out) == SIZES
