"""Scenarios of commands under Slurm and under the embedded workload manager, field by field."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.slurm.conftest import own_cluster
from tests.wlm.scenarios.differences import unexpected
from tests.wlm.scenarios.fairbank_site import fairbank_site
from tests.wlm.scenarios.scenario import sample, scenarios
from tests.wlm.scenarios.slurm_site import CHANGES, SIZE, slurm_site
from tests.wlm.scenarios.transcript import transcripts

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(2_400)]

AS_TEXT = (24, 11)  # release whose form the commands of Fairbank have
RELEASES = {(22, 5): "22.05", AS_TEXT: "24.11"}


def test_scenarios_print_the_same_under_both(checkout: Path, tmp_path: Path) -> None:
    chosen = sample() if os.environ.get("FAIRBANK_SHORT") else scenarios()
    with own_cluster("scenarios", checkout, SIZE, CHANGES) as cluster:
        release = RELEASES.get(cluster.release)
        if release is None:
            pytest.skip(f"the table of differences is that of Slurm {', '.join(RELEASES.values())}")
        as_text = cluster.release == AS_TEXT
        slurm = transcripts(slurm_site(cluster), chosen, as_text=as_text)
    with fairbank_site(tmp_path) as site:
        here = transcripts(site, chosen, as_text=as_text)
    assert unexpected(chosen, slurm, here, release=release) == []
