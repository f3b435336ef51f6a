"""TRES-minutes that running jobs reserve, by sshare and by the limit GrpTRESRunMins: those of Slurm
and of the embedded workload manager.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.slurm.conftest import own_cluster
from tests.slurm.frozen_cluster import run_sacctmgr_commands
from tests.wlm.scenarios.fairbank_site import fairbank_site
from tests.wlm.scenarios.scenario import Scenario, Site, run_all
from tests.wlm.scenarios.slurm_site import CHANGES, SIZE, slurm_site

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(600)]

ASSOCIATIONS = """
[priority]
accounting_storage_enforce = "limits"

[[associations]]
account = "physics"
grp_tres_run_mins = "cpu=35000"

[[associations]]
account = "physics"
user = "root"
"""
SACCTMGR = ("add account physics grptresrunmins=cpu=35000", "add user root account=physics")
# Rounded to thousands: the jobs give back less than that while they run here.
RESERVED = """reserved() {
    sshare -n -P -A physics -u root -o Account,User,TRESRunMins | grep physics |
        awk -F'|' '{ n = split($3, tres, ","); line = $1 "|" $2
            for (i = 1; i <= n; i++) { split(tres[i], pair, "=")
                if (pair[1] ~ /^(cpu|mem|node|billing)$/)
                    line = line " " pair[1] "=" int(pair[2] / 1000 + 0.5) }
            print line }'
}"""
COMMANDS = (
    RESERVED,
    "sbatch -A physics -c 3 -t 10000 --wrap 'exec sleep 600'",
    "wait_for RUNNING $J",
    "reserved",
    "sbatch -A physics -c 2 -t 5000 --wrap 'exec sleep 600'",
    "waits $J AssocGrpCPURunMinutesLimit",
    "reserved",
    "scontrol update jobid=$J timelimit=2000",
    "wait_for RUNNING $J",
    "reserved",
    "scontrol update jobid=$J1 timelimit=5000",
    "reserved",
    "scancel $J1",
    "ended $J1",
    "reserved",
    "scancel $J",
    "ended $J",
    "reserved",
)


def test_reserved_minutes_and_their_limit_are_those_of_slurm(tmp_path: Path) -> None:
    changes = {**CHANGES, "AccountingStorageEnforce": "limits"}
    with own_cluster("shares", SIZE, changes) as cluster:
        run_sacctmgr_commands(cluster, SACCTMGR)
        slurm = _outputs(slurm_site(cluster))
    with fairbank_site(tmp_path, ASSOCIATIONS) as site:
        here = _outputs(site)
    assert "physics|root cpu=30 mem=30000 node=10 billing=30\n" in slurm["3 reserved"]
    assert here == slurm


def _outputs(site: Site) -> dict[str, str]:
    """Return what the commands printed, by their place and text."""
    (outputs,) = run_all(site, [Scenario("shares", "reserved-minutes", COMMANDS)]).values()
    return {f"{place} {one.command}": one.output for place, one in enumerate(outputs)}
