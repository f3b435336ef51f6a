"""Command `fairbank init`: create a bank on this host."""

from __future__ import annotations

from shlex import quote
from typing import TYPE_CHECKING

from fairbank.cli.framework.command import Command
from fairbank.report.cells import plain

if TYPE_CHECKING:
    from argparse import Namespace

    from fairbank.cli.framework.context import Context
    from fairbank.cli.framework.parser import Parser


def add(parser: Parser) -> None:
    parser.add_argument(
        "directory",
        metavar="FOLDER",
        nargs="?",
        help=(
            "where settings, secret and store go (default: ~/.local/state/fairbank); books of an"
            " older Fairbank whose fairbank.toml is there are migrated: stop the servers and make a"
            " backup first"
        ),
    )
    parser.add_argument(
        "--store",
        metavar="URL",
        help="sqlite:///FILE (default: in FOLDER) or postgresql://HOST/DATABASE",
    )


def run(context: Context, options: Namespace) -> int:
    from fairbank.setup.init import init

    for line in init(options.directory, options.store):
        context.say(plain(line))
    where = f" --config {quote(f'{options.directory}/fairbank.toml')}" if options.directory else ""
    context.note(f"Look through the settings, then start the bank with: fairbank serve{where}")
    return 0


COMMAND = Command(
    "create a bank on this host (settings, secret, store), or migrate an older one",
    (
        "fairbank init                              a bank of one's own",
        (
            "fairbank init /etc/fairbank                make a bank there, or migrate that which is"
            " there"
        ),
        "fairbank init /etc/fairbank --store postgresql:///fairbank",
    ),
    add,
    run,
    reads=False,
    asks=False,
)


def add_config(parser: Parser) -> None:
    """Add --config of the commands on the bank's own host."""
    parser.add_argument(
        "--config",
        metavar="FILE",
        help="the bank's settings (FAIRBANK_CONFIG; default: where fairbank init put them)",
    )
