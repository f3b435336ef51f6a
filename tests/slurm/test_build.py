"""`plugins/build` builds for the Slurm that is there, and for no other."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow


def build(checkout: Path, into: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [str(checkout / "plugins" / "build"), str(into)]
    return subprocess.run(command, env=os.environ | environment, capture_output=True, text=True, check=False)


def source(folder: Path, version: str) -> Path:
    (folder / "src" / "slurmctld").mkdir(parents=True)
    (folder / "src" / "slurmctld" / "slurmctld.h").touch()
    (folder / "META").write_text(f"  Name:\t\tslurm\n  Version:\t{version}\n")
    return folder


@pytest.mark.parametrize("version", ["21.08.8", "23.02.1", "25.11.0", "22.050.1"])
def test_another_slurm_is_refused(checkout: Path, tmp_path: Path, version: str) -> None:
    done = build(checkout, tmp_path, SLURM_VERSION=version)
    assert done.returncode == 1
    assert f"Slurm {version}: these plug-ins are made for 22.05 and 24.11;" in done.stderr
    assert '"Without the plug-in" in docs/howto/install-next-to-slurm.md' in done.stderr


def test_a_source_of_another_patch_level_is_refused(checkout: Path, tmp_path: Path) -> None:
    done = build(checkout, tmp_path / "out", SLURM_VERSION="22.05.8", SLURM_SOURCE=str(source(tmp_path / "slurm", "22.05.7")))
    assert done.returncode == 1
    assert "is Slurm 22.05.7, and Slurm 22.05.8 is installed: slurmctld would refuse the plug-in" in done.stderr


def test_a_folder_that_is_no_source_is_refused(checkout: Path, tmp_path: Path) -> None:
    done = build(checkout, tmp_path, SLURM_VERSION="22.05.8", SLURM_SOURCE=str(tmp_path))
    assert done.returncode == 1
    assert "holds no source of Slurm" in done.stderr
