"""Messages of the submission policy, word for word: more than forty commands, with job_submit.lua
and with cli_filter.lua.

The golden files are in tests/golden/slurm/. After an intended change, run `WRITE_GOLDEN=1 make
test-slurm TESTS=tests/slurm/test_submission.py` and read the diff.
"""

from __future__ import annotations

import re
import shlex
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from fairbank.slurm.policy_file import PolicyAction, PolicyBalance, SubmissionPolicy, render
from tests.plugins.policies import SITE_POLICY
from tests.slurm.lab.cluster import Cluster
from tests.slurm.lab.output_parsers import tres
from tests.slurm.prep_cluster import install_lua
from tests.slurm.prices import BILLING
from tests.support.conditions import wait_until
from tests.support.golden import GOLDEN, kept

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(300)]

ASTRO, BIO, CHEM, USERS = "wg_astro", "wg_bio", "wg_chem", "users"

# user, group, command
NEW = [
    ("alice", ASTRO, "sbatch -p cpu -t 5 --wrap true"),
    ("alice", ASTRO, "srun -p cpu -t 5 true"),
    ("alice", ASTRO, "salloc -p cpu -t 5 true"),
    ("alice", USERS, "sbatch -p cpu -t 5 --wrap true"),
    ("alice", USERS, "srun -p cpu -t 5 true"),
    ("bob", USERS, "salloc -p cpu -t 5 true"),
    ("bob", BIO, "sbatch -p cpu -t 5 -A wg_bio --wrap true"),
    ("bob", BIO, "sbatch -p cpu -t 5 -A wg_astro --wrap true"),
    ("alice", ASTRO, "srun -p cpu -t 5 -A wg_bio true"),
    ("bob", ASTRO, "salloc -p cpu -t 5 -A nobody true"),
    ("alice", ASTRO, "sbatch -t 5 --wrap true"),
    ("alice", ASTRO, "srun -t 5 true"),
    ("alice", ASTRO, "salloc -p cpu,gpu -t 5 true"),
    ("alice", ASTRO, "sbatch -p cpu,gpu -t 5 --wrap true"),
    ("alice", ASTRO, "sbatch -p nowhere -t 5 --wrap true"),
    ("dave", CHEM, "sbatch -t 5 --wrap true"),
    ("dave", CHEM, "sbatch -p cpu -t 5 --wrap true"),
    ("dave", CHEM, "srun -p gpu-t4 --reservation=other -t 5 true"),
    ("dave", CHEM, "salloc -p cpu,gpu -t 5 true"),
    ("carol", BIO, "sbatch -p cpu -q high -t 5 --wrap true"),
    ("carol", BIO, "srun -p cpu -q normal -t 5 true"),
    ("carol", BIO, "salloc -p cpu -q low -t 5 true"),
    ("alice", ASTRO, "sbatch -p gpu --gpus=1 -t 5 --wrap true"),
    ("alice", ASTRO, "srun -p gpu --gpus=a100:2 -t 5 true"),
    ("alice", ASTRO, "sbatch -p gpu --gres=gpu:1 -t 5 --wrap true"),
    ("alice", ASTRO, "sbatch -p gpu -N2 --gres=gpu:a100:2 -t 5 --wrap true"),
    ("alice", ASTRO, "sbatch -p gpu -N2 --gpus-per-node=1 -t 5 --wrap true"),
    ("alice", ASTRO, "sbatch -p gpu --gpus=t4:1 -t 5 --wrap true"),
    ("alice", ASTRO, "srun -p gpu --gpus-per-node=v100:2 -t 5 true"),
    ("alice", ASTRO, "sbatch -p cpu --gpus=1 -t 5 --wrap true"),
    ("alice", ASTRO, "salloc -p cpu --gpus=t4:1 -t 5 true"),
    ("alice", ASTRO, "sbatch -p cpu --wrap true"),
    ("alice", ASTRO, "sbatch -p long --wrap true"),
    ("alice", ASTRO, "sbatch -p cpu -t UNLIMITED --wrap true"),
    ("alice", ASTRO, "srun -p cpu -t 0 true"),
    ("alice", ASTRO, "sbatch -p cpu -t 20 --time-min=3 --wrap true"),
    ("alice", ASTRO, "sbatch -p cpu -n32 --mem=1G -t 1:00:00 --wrap true"),
    ("bob", ASTRO, "srun -p cpu -n32 --mem=1G -t 1:00:00 true"),
    ("alice", ASTRO, "sbatch -p cpu --mem=64G -t 2:00:00 --wrap true"),
    ("alice", ASTRO, "sbatch -p cpu -c8 -n4 --mem-per-cpu=2G -t 1-0 --wrap true"),
    ("alice", ASTRO, "salloc -p gpu --gpus=4 -t 7-0 true"),
    ("carol", BIO, "sbatch -p gpu --gpus=1 -t 1:00:00 --wrap true"),
    ("alice", ASTRO, "sbatch -p cpu --exclusive -t 1:00:00 --wrap true"),
    ("alice", ASTRO, "sbatch -p cpu,gpu -A wg_bio -t UNLIMITED --wrap true"),
    ("alice", ASTRO, "sbatch -p cpu -t 5 --array=1-3 --wrap true"),
    ("alice", ASTRO, "salloc -p cpu -t 5 srun -n1 true"),
    ("alice", ASTRO, "srun -p cpu -t 5 : -p cpu,gpu -t 5 true"),
    ("root", "root", "sbatch -p cpu -A wg_bio --uid=carol --wrap true"),
]
CHANGES = [
    "account=wg_bio",
    "partition=cpu,gpu",
    "partition=gpu-t4",
    "qos=high",
    "qos=normal",
    "timelimit=20",
    "timelimit=5",
    "timelimit=UNLIMITED",
    "timelimit=7-0",
    "numcpus=640",
    "gres=gpu:1",
    "name=other",
]


