"""Golden files: output of commands, word for word, in tests/golden. After an intended change, run
the test with WRITE_GOLDEN=1 and read the diff.
"""

from __future__ import annotations

import os
from pathlib import Path

GOLDEN = Path(__file__).resolve().parents[1] / "golden"


def kept(path: Path, text: str) -> str:
    """Return the text of the file; with WRITE_GOLDEN, write it first."""
    if os.environ.get("WRITE_GOLDEN"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return path.read_text()
