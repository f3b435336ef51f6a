"""Isolated commands have their own processes, host name, network and files, and return only their
exit status.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.slurm.lab import release, source
from tests.slurm.lab.packages import Unobtainable
from tests.slurm.lab.release import Release

MARK = Path("/etc/written-by-a-test")


@pytest.fixture
def release_root() -> Release:
    """Return a release whose root directory exists; none is created."""
    names = [folder.name for folder in release.CACHE.glob("*") if (folder / "root").exists()]
    if os.geteuid() != 0 or not names:
        pytest.skip(
            "no root of another release is here: `make test-slurm RELEASE=trixie` makes one, as"
            " root"
        )
    return Release(names[0])


def run_isolated(checkout: Path, name: str, script: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.slurm.lab", "within", name, "sh", "-c", script]
    return subprocess.run(command, cwd=checkout, capture_output=True, text=True, check=False)


@pytest.mark.slurm
def test_isolated_command_has_its_own_namespaces(checkout: Path, release_root: Release) -> None:
    process = run_isolated(
        checkout,
        release_root.name,
        f"pwd; hostname; ls /sys/class/net; echo /proc/[0-9]* | wc -w; echo here > {MARK}; exit 7",
    )
    assert process.returncode == 7, process.stderr
    folder, host, *network, processes = process.stdout.split()
    assert (folder, host, network) == (str(checkout), "head", ["lo"])
    assert int(processes) < 6
    assert not MARK.exists()
    assert run_isolated(checkout, release_root.name, f"test ! -e {MARK}").returncode == 0, (
        "what one command wrote is gone with it"
    )
    assert str(release.CACHE) not in Path("/proc/self/mounts").read_text()


@pytest.mark.slurm
def test_isolated_command_reaches_no_network(checkout: Path, release_root: Release) -> None:
    script = "import socket; socket.create_connection(('198.51.100.1', 80), 5)"
    process = run_isolated(checkout, release_root.name, f'python3 -c "{script}"')
    assert "Network is unreachable" in process.stderr


def test_slurm_is_kept_by_release_and_version(tmp_path: Path) -> None:
    (tmp_path / "META").write_text("  Name:\t\tslurm\n  Version:\t23.11.11\n")
    (tmp_path / "configure").touch()
    slurm = source.read(tmp_path, Release("bookworm"))
    assert slurm.installed == release.CACHE / "bookworm" / "slurm-23.11.11"
    assert slurm.mounts == {"SLURM_SOURCE": str(tmp_path), "SLURM_INSTALLED": str(slurm.installed)}


def test_directory_without_slurm_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        Unobtainable, match="is not a source of Slurm: META or configure is missing"
    ):
        source.read(tmp_path, Release("bookworm"))


def test_slurm_that_is_not_built_names_the_command(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(release, "CACHE", tmp_path / "cache")
    (tmp_path / "META").write_text("  Version:\t23.11.11\n")
    (tmp_path / "configure").touch()
    with pytest.raises(Unobtainable, match=f"install --source {tmp_path} bookworm` builds it"):
        source.found(tmp_path, Release("bookworm"))


@pytest.mark.parametrize("name", ["../trixie", "trixie main", "", "TRIXIE", "13"])
def test_invalid_release_name_is_refused(name: str) -> None:
    with pytest.raises(Unobtainable, match="is not a release of Debian; say RELEASE=trixie"):
        release.found(name)


def test_missing_release_names_the_command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(release, "CACHE", tmp_path)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    with pytest.raises(Unobtainable, match="`python -m tests.slurm.lab install trixie` makes one"):
        release.found("trixie")
    monkeypatch.setattr(release, "MAKER", "no-such-program")
    with pytest.raises(
        Unobtainable,
        match=(
            "no-such-program is not installed, which makes a root of Debian trixie; apt-get install"
        ),
    ):
        release.made("trixie")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(Unobtainable, match="only root can make and enter a root of Debian trixie"):
        release.made("trixie")
