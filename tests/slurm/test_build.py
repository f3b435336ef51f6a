"""`plugins/build` builds only for the installed Slurm."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from fairbank.slurm.parsers.config import RECORDED
from tests.slurm.prep_cluster import UNSUPPORTED

pytestmark = pytest.mark.slow


def build(checkout: Path, into: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [str(checkout / "plugins" / "build"), str(into)]
    return subprocess.run(
        command, env=os.environ | environment, capture_output=True, text=True, check=False
    )


def source(folder: Path, version: str) -> Path:
    (folder / "src" / "slurmctld").mkdir(parents=True)
    (folder / "src" / "slurmctld" / "slurmctld.h").touch()
    (folder / "META").write_text(f"  Name:\t\tslurm\n  Version:\t{version}\n")
    return folder


@pytest.mark.parametrize("version", ["21.08.8", "22.11.1", "26.11.0", "22.050.1"])
def test_unsupported_slurm_is_refused(checkout: Path, tmp_path: Path, version: str) -> None:
    process = build(checkout, tmp_path, SLURM_VERSION=version)
    assert process.returncode == 1
    assert f"Slurm {version}: {UNSUPPORTED} 22.05, 23.02, " in process.stderr
    assert '"Without the plug-in" in docs/howto/install-next-to-slurm.md' in process.stderr


def test_install_guide_lists_the_releases(checkout: Path) -> None:
    (known,) = re.findall(r'^KNOWN="(.*)"$', (checkout / "plugins/build").read_text(), re.MULTILINE)
    guide = (checkout / "docs/howto/install-next-to-slurm.md").read_text()
    table = guide.partition("| Release | Compiled with | Run | Recorded |")[2].partition("\n\n")[0]
    assert re.findall(r"^\| (\d\S+) \|", table, re.MULTILINE) == known.split()
    recorded = re.findall(r"^\| (\d\d)\.(\d\d) \|.* yes \|$", table, re.MULTILINE)
    assert {(int(year), int(month)) for year, month in recorded} == RECORDED


def path_with(folder: Path, *names: str) -> str:
    """Return a PATH with these programs and no others."""
    folder.mkdir()
    for name in names:
        (folder / name).symlink_to(str(shutil.which(name)))
    return str(folder)


def test_missing_compiler_names_the_package(checkout: Path, tmp_path: Path) -> None:
    path = path_with(tmp_path / "bin", "sh", "dirname", "sed", "awk", "mkdir")
    process = build(checkout, tmp_path / "out", SLURM_VERSION="22.05.8", PATH=path)
    assert process.returncode == 1
    assert process.stderr.startswith(
        "plugins/build: no C compiler here (cc): apt-get install gcc libc6-dev"
    )
    assert not (tmp_path / "out").exists()


def test_missing_c_headers_name_the_package(checkout: Path, tmp_path: Path) -> None:
    process = build(checkout, tmp_path / "out", SLURM_VERSION="22.05.8", CC="false --of-some-kind")
    assert process.returncode == 1
    assert (
        "false --of-some-kind finds no headers of the C library: apt-get install libc6-dev"
        in process.stderr
    )


def test_source_of_another_version_is_refused(checkout: Path, tmp_path: Path) -> None:
    process = build(
        checkout,
        tmp_path / "out",
        SLURM_VERSION="22.05.8",
        SLURM_SOURCE=str(source(tmp_path / "slurm", "22.05.7")),
    )
    assert process.returncode == 1
    assert (
        "is Slurm 22.05.7, and Slurm 22.05.8 is installed: slurmctld would refuse the plug-in"
        in process.stderr
    )


def test_directory_without_source_is_refused(checkout: Path, tmp_path: Path) -> None:
    process = build(checkout, tmp_path, SLURM_VERSION="22.05.8", SLURM_SOURCE=str(tmp_path))
    assert process.returncode == 1
    assert "is not a source of Slurm" in process.stderr
