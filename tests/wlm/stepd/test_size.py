"""Size of the step daemon: few modules and little memory."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import fairbank.wlm.stepd
from tests.wlm.stepd.conftest import StartStep
from tests.wlm.stepd.steps import private_kib

ALLOWED = frozenset(
    "__future__ _signal collections contextlib ctypes errno fcntl functools gc json os resource "
    "select signal socket struct sys termios time traceback typing".split()
)
PRIVATE_KIB_MAX = 4_096


def test_only_listed_modules_are_imported() -> None:
    folder = Path(fairbank.wlm.stepd.__path__[0])
    imported = set()
    for path in folder.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            match node:
                case ast.Import(names=names):
                    imported |= {name.name for name in names}
                case ast.ImportFrom(module=str(module)):
                    imported.add(module)
    own = {name for name in imported if name.startswith("fairbank.wlm.stepd.")}
    own.add("fairbank.wlm.protocol.frames")  # of the standard library only
    others = {name.partition(".")[0] for name in imported - own}
    assert others == ALLOWED
    assert others <= sys.stdlib_module_names


def test_step_daemon_has_at_most_4_mib_of_its_own(start_step: StartStep) -> None:
    many = {b"V%d" % number: b"x" for number in range(50_000)}
    step = start_step("echo ready\nexec sleep 600", environment=many, seconds=600)
    step.wait_for_lines(1)
    for _ in range(20):
        step.request({"kind": "state"})
    step.request({"kind": "signal", "number": 18, "only_script": False})
    assert private_kib(step.daemon) <= PRIVATE_KIB_MAX
    step.end()
    step.wait()
