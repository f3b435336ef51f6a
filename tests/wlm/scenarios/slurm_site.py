"""Slurm of the lab that runs scenarios."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.slurm.lab.cluster import Cluster
from tests.support.server import FAIRBANK
from tests.wlm.scenarios.scenario import Site
from tests.wlm.scenarios.transcript import FIRST_JOB

SIZE = "scenarios"
AS_TEXT = "24.11"
"""Release whose form the commands of Fairbank have."""
_RELEASES = {(22, 5): "22.05", (24, 11): AS_TEXT}
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


def table_release(cluster: Cluster) -> str:
    """Return the release of a cluster; skip the test if the table of differences has none of it."""
    release = _RELEASES.get(cluster.release)
    if release is None:
        pytest.skip(f"the table of differences is that of Slurm {', '.join(_RELEASES.values())}")
    return release


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
