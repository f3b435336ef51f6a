"""Which releases of SQLite may be trusted with a write-ahead log.

From 3.7.0 on, a commit that met a checkpoint of another connection could lose pages or damage the file (the "WAL-reset
bug"); 3.51.3 ended that, and so did the later patch releases of two older lines (sqlite.org, "Write-Ahead Logging", section 11).
"""

from __future__ import annotations

Version = tuple[int, int, int]

FIRST_MENDED: Version = (3, 51, 3)
MENDED_LINES: tuple[Version, ...] = ((3, 44, 6), (3, 50, 7))


def wal_is_safe(version: Version) -> bool:
    """Whether `version` has a write-ahead log without the WAL-reset bug."""
    if version >= FIRST_MENDED:
        return True
    return any(version[:2] == line[:2] and version >= line for line in MENDED_LINES)