def terminal_page(slurm: Cluster, user: str, group: str, command: str) -> str:
    """Return the command and its output, with the job's fields; job numbers are replaced."""
    result = slurm.run(user, *shlex.split(command), group=group, stdin="", seconds=60)
    output = re.sub(
        r"(?m)^s(?:run|alloc): (?:[Jj]ob|Pending|Granted|Relinquishing|Nodes|Required) .*\n",
        "",
        result.out + result.err,
    )
    if submitted := re.search(r"Submitted batch job (\d+)", output):
        job = slurm.job(submitted[1]) if "--array" not in command else {}
        shown = (
            "Account",
            "QOS",
            "Partition",
            "TimeLimit",
            "TimeMin",
            "MinMemoryCPU",
            "MinMemoryNode",
        )
        output += "".join(f"  {name}={job[name]}\n" for name in shown if name in job)
    return (
        f"$ ({user}, {group}) {command}\n{re.sub(r'job [0-9]+', 'job N', output)}  exit status"
        f" {result.code}\n\n"
    )


def compare(name: str, page: str) -> None:
    assert page == kept(GOLDEN / "slurm" / f"{name}.txt", page)


def install(slurm: Cluster, checkout: Path, policy: SubmissionPolicy) -> None:
    """Install the plug-ins with this policy."""
    path = install_lua(slurm, checkout)
    temporary = path.with_name("policy.new")
    temporary.write_text(render(msgspec.structs.replace(policy, written=int(time.time()))))
    temporary.chmod(0o644)
    temporary.replace(path)


@pytest.fixture
def reserved(slurm: Cluster) -> Iterator[Cluster]:
    """Create the reservation of the short-term allocation."""
    slurm.root(
        *shlex.split(
            "scontrol create reservation reservationname=wg_chem accounts=wg_chem starttime=now"
            " duration=60 nodes=g03"
        )
    )
    yield slurm
    slurm.root("scontrol", "delete", "reservation=wg_chem")


@pytest.fixture
def controlled(reserved: Cluster, checkout: Path) -> Iterator[Cluster]:
    install(reserved, checkout, SITE_POLICY)
    with reserved.configured({"JobSubmitPlugins": "lua"}):
        yield reserved


def test_messages_of_job_submit(controlled: Cluster) -> None:
    compare("job-submit", "".join(terminal_page(controlled, *command) for command in NEW))


def test_messages_of_cli_filter(reserved: Cluster, checkout: Path) -> None:
    install(reserved, checkout, SITE_POLICY)
    with reserved.configured({"CliFilterPlugins": "lua"}):
        compare("cli-filter", "".join(terminal_page(reserved, *command) for command in NEW))


def test_both_plugins_show_each_message_once(controlled: Cluster) -> None:
    with controlled.configured({"CliFilterPlugins": "lua"}):
        result = controlled.run(
            "carol", "sbatch", "-p", "cpu", "-t", "5", "-q", "high", "--wrap=true", group=BIO
        )
        assert result.err == "sbatch: lua: QOS high replaced by normal: leave out --qos\n"
        assert controlled.run("carol", "srun", "-p", "cpu", "-t", "5", "true", group=BIO).code == 0


