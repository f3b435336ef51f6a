"""Tests of the commands on the bank's own host: the calls that they make and their output."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fairbank.bank.audit import Finding, Head
from fairbank.cli.framework.progress import bar
from fairbank.core.health import HealthCheck
from tests.cli.conftest import Run
from tests.cli.fakes import FakeServices


@pytest.fixture(autouse=True)
def fake_services() -> Iterator[None]:
    with FakeServices().installed():
        yield


def test_init_and_serve(fairbank: Run) -> None:
    services = FakeServices()
    result = fairbank("init", "/srv/bank", "--store", "postgresql:///fairbank", services=services)
    assert result.out == "made /x/fairbank.toml\nmade /x/secret\n"
    assert "fairbank serve --config /srv/bank/fairbank.toml" in " ".join(result.err.split())
    served = fairbank("serve", "--config", "/c", "--port", 8080, services=services)
    assert served.err == "The bank listens at unix:/x/fairbank.sock and http://127.0.0.1:8080\n"
    fairbank("init", services=services)
    fairbank("serve", services=services)
    assert services.calls == [
        ("init", "/srv/bank", "postgresql:///fairbank"),
        ("serve", "/c", 8080),
        ("init", None, None),
        ("serve", None, None),
    ]


def test_audit_with_and_without_findings(fairbank: Run) -> None:
    fine = fairbank("audit", "verify")
    assert (fine.code, fine.out) == (
        0,
        "read 1,000 entries of 4 journals and 300 runs: every row is as the journal says\n"
        "bank fairbank\n",
    )
    findings = (Finding(7, "its link\x1b is wrong", 12), Finding(0, "a row was added"))
    bad = fairbank("audit", "verify", services=FakeServices(findings=findings))
    assert bad.code == 8
    assert bad.out.splitlines()[:2] == [
        "x allocation 7, entry 12: its link\\x1b is wrong",
        "x the registry: a row was added",
    ]
    many = fairbank("audit", "verify", services=FakeServices(findings=findings * 100))
    assert "... and 150 more" in many.out


def test_written_heads_are_read_back(
    fairbank: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = fairbank("audit", "heads").out
    assert [json.loads(line)[:2] for line in written.splitlines()] == [[0, 3], [7, 12]]
    file, services = tmp_path / "heads", FakeServices()
    file.write_text(written)
    assert fairbank("audit", "verify", "--heads", file, services=services).code == 0
    monkeypatch.setattr(sys, "stdin", io.StringIO(written))
    assert fairbank("audit", "verify", "--heads", "-", services=services).code == 0
    answer = fairbank("audit", "heads", "--json", services=FakeServices()).out
    assert (json.loads(answer)["schema"], json.loads(answer)["bank"]) == (
        "fairbank.head/1",
        "fairbank",
    )
    file.write_text(answer)
    assert fairbank("audit", "verify", "--heads", file, services=services).code == 0
    heads = {0: Head(0, 3, b"\x01" * 32), 7: Head(7, 12, b"\xff" * 32)}
    assert services.calls == [("verify", None, heads)] * 3


def test_file_of_heads_without_an_end_is_refused(fairbank: Run) -> None:
    result = fairbank("audit", "verify", "--heads", "/dev/zero")
    assert (result.code, "/dev/zero has more than 256 MiB" in result.err) == (2, True)


@pytest.mark.parametrize("line", ["x", "[1]", "{}", "[1, 2, 3]", '[1, 2, "zz"]', "null"])
def test_invalid_heads_are_reported_with_their_line(
    fairbank: Run, tmp_path: Path, line: str
) -> None:
    file = tmp_path / "heads"
    file.write_text(f'[0, 1, "00"]\n{line}\n')
    result = fairbank("audit", "verify", "--heads", file)
    assert result.code == 2
    assert "line 2" in " ".join(result.err.split())


def test_backup_and_restore(fairbank: Run) -> None:
    services = FakeServices()
    assert (
        fairbank("backup", "create", "a.fbk", "--config", "/c", services=services).out
        == "a.fbk: 42 rows\nbank fairbank\n"
    )
    assert fairbank("backup", "create", "a.fbk", "--force", services=services).code == 0
    whole = "a.fbk: whole, 42 rows\nbank fairbank\n"
    assert fairbank("backup", "verify", "a.fbk", services=services).out == whole
    restored = "a.fbk: 42 rows restored\nbank fairbank\n"
    assert fairbank("restore", "a.fbk", services=services).out == restored
    assert fairbank("restore", "a.fbk", "--replace", "--yes", services=services).err.endswith(
        "fairbank audit verify\n"
    )
    result = fairbank("restore", "a.fbk", "--config", "new bank/fairbank.toml", services=services)
    assert result.err.endswith("fairbank audit verify --config 'new bank/fairbank.toml'\n")
    assert fairbank("restore", "a.fbk", "--check", services=services).out == whole
    assert [call[0] for call in services.calls] == [
        "backup",
        "backup",
        "check_backup",
        *["restore"] * 3,
        "check_backup",
    ]
    assert [call[-1] for call in services.calls if call[0] in ("backup", "restore")] == [
        False,
        True,
        False,
        True,
        False,
    ]


def test_doctor_names_the_remedy_of_a_failed_check_and_exits_with_8(fairbank: Run) -> None:
    checks = (HealthCheck("the store opens", True), HealthCheck("no agent", False, "add one"))
    result = fairbank("doctor", services=FakeServices(checks=checks))
    assert (result.code, result.out) == (
        8,
        "ok  the store opens\nx   no agent\n      try: add one\nbank fairbank\n",
    )
    assert fairbank("doctor", services=FakeServices(checks=checks[:1])).code == 0


def test_progress_does_not_change_stdout(fairbank: Run) -> None:
    """Progress goes to stderr, so stdout is the same with and without it."""
    services = FakeServices(checks=(HealthCheck("the store opens", True),))
    silent, result = (
        fairbank("doctor", services=services),
        fairbank("doctor", "--progress=plain", services=services),
    )
    assert result.out == silent.out
    assert result.err == f"{silent.err}doctor: whether the SQLite file is sound\n"
    backup = fairbank("backup", "create", "x.fbk", "--progress=plain", services=services)
    assert backup.err == f"{silent.err}backup: first whether the store's file is sound\n"
    assert (
        fairbank("backup", "create", "x.fbk", "--progress=plain", "-q", services=services).err == ""
    )


def test_doctor_on_a_slurm_host(fairbank: Run) -> None:
    services = FakeServices(checks=(HealthCheck("munged is well", True),))
    result = fairbank(
        "doctor", "--slurm", "-M", "lab", "--agent-config", "/a", "--site", "/s", services=services
    )
    assert (result.code, result.out) == (0, "ok  munged is well\n")
    assert services.calls == [("check_slurm", "lab", "/a", "/s")]
    stray = fairbank("doctor", "--site", "/s", services=services)
    assert (stray.code, services.calls[1:]) == (2, [])
    assert "--site" in stray.err
    assert "--slurm" in stray.err
    both = fairbank("doctor", "--slurm", "--config", "/c", services=services)
    assert (both.code, services.calls[1:]) == (2, [])
    for words in (("--slurm",), ("--config", "/c"), ("-M", "lab")):
        with_cluster = fairbank("doctor", "--cluster", *words, services=services)
        assert (with_cluster.code, services.calls[1:]) == (2, [])
        assert "does not go with --cluster" in with_cluster.err


def test_checks_as_json(fairbank: Run) -> None:
    services = FakeServices(
        checks=(
            HealthCheck("the store opens", True, "x"),
            HealthCheck("no agent", False, "add one"),
        ),
        findings=(Finding(7, "odd", 3),),
    )
    doctor, audit = (
        fairbank("doctor", "--json", services=services),
        fairbank("audit", "verify", "--json", services=services),
    )
    assert (doctor.code, audit.code) == (8, 8)
    assert json.loads(doctor.out)["data"][1] == {
        "what": "no agent",
        "ok": False,
        "remedy": "add one",
    }
    assert json.loads(audit.out)["data"] == [{"journal": 7, "entry": 3, "what": "odd"}]
    assert json.loads(audit.out)["entries"] == 1_000
    assert (
        fairbank("doctor", "-P", "-n", services=services).out
        == "ok|the store opens|\nx|no agent|add one\n"
    )
    status = json.loads(fairbank("status", "--json").out)
    assert (status["bank"], status["data"][0]["status"]) == ("fairbank", "ok")


def test_agent_and_its_status(fairbank: Run) -> None:
    services = FakeServices(status=STATUS)
    assert fairbank("agent", "--config", "/c", services=services).err.startswith(
        "The agent listens for slurmctld at /x/prep.sock"
    )
    result = fairbank("agent", "status", services=services)
    assert result.code == 8
    output = result.out.splitlines()[:3]
    assert output == [
        "slurmctld  not connected",
        "bank       down since 2026-11-20 19:00:00: nobody\\x1b answers",
        "           try: start it",
    ]
    assert (
        "           2 more ends are too early for the bank's clock; they are sent again later"
        in result.out
    )
    assert "cannot be written: disk full" in result.out
    assert (
        "quarantine 3 frames of slurmctld's plug-in cannot be read, the last: epilog: no end"
        " (end)" in result.out
    )
    assert "           try: one release" in result.out
    assert (
        "incidents  3 connections rejected since 2026-11-20 19:00:00, the last at"
        " 2026-11-20 20:00:00: uid 7\n           try: see who it is\n" in result.out
    )
    answer = json.loads(fairbank("agent", "status", "--json", services=services).out)
    assert (answer["schema"], answer["amounts_in"]) == ("fairbank.agent-status/1", "SU-minutes")
    assert answer["data"]["outbox"] == STATUS["outbox"]
    assert answer["data"]["verdicts"] == [{"verdict": "closed: deferred", "count": 2}]
    status_calls = [("agent", "/etc/fairbank/agent.toml"), ("agent_status", "/x/agent.sock")]
    assert services.calls == [("agent", "/c"), *status_calls, *status_calls]
    released = {**STATUS, "release": {"released": 1, "error": None, "remedy": None}}
    answer = json.loads(
        fairbank("agent", "status", "--json", services=FakeServices(status=released)).out
    )
    assert answer["data"]["release"] == {"jobs": 1, "error": None, "remedy": None}


STATUS: dict[str, Any] = {
    "plugins": [],
    "bank": {
        "reachable": False,
        "since": 1_795_219_200,
        "failures": 3,
        "error": "nobody\x1b answers",
        "remedy": "start it",
    },
    "outbox": {
        "reports": 7,
        "on_disk_only": 0,
        "retry_later": 2,
        "oldest_seconds": 4.2,
        "error": "disk full",
    },
    "senders": {"size": 1, "busy": 1, "minimum": 1, "maximum": 4},
    "quarantine": {
        "path": "/x/outbox.quarantine",
        "frames": 3,
        "last": "epilog: no end (end)",
        "error": None,
        "remedy": "one release",
    },
    "incidents": [
        {
            "kind": "rejected user",
            "about": "connections rejected",
            "count": 3,
            "since": 1_795_219_200,
            "last": 1_795_222_800,
            "text": "uid 7",
            "remedy": "see who it is",
        }
    ],
    "denied": [],
    "site_factor": None,
    "release": {"released": 1, "error": "scontrol failed", "remedy": "see its message"},
    "prologs_waiting": 2,
    "runs": 9,
    "verdicts": {"closed: deferred": 2},
    "messages": {"prolog": 3},
    "reports_answered": {"hold": {"granted": 1}, "adjust": {}, "complete": {}},
    "request_errors": {"unavailable": 3},
}


def test_progress_is_shown_on_terminals_or_on_request(fairbank: Run) -> None:
    places = fairbank("audit", "verify").err
    assert [line.split()[0] for line in places.splitlines()] == ["settings", "store"]
    output = fairbank("audit", "verify", "--progress", "plain").err
    plain = output.removeprefix(places).splitlines()
    assert plain[0].startswith("audit: every journal, and the store as a whole")
    assert plain[1:] == [f"audit {tenth}0%" for tenth in range(1, 11)]
    assert fairbank("audit", "verify", "--progress", "plain", "-q").err == ""


def test_progress_bar_shows_share_rate_and_remaining_time() -> None:
    assert bar("audit", 0, 0, 0.0) == f"audit [{'-' * 30}]   0%  0/s"
    assert bar("audit", 500, 1_000, 2.0) == f"audit [{'#' * 15}{'-' * 15}]  50%  250/s  ETA 0:02"
    assert bar("audit", 1_000_000, 1_000_000, 5.0) == f"audit [{'#' * 30}] 100%  200k/s"
