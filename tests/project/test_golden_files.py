"""Size of the golden files: a person must be able to review their diffs."""

from __future__ import annotations

from pathlib import Path

MAX_BYTES = 50_000
MAX_LINES = 20_000


def test_golden_files_are_small(checkout: Path) -> None:
    files = [path for path in (checkout / "tests" / "golden").rglob("*") if path.is_file()]
    assert [str(path) for path in files if path.stat().st_size > MAX_BYTES] == []
    assert sum(path.read_bytes().count(b"\n") for path in files) < MAX_LINES


def test_every_golden_directory_is_described(checkout: Path) -> None:
    golden = checkout / "tests" / "golden"
    text = (golden / "README.md").read_text()
    assert [path.name for path in golden.iterdir() if path.is_dir() and path.name not in text] == []
