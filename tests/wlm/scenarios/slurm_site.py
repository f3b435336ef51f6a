"""Slurm of the lab that runs scenarios."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tests.slurm.lab.cluster import Cluster
from tests.support.server import FAIRBANK
from tests.wlm.scenarios.scenario import Site
from tests.wlm.scenarios.transcript import FIRST_JOB

SIZE = "scenarios"
_PARALLEL = 16
# As fairbank_site.SETTINGS: no associations, and a second partition with limits.
CHANGES: Mapping[str, str] = {
    "FirstJobId": str(FIRST_JOB),
    "AccountingStorageEnforce": "",
    "AccountingStorageTRES": "",
    "AccountingStoreFlags": "job_comment",
    "GresTypes": "",
    "Licenses": "lic:4",
    "PartitionName": "short Nodes=n[1-8] DefaultTime=5 MaxTime=10 MaxNodes=2 DefMemPerCPU=10",
}


def slurm_site(cluster: Cluster) -> Site:
    """Return the site of a running cluster of the lab."""
    place = cluster.place

    def states() -> str:
        # Without --array, tasks that wait are one row.
        words = ("squeue", "-h", "-a", "-r", "-t", "all", "-o", "%i|%T|%r")
        return cluster.run("root", *words).checked().out

    folder = place.folder / "scenarios"
    own = {"HOME": str(place.folder), "USER": "root", "SHELL": "/bin/sh"}
    own["PATH"] = f"{place.environment['PATH']}:{Path(FAIRBANK).parent}"
    return Site(folder, {**place.environment, **own}, states, _PARALLEL)
