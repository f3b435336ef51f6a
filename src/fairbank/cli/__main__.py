"""Module entry point: `python -m fairbank.cli` is `fairbank`."""

import sys

from fairbank.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
