"""Commands `fairbank init` and `fairbank serve`: create a bank on this host, and run it."""

from __future__ import annotations

from contextlib import suppress
from shlex import quote
from typing import TYPE_CHECKING

from fairbank.cli.framework.command import host_command
from fairbank.cli.framework.options import add_config, add_json, add_option, at_least_one
from fairbank.report.cells import plain

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Sequence

    from fairbank.cli.framework.context import Context
    from fairbank.cli.framework.parser import Parser


def _add_init(parser: Parser) -> None:
    about = (
        "where settings, secret and store go (default: ~/.local/state/fairbank); a store of an"
        " older Fairbank whose fairbank.toml is there is migrated: stop the servers and make a"
        " backup first"
    )
    add_option(parser, "directory DIRECTORY", about, nargs="?")
    about = "sqlite:///FILE (default: in DIRECTORY) or postgresql://HOST/DATABASE"
    add_option(parser, "--store URL", about)
    add_json(parser)


def _init(context: Context, options: Namespace) -> int:
    from fairbank.setup.bank_settings import bank_places, default_directory, settings_of
    from fairbank.setup.init import init

    config = f"{options.directory}/fairbank.toml" if options.directory else None
    steps = init(options.directory, options.store)
    if options.form:
        # Not the default file: FAIRBANK_CONFIG may name that of another bank.
        file = config or f"{default_directory()}/fairbank.toml"
        settings = settings_of(file)
        context.bank = settings.server.name
        context.print_json("fairbank.init/1", {"done": steps}, more=bank_places(file, settings))
    else:
        for step in steps:
            context.print_text(plain(step))
    where = f" --config {quote(config)}" if config else ""
    context.note(f"Look through the settings, then start the bank with: fairbank serve{where}")
    return 0


INIT = host_command(
    "create a bank on this host (settings, secret, store), or migrate an older one",
    (
        "fairbank init                              a bank of one's own",
        "fairbank init /etc/fairbank                make a bank there, or migrate that which is"
        " there",
        "fairbank init /etc/fairbank --store postgresql:///fairbank",
    ),
    _add_init,
    _init,
)


def _add_serve(parser: Parser) -> None:
    add_config(parser)
    about = "listen on this TCP port too (default: as the settings say)"
    add_option(parser, "--port N", about, type=at_least_one)


def _serve(context: Context, options: Namespace) -> int:
    from fairbank.setup import server

    def ready(addresses: Sequence[str]) -> None:
        with suppress(OSError):  # the disk of the log is full
            context.note(f"The bank listens at {' and '.join(addresses)}")

    return server.run(options.config, port=options.port, ready=ready)


SERVE = host_command(
    "run the bank until Ctrl-C or SIGTERM",
    ("{}", "{} --config /etc/fairbank/fairbank.toml", "{} --port 8080"),
    _add_serve,
    _serve,
)
