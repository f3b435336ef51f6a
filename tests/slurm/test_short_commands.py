"""Short commands of a user beside other users of a real Slurm, with associations.

tests/wlm/scenarios/short.txt has the sessions of one user.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.slurm.lab.cluster import Cluster
from tests.slurm.lab.shell import CommandResult
from tests.slurm.readable_checkout import PYTHON, install_client, require_system_python

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(300)]

RunAsAlice = Callable[..., CommandResult]


@pytest.fixture
def alice(slurm: Cluster) -> RunAsAlice:
    require_system_python()
    variables = install_client(slurm)
    return lambda *words: slurm.run(
        "alice", PYTHON, "-m", "fairbank.cli", *words, environment=variables
    )


def test_job_is_run_and_its_output_read(slurm: Cluster, alice: RunAsAlice) -> None:
    run = alice("run", "-c", "2", "-t", "5m", "--wait", "--", "sh", "-c", "id -un; exit 4")
    assert run.out.startswith("job ")
    assert ": 2 CPUs, 5 min; starts " in run.out
    number = run.out.split()[1].removesuffix(":")
    assert (run.code, run.err) == (4, f"job {number}: FAILED, exit code 4\n")
    assert alice("log", number).out == "alice\n"


def test_job_of_another_user_is_not_cancelled(slurm: Cluster, alice: RunAsAlice) -> None:
    number = slurm.root("sbatch", "--parsable", "--wrap=sleep 600").strip()
    refused = alice("cancel", number)
    assert (refused.code, refused.out) == (4, "")
    assert "Access/permission denied" in " ".join(refused.err.split())
    assert slurm.root("squeue", "-h", "-j", number).strip()


def test_project_of_others_and_unknown_ones_are_refused(alice: RunAsAlice) -> None:
    for account in ("wg_bio", "no_such_project"):
        refused = alice("run", "-A", account, "--", "true")
        assert (refused.code, refused.out) == (4, "")
        assert "Invalid account or account/partition combination" in " ".join(refused.err.split())
