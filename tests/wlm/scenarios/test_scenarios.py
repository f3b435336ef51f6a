"""Scenarios under the embedded workload manager, compared with the recorded output of Slurm."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.wlm.scenarios.differences import unexpected
from tests.wlm.scenarios.fairbank_site import fairbank_site
from tests.wlm.scenarios.recorded_transcripts import read_recording, write_recording
from tests.wlm.scenarios.scenario import sample, scenarios
from tests.wlm.scenarios.transcript import transcripts


@pytest.mark.slow
def test_sample_of_scenarios_prints_what_slurm_prints(tmp_path: Path) -> None:
    with fairbank_site(tmp_path) as site:
        here = transcripts(site, sample())
    assert unexpected(sample(), read_recording(), here) == []


@pytest.mark.campaign
@pytest.mark.timeout(1_800)
def test_all_scenarios_print_what_slurm_prints(tmp_path: Path) -> None:
    with fairbank_site(tmp_path) as site:
        here = transcripts(site, scenarios())
    assert unexpected(scenarios(), read_recording(), here) == []


def test_every_scenario_is_recorded_under_a_name_of_its_own() -> None:
    names = [scenario.name for scenario in scenarios()]
    assert len(names) >= 120
    assert sorted(names) == sorted(read_recording())


def test_difference_that_is_not_in_the_table_is_found(tmp_path: Path) -> None:
    (scenario,) = [one for one in scenarios() if one.name == "exit-code"]
    slurm = {"exit-code": {"1 output": "a", "2 exit": "1"}}
    here = {"exit-code": {"1 output": "b", "2 exit": "1"}}
    table = tmp_path / "differences.toml"
    table.write_text('[[difference]]\nfields = ["exit-code: 2 *"]\n')
    assert unexpected([scenario], slurm, here, table=table) == [
        f"exit-code: 1 output  $ {scenario.commands[0]}\n  Slurm:    'a'\n  Fairbank: 'b'",
        "exit-code: 2 * no longer differs; delete it from differences.toml",
    ]
    table.write_text('[[difference]]\nfields = ["exit-*: * output"]\n')
    assert unexpected([scenario], slurm, here, table=table) == []
    more = '[[difference]]\nby_chance = true\nfields = ["exit-code: 2 *"]\n'
    table.write_text(table.read_text() + more)
    assert unexpected([scenario], slurm, here, table=table) == []


def test_recording_is_read_as_it_was_written(tmp_path: Path) -> None:
    written = {"one": {"1 output": "a\n\n## b | c", "2 exit": "1"}, "two": {}}
    write_recording(tmp_path / "recorded.txt", "22.05", written)
    assert read_recording(tmp_path / "recorded.txt") == written
