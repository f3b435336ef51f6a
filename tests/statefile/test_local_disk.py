"""Disks of state files: network file systems are refused with a directory that would do."""

from __future__ import annotations

from pathlib import Path, PurePath

import pytest

from fairbank.core.errors import InvalidInput
from fairbank.statefile import local_disk
from fairbank.statefile.local_disk import check_local_disk, file_system

MOUNTS = r"""
20 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
21 20 0:30 / /home rw,relatime shared:2 master:1 - nfs4 server:/home rw
22 21 8:2 / /home/local rw - xfs /dev/sdb1 rw
23 20 0:31 / /with\040blank rw - cifs //server/share rw
24 20 0:32 / /twice rw - nfs server:/a rw
25 20 0:33 / /twice rw - tmpfs tmpfs rw
""".strip()


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/", "ext4"),
        ("/homes/a", "ext4"),
        ("/home", "nfs4"),
        ("/home/a/.local/state", "nfs4"),
        ("/home/local/a", "xfs"),
        ("/with blank/a", "cifs"),
        ("/twice/a", "tmpfs"),
    ],
)
def test_file_system_is_that_of_the_nearest_mount(path: str, kind: str) -> None:
    assert file_system(PurePath(path), MOUNTS) == kind


def test_unknown_mounts_are_no_network() -> None:
    assert file_system(PurePath("/a"), "") == ""


def test_directory_that_does_not_exist_yet_is_judged_by_its_parents(tmp_path: Path) -> None:
    check_local_disk(tmp_path / "not" / "yet", field="spool")


def test_network_file_system_is_refused_with_a_place_that_would_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mounts = Path("/proc/self/mountinfo").read_text()
    here = file_system(Path(tmp_path.resolve()), mounts)
    # No server can be mounted in a test; so the file system of this directory counts as one.
    monkeypatch.setattr(local_disk, "NETWORK", frozenset({here}))
    with pytest.raises(InvalidInput, match="file locks may not hold") as refused:
        check_local_disk(tmp_path, field="spool")
    assert refused.value.field == "spool"
    assert "such as /var/tmp/fairbank-" in str(refused.value.remedy)
