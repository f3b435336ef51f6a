"""Scenarios of commands under Slurm and under the embedded workload manager, field by field."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.slurm.conftest import own_cluster
from tests.wlm.scenarios.differences import unexpected
from tests.wlm.scenarios.fairbank_site import fairbank_site
from tests.wlm.scenarios.scenario import sample, scenarios
from tests.wlm.scenarios.slurm_site import AS_TEXT, CHANGES, SIZE, slurm_site, table_release
from tests.wlm.scenarios.transcript import transcripts

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(2_400)]


def test_scenarios_print_the_same_under_both(tmp_path: Path) -> None:
    chosen = sample() if os.environ.get("FAIRBANK_SHORT") else scenarios()
    with own_cluster("scenarios", SIZE, CHANGES) as cluster:
        release = table_release(cluster)
        as_text = release == AS_TEXT
        slurm = transcripts(slurm_site(cluster), chosen, as_text=as_text)
    with fairbank_site(tmp_path) as site:
        here = transcripts(site, chosen, as_text=as_text)
    wrong = unexpected(chosen, slurm, here, release=release)
    assert not wrong, "\n".join(wrong)
