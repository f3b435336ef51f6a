"""Program for `python -m fairbank.wlm.commands NAME ARGS`."""

import sys

from fairbank.wlm.commands.program import run

sys.exit(run(sys.argv[1], sys.argv[2:]) if sys.argv[1:] else run("", []))
