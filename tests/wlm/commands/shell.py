"""Commands of a user as processes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.wlm.controller.small_cluster import SmallCluster


class Shell:
    """Commands of a user, in a directory."""

    def __init__(self, cluster: SmallCluster, directory: Path) -> None:
        self.directory = directory
        links = directory / "links"
        links.mkdir()
        for name in ("srun", "salloc", "sattach", "sbatch", "sbcast", "sacct"):
            script = links / name
            script.write_text(
                f'#!/bin/sh\nexec {sys.executable} -m fairbank.wlm.commands {name} "$@"\n'
            )
            script.chmod(0o700)
        self.environment = {
            "FAIRBANK_CLUSTER": str(cluster.directory),
            "PATH": f"{links}:{os.environ['PATH']}",
            "PYTHONPATH": str(Path.cwd()),
            "SHELL": "/bin/sh",
            "LC_ALL": "C",
        }

    def start(self, *words: str, **options: Any) -> subprocess.Popen[str]:
        defaults: dict[str, Any] = {
            "stdin": subprocess.DEVNULL,
            "stdout": subprocess.PIPE,
            "stderr": subprocess.PIPE,
        }
        return subprocess.Popen(
            [str(self.directory / "links" / words[0]), *words[1:]],
            env=self.environment,
            cwd=self.directory,
            text=True,
            **(defaults | options),
        )

    def run(self, *words: str, text: str | None = None) -> tuple[int, list[str], list[str]]:
        """Run a command. Return its exit code, and the lines of output and errors."""
        options = {} if text is None else {"stdin": subprocess.PIPE}
        with self.start(*words, **options) as process:
            out, err = process.communicate(text, timeout=60)
        return process.returncode, out.splitlines(), err.splitlines()

    def refusal(self, *words: str) -> str:
        """Return the errors of a command that is refused."""
        code, out, err = self.run(*words)
        text = "\n".join(err)
        assert (code, out, "Traceback" in text) == (1, [], False)
        return text


def sh(script: str) -> tuple[str, ...]:
    return "sh", "-c", script
