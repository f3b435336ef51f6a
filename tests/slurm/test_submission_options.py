"""Options of sbatch in `core/submission` beside those of the installed sbatch."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from fairbank.core.submission.options import options_by_flag
from tests.core.submission.test_values import INVALID, VALID

pytestmark = pytest.mark.slurm

# Of later releases than that of Debian 12, as the manual of 24.11 describes them.
NEWER = {("--nodes", "1,3-5:2"), ("--nodes", "8,4"), ("--exclusive", "allocation")}
# sbatch sends them as they are; slurmctld refuses them.
BY_SLURMCTLD = {"--array", "--dependency"}
# 22.05 accepts 0 nodes, reads x as the nice value 0, and checks the names of limits and hints
# later. It takes more memory than any node has, and another time limit for one that is too long.
LENIENT = {
    ("--nodes", "0"),
    ("--nice", "x"),
    ("--propagate", "CORE,FOO"),
    ("--hint", "foo"),
    ("--hint", "compute_bound,x"),
    ("--hint", "help"),
    ("--ntasks", "1234567890"),  # more than fairbank counts
    ("--mem", "2147483648M"),
    ("--mem", "9999999T"),
    ("--time", "35791394"),
    ("--time", "9999999-0"),
}
_HELP = re.compile(r"^ +(?:(-[A-Za-z]),? +)?(--[a-z][a-z0-9-]+)", re.MULTILINE)


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return an environment in which sbatch finds a cluster, which need not run."""
    path: Path = tmp_path_factory.mktemp("slurm") / "slurm.conf"
    path.write_text(
        "ClusterName=x\nSlurmctldHost=localhost\nNodeName=localhost\nPartitionName=a Nodes=ALL\n"
    )
    return {**os.environ, "SLURM_CONF": str(path)}


def sbatch(environment: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["sbatch", *words], env=environment, capture_output=True, text=True, check=False
    )


def is_accepted(environment: dict[str, str], flag: str, text: str) -> bool:
    """Return whether sbatch reads the option: then it goes on, and prints its usage."""
    return sbatch(environment, f"{flag}={text}" if text else flag, "--usage").returncode == 0


def test_each_option_of_sbatch_is_known(environment: dict[str, str]) -> None:
    known = options_by_flag("sbatch")
    flags = _HELP.findall(sbatch(environment, "--help").stdout)
    assert len(flags) > 80
    assert {long for _, long in flags} <= known.keys()
    assert [letter for letter, long in flags if letter and known[letter] != known[long]] == []


def test_each_valid_value_is_accepted_by_sbatch(environment: dict[str, str]) -> None:
    values = [(flag, text) for flag, text, _ in VALID if (flag, text) not in NEWER]
    assert [pair for pair in values if not is_accepted(environment, *pair)] == []


def invalid_values() -> Iterator[tuple[str, str]]:
    for flag, texts in INVALID:
        if flag not in BY_SLURMCTLD:
            yield from ((flag, text) for text in texts.split(" ") if (flag, text) not in LENIENT)


def test_each_invalid_value_is_refused_by_sbatch(environment: dict[str, str]) -> None:
    assert [pair for pair in invalid_values() if is_accepted(environment, *pair)] == []
