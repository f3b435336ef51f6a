"""Copy of Fairbank that every user of the lab can read. The checkout and its environment may be
unreadable for them.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import msgspec
import numpy
import pytest

import fairbank
from tests.slurm.lab.cluster import Cluster

PYTHON = "/usr/bin/python3"
"""Debian's Python, which every user may run; the checkout's own may be in a user's home."""
SPROJECT = (
    "import sys; sys.argv[0] = 'sproject'; from fairbank.cli.main import sproject;"
    " sys.exit(sproject())"
)


def require_system_python() -> None:
    """Skip the test if Debian's Python has another version than this environment, whose msgspec
    would not load.
    """
    output = subprocess.run(
        [PYTHON, "-c", "import sys; print(*sys.version_info[:2])"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    if output.split() != [str(part) for part in sys.version_info[:2]]:
        pytest.skip(f"msgspec of this environment is not for {PYTHON}")


def install_client(cluster: Cluster, *, numbers: bool = False) -> Mapping[str, str]:
    """Copy the client into the cluster's directory, with NumPy if `numbers` is set. Return the
    environment variables that its users need.
    """
    lib = cluster.place.folder / "lib"
    for package in (fairbank, msgspec, *([numpy] if numbers else [])):
        folder = Path(package.__file__ or "").parent
        for part in (
            folder,
            folder.with_name(f"{folder.name}.libs"),
        ):  # a wheel has its libraries in a directory of this name
            if part.exists():
                shutil.copytree(part, lib / part.name, dirs_exist_ok=True)
    return {"PYTHONPATH": str(lib), "PYTHONDONTWRITEBYTECODE": "1"}
