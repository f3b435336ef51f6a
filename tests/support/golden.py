"""What people see, kept word for word in tests/golden. After a wanted change: WRITE_GOLDEN=1 and
the test, and read the difference.
"""

from __future__ import annotations

import os
from pathlib import Path

GOLDEN = Path(__file__).resolve().parents[1] / "golden"


def kept(path: Path, told: str) -> str:
    """What is kept there; what is told now, where that is wanted."""
    if os.environ.get("WRITE_GOLDEN"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(told)
    return path.read_text()
