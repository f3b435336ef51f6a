"""Batch scripts of `fairbank run`: the shell passes every argument on as it was typed."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairbank.cli import main
from fairbank.cli.commands.queue.run import batch_script
from tests.cli.conftest import runner

ARGUMENTS = st.lists(st.binary(max_size=8).filter(lambda text: b"\0" not in text), max_size=4)
AWKWARD = [b"", b" a  b ", b"it's", b'"', b"$HOME `id` \\", b"a\r\nb", b"\n#SBATCH -n 9\n", b"\xff"]


@given(arguments=ARGUMENTS)
def test_script_passes_any_argument_on(arguments: list[bytes]) -> None:
    words = [*AWKWARD, *arguments, b"\r\n\r\n", b"-x", b"--"]
    script = batch_script(["printf", r"%s\0", *map(os.fsdecode, words)])
    assert b"\r\n" not in script, "sbatch takes it for a script from DOS"
    shell = subprocess.run(["/bin/sh"], input=script, capture_output=True, check=True)
    assert shell.stdout == b"\0".join(words) + b"\0"


def test_without_a_cluster_and_a_slurm_the_error_names_the_way_to_one(
    clean_env: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    clean_env.setenv("PATH", str(tmp_path))
    clean_env.setenv("HOME", str(tmp_path))
    clean_env.delenv("FAIRBANK_CLUSTER", raising=False)
    clean_env.delenv("XDG_STATE_HOME", raising=False)
    result = runner(main.run, capsys)("run", "--", "true")
    assert (result.code, "start a queue on this host: fairbank cluster up" in result.err) == (
        3,
        True,
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("run",), "there is no command to run"),
        (("run", "--"), "there is no command to run"),
        (("run", "--", "-x"), "'-x' is no command"),
        (("run", "true"), "has no argument 'true'"),
        (("run", "-t", "0h", "--", "true"), "'0h' is not a finite time limit"),
        (("run", "-t", "9" * 30 + "h", "--", "true"), "is not a finite time limit"),
        (("run", "--after", "7_", "--", "true"), "'7_' is not a job"),
        (("cancel",), "arguments are required: JOB"),
        (("wait", "0"), "'0' is not a job"),
    ],
    ids=lambda value: " ".join(value)[:30] if isinstance(value, tuple) else "",
)
def test_wrong_usage_is_refused(
    clean_env: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: tuple[str, ...],
    message: str,
) -> None:
    refused = runner(main.run, capsys)(*words)
    assert (refused.code, message in " ".join(refused.err.split())) == (2, True), refused
