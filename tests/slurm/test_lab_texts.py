"""Texts that the lab writes and reads, without a Slurm: configuration, rows of output, blocks of
ports, the policy against service starts.
"""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from pathlib import Path

import pytest

from tests.slurm.lab import packages
from tests.slurm.lab.configuration import gres_conf, slurm_conf, slurmdbd_conf
from tests.slurm.lab.machine import SIZES, node_names
from tests.slurm.lab.output_parsers import DELIMITER, fields, is_whole, rows, tres
from tests.slurm.lab.people import PEOPLE, accounting
from tests.slurm.lab.place import BLOCK, FIRST_NODE, Place, blocks
from tests.slurm.lab.recorder import SACCT, anonymous, read_keys

PLACE = Place(Path("/lab/one"), 17_000, "here", "127.0.0.1")
FULL = SIZES["full"]


def names_in(text: str) -> list[str]:
    return [line.partition("=")[0] for line in text.splitlines()]


def test_changed_setting_appears_once() -> None:
    text = slurm_conf(PLACE, FULL, {"KillWait": "9", "PrEpPlugins": "prep/script", "MailProg": ""})
    count = Counter(name for name in names_in(text) if name not in ("NodeName", "PartitionName"))
    assert set(count.values()) == {1}
    assert "KillWait=9\n" in text
    assert "PrEpPlugins=prep/script\n" in text
    assert "MailProg" not in count


def test_two_clusters_share_no_path_or_port() -> None:
    other = dataclasses.replace(PLACE, folder=Path("/lab/two"), first_port=17_000 + BLOCK)
    for text in (slurm_conf(other, FULL, {}), slurmdbd_conf(other), gres_conf(other, FULL)):
        assert "/lab/one" not in text
        assert not any(str(port) in text for port in PLACE.ports)


def test_every_node_has_a_port_of_the_block() -> None:
    nodes = list(node_names(FULL))
    assert len(set(nodes)) == len(nodes)
    assert FIRST_NODE + len(nodes) <= BLOCK


def test_each_user_is_added_once_per_account() -> None:
    calls = list(accounting("lab"))
    assert calls[0] == ("add", "cluster", "lab")
    assert sum(call[1] == "user" for call in calls) == sum(len(person.teams) for person in PEOPLE)


def test_used_port_blocks_are_left_out() -> None:
    first, second, *_ = blocks([])
    assert blocks([first])[0] == second


def test_rows_may_contain_pipes_and_line_ends() -> None:
    text = DELIMITER.join(["1", "a|b\n\nc", "c01"]) + "\n" + DELIMITER.join(["2", "", "c02"]) + "\n"
    assert rows(text, ("id", "name", "node")) == [
        {"id": "1", "name": "a|b\n\nc", "node": "c01"},
        {"id": "2", "name": "", "node": "c02"},
    ]


@pytest.mark.parametrize(
    "text", ["1\n", DELIMITER * 3 + "\n", f"1{DELIMITER}\n2{DELIMITER}x{DELIMITER}y\n"]
)
def test_invalid_rows_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"fields|within a row"):
        rows(text, ("id", "name", "node"))


def test_scontrol_fields_and_tres_are_parsed() -> None:
    assert fields("JobId=3 JobState=RUNNING TRES=cpu=1,mem=1G")["TRES"] == "cpu=1,mem=1G"
    assert tres("billing=24,gres/gpu=2") == {"billing": "24", "gres/gpu": "2"}
    assert tres("") == {}


def test_recording_is_anonymous() -> None:
    text = (
        "SlurmctldHost[0] = here(10.1.2.3)\nOS=Linux 6.9-mine #1 SMP today \n"
        " WorkDir=/lab/one/home/bob AllocNode:Sid=there:77\n"
    )
    place = dataclasses.replace(PLACE, address="10.1.2.3")
    expected = (
        "SlurmctldHost[0] = head(127.0.0.1)\nOS=Linux 6.1.0-1-amd64 #1 SMP \n WorkDir=/lab/home/bob"
        " AllocNode:Sid=head:1000\n"
    )
    assert (
        anonymous(text + '"directory": "\\/lab\\/one\\/home"\n', place)
        == expected + '"directory": "\\/lab\\/home"\n'
    )


def test_recorded_jobs_are_read(checkout: Path) -> None:
    folder = checkout / "tests" / "golden" / "slurm-22.05"
    runs = rows((folder / "sacct-separated.txt").read_text(), SACCT)
    assert {"a|b", "two\nlines", "|\n|", "ünïcödé", "`double`"} <= {run["JobName"] for run in runs}
    assert {run["State"].split()[0] for run in runs} >= {
        "COMPLETED",
        "FAILED",
        "TIMEOUT",
        "CANCELLED",
        "NODE_FAIL",
        "REQUEUED",
        "RUNNING",
        "PENDING",
    }
    again = [run for run in runs if run["JobName"] == "again"]
    assert [run["State"] for run in again] == ["REQUEUED", "RUNNING"]


@pytest.mark.parametrize(
    ("partition", "state", "end", "expected"),
    [
        ("cpu", "CANCELLED by 60601", "2026-06-01T12:00:00", True),
        ("cpu", "RUNNING", "Unknown", True),
        ("", "COMPLETED", "2026-06-01T12:00:00", False),
        ("cpu", "CANCELLED", "Unknown", False),
    ],
)
def test_row_with_the_start_and_the_end_of_its_state_is_whole(
    partition: str, state: str, end: str, expected: bool
) -> None:
    assert is_whole({"Partition": partition, "State": state, "End": end}) == expected


def test_recorded_json_has_no_errors_and_its_read_keys_only(checkout: Path) -> None:
    files = sorted((checkout / "tests" / "golden").glob("slurm-*/*-all.json"))
    assert [f"{file.parent.name}/{file.stem}" for file in files] == [
        "slurm-23.11/sacct-all",
        "slurm-24.05/sacct-all",
        "slurm-24.11/sacct-all",
        "slurm-25.05/sacct-all",
        "slurm-25.11/sacct-all",
        "slurm-26.05/sacct-all",
    ]
    for file in files:
        assert json.loads(file.read_text())["errors"] == []
        assert read_keys(file.read_text()) == file.read_text()


@pytest.mark.parametrize(
    "own", [None, "#!/bin/sh\nexit 0\n", f"#!/bin/sh\n{packages.MARK}\nexit 101\n"]
)
def test_service_policy_of_the_host_is_restored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own: str | None
) -> None:
    policy, aside = tmp_path / "policy-rc.d", tmp_path / "aside"
    monkeypatch.setattr(packages, "POLICY", policy)
    monkeypatch.setattr(packages, "SET_ASIDE", aside)
    if own:
        policy.write_text(own)
    with pytest.raises(KeyError), packages.no_service_starts():
        assert f"exit {packages.FORBIDDEN}" in policy.read_text()
        raise KeyError
    ours = own is None or packages.MARK in own
    assert list(tmp_path.iterdir()) == ([] if ours else [policy])
    assert ours or policy.read_text() == own
