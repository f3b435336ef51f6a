"""`python -m fairbank.compose` is `fairbank`."""

import sys

from fairbank.compose import main

if __name__ == "__main__":
    sys.exit(main())
