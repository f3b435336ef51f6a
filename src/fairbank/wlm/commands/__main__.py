"""Program for `python -m fairbank.wlm.commands NAME ARGS`."""

import sys

from fairbank.wlm.commands.program import PROGRAM, main

sys.argv[0] = PROGRAM
main()
