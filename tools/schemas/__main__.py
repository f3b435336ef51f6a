"""`python -m tools.schemas`: publish new schemas and fields (docs/reference/json.md).

It refuses to publish what breaks a published schema.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser

from fairbank import __version__
from tools.schemas.present import present_schemas
from tools.schemas.published import (
    FILE,
    KINDS,
    losses,
    read_published,
    unpublished,
    with_present,
    write_published,
)


def main(words: list[str] | None = None) -> int:
    """Check or publish; return 1 if something breaks a published schema, or a check finds a new
    one.
    """
    parser = ArgumentParser(prog="python -m tools.schemas", allow_abbrev=False)
    parser.add_argument("--check", action="store_true", help="write nothing")
    parser.add_argument(
        "--end", action="append", default=[], metavar="KEY", help="end a schema without successor"
    )
    options = parser.parse_args(words)
    present = present_schemas()
    try:
        published = read_published(FILE.read_text())
    except (OSError, ValueError) as error:  # a missing file is not written again
        print(error)
        return 1
    for key in options.end:
        if not any(key in published[kind].keys() - present[kind] for kind in KINDS):
            print(f"{key} is not a published schema that is missing now")
            return 1
    published["ended"] |= dict.fromkeys(options.end, __version__)
    broken = list(losses(published, present))
    for line in broken:
        print(f"{line}; what is published only grows (docs/reference/json.md)")
    new = list(unpublished(published, present)) if options.check else []
    for line in new:
        print(f"not published: {line}; run `make schemas`")
    if not options.check and not broken:
        FILE.write_text(write_published(with_present(published, present)))
    return 1 if broken or new else 0


if __name__ == "__main__":
    sys.exit(main())