def test_messages_of_job_changes(controlled: Cluster, checkout: Path) -> None:
    install(controlled, checkout, msgspec.structs.replace(SITE_POLICY, short_terms=()))
    job = controlled.submit("alice", "-p", "cpu", "-t", "10", "-n2", "--hold", group=ASTRO)
    pages = []
    for change in CHANGES:
        page = terminal_page(
            controlled, "alice", ASTRO, f"scontrol update jobid={job} {change}"
        ).replace(f"jobid={job}", "jobid=N")
        shown_job = controlled.job(job)
        shown = ("Account", "QOS", "Partition", "TimeLimit", "TimeMin", "NumCPUs")
        pages.append(
            page.rstrip("\n")
            + "\n  "
            + " ".join(f"{name}={shown_job[name]}" for name in shown)
            + "\n\n"
        )
    has_messages = controlled.release > (22, 5)  # 22.05 prints only its own message
    compare("scontrol-update-with-words" if has_messages else "scontrol-update", "".join(pages))


def test_operator_update_of_a_job_obeys_the_policy(controlled: Cluster) -> None:
    """A coordinator of the account and an operator are checked: Lua cannot distinguish them. Root
    is not checked.
    """
    job = controlled.submit("alice", "-p", "cpu", "-t", "10", "--hold", group=ASTRO)

    def carol(change: str) -> int:
        return controlled.run("carol", "scontrol", "update", f"jobid={job}", change, group=BIO).code

    assert carol("comment=hers") != 0
    for grant, revoke in (
        (
            f"add coordinator account={ASTRO} names=carol",
            f"delete coordinator account={ASTRO} names=carol",
        ),
        ("modify user carol set adminlevel=operator", "modify user carol set adminlevel=none"),
    ):
        controlled.root("sacctmgr", "--immediate", *grant.split())
        wait_until(lambda: carol("comment=hers") == 0, "slurmctld to let carol change the job")
        assert carol("qos=high") != 0
        assert carol("timelimit=UNLIMITED") != 0
        controlled.root("sacctmgr", "--immediate", *revoke.split())
        wait_until(lambda: carol("comment=hers") != 0, "slurmctld to let her no more")
    assert (controlled.job(job)["QOS"], controlled.job(job)["TimeLimit"]) == ("normal", "00:10:00")
    assert f"Fairbank: job {job} not changed for uid" in controlled.log("slurmctld")
    controlled.root("scontrol", "update", f"jobid={job}", "qos=high")
    assert controlled.job(job)["QOS"] == "high"


def test_quote_equals_slurm_billing(controlled: Cluster, checkout: Path) -> None:
    """Slurm prints whole billing units, rounded down; for a job of one hour they are its SU."""
    balances = tuple(
        PolicyBalance(account, resource, 0) for account in (ASTRO,) for resource in ("cpu", "gpu")
    )
    install(
        controlled,
        checkout,
        msgspec.structs.replace(
            SITE_POLICY, price=PolicyAction.WARN, balances=balances, short_terms=()
        ),
    )
    jobs = []
    for partition, options, _ in BILLING:
        result = controlled.run(
            "alice",
            "sbatch",
            "--parsable",
            "-p",
            partition,
            "-t",
            "60",
            *options.split(),
            "--wrap=true",
            group=ASTRO,
        ).checked()
        quoted = re.search(r"may cost ([0-9.]+) SU", result.err)
        jobs.append((int(result.out), options, int(float(quoted[1])) if quoted else None))
    for job, options, quoted_units in jobs:
        (row,) = controlled.wait_for_sacct(job, "COMPLETED", seconds=60)
        assert (options, quoted_units) == (options, int(tres(row["AllocTRES"]).get("billing", "0")))


def test_damaged_policy_file_keeps_the_last_policy(controlled: Cluster, checkout: Path) -> None:
    policy = controlled.place.conf / "fairbank" / "policy"
    wrong = ("sbatch", "-p", "cpu,gpu", "-t", "5", "--wrap=true")
    assert controlled.run("alice", *wrong, group=ASTRO).code != 0
    policy.write_text("rubbish\n")
    assert (
        controlled.run("alice", *wrong, group=ASTRO).code != 0
    )  # the policy read before stays in force
    assert "stays in force" in controlled.log("slurmctld")
    install(controlled, checkout, msgspec.structs.replace(SITE_POLICY, qos="low"))
    job = controlled.submit("alice", "-p", "cpu", "-t", "5", group=ASTRO)
    assert controlled.job(job)["QOS"] == "low"
