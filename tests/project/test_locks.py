"""Lock files: they match pyproject.toml, with a hash for every package and no download address."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.locks import CLIENT, DEV, FOREIGN, RUNTIME, SETUP, faults, main

PROJECT = {
    "project": {
        "dependencies": ["teller"],
        "optional-dependencies": {"client": [], "server": ["Bank-Lib>=1.2"], "plots": ["pen"]},
    },
    "dependency-groups": {"dev": ["ruler"], "setup": ["installer==3"]},
}
HASH = " \\\n    --hash=sha256:00\n"
GOOD = {
    RUNTIME: f"bank-lib==1.4{HASH}teller==5{HASH}",
    CLIENT: f"teller==5{HASH}",
    DEV: f"bank-lib==1.4{HASH}pen==3{HASH}ruler==2{HASH}teller==5{HASH}",
    SETUP: f"installer==3{HASH}",
    FOREIGN: f"visitor==6{HASH}",
}
TOOLS = ["visitor>=6"]


@pytest.mark.parametrize("lock", [RUNTIME, CLIENT, DEV, SETUP, FOREIGN])
def test_locks_contain_no_download_address(checkout: Path, lock: str) -> None:
    assert "://" not in (checkout / lock).read_text()


def test_locks_match_the_project(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(checkout)
    assert (main(), capsys.readouterr().err) == (0, "")


def test_valid_locks_have_no_faults() -> None:
    assert list(faults(PROJECT, GOOD, TOOLS)) == []


@pytest.mark.parametrize(
    ("lock", "text", "complaint"),
    [
        (RUNTIME, "", "requirements.lock: does not satisfy Bank-Lib>=1.2"),
        (RUNTIME, f"bank-lib==1.1{HASH}", "requirements.lock: does not satisfy Bank-Lib>=1.2"),
        (RUNTIME, f"bank-lib==1.4{HASH}", "requirements.lock: does not satisfy teller"),
        (DEV, f"bank-lib==1.4{HASH}", "requirements-dev.lock: does not satisfy ruler"),
        (DEV, f"bank-lib==1.4{HASH}ruler==2{HASH}", "requirements-dev.lock: does not satisfy pen"),
        (
            DEV,
            f"bank-lib==1.5{HASH}ruler==2{HASH}",
            "requirements-dev.lock: bank-lib is not the version of requirements.lock",
        ),
        (CLIENT, "", "requirements-client.lock: does not satisfy teller"),
        (
            CLIENT,
            f"teller==6{HASH}",
            "requirements-client.lock: teller is not the version of requirements.lock",
        ),
        (FOREIGN, f"visitor==5{HASH}", "requirements-foreign.lock: does not satisfy visitor>=6"),
        (SETUP, f"installer==4{HASH}", "requirements-setup.lock: does not satisfy installer==3"),
        (SETUP, "installer==3\n", "requirements-setup.lock: installer==3 has no hash"),
        (
            SETUP,
            f"--index-url https://example.org\ninstaller==3{HASH}",
            "requirements-setup.lock: contains a download address",
        ),
    ],
)
def test_stale_lock_is_reported(lock: str, text: str, complaint: str) -> None:
    assert any(
        fault.startswith(complaint) for fault in faults(PROJECT, {**GOOD, lock: text}, TOOLS)
    )
