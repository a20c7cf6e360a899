"""The command line: ``python -m tenferro``."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

import tenferro
from tenferro.strd import MissingExtraError, StrdInputError
from tenferro.strd import cli as strd_cli

USAGE_STATUS = 2
INTERRUPTED_STATUS = 130
PIPE_STATUS = 141


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        # argparse would print the whole usage first; bad input gets one line.
        self.exit(USAGE_STATUS, f"{self.prog}: error: {message}\n")


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command.

    Parameters
    ----------
    argv : sequence of str, optional
        The arguments after ``python -m tenferro``; those of the process by default.

    Returns
    -------
    int
        The exit status: 0 for success, 1 for a job that missed its mark, 2 for bad input, 130 after Ctrl-C,
        141 where the reader of the output went away.
    """
    try:
        try:
            status = _dispatch(argv)
        except SystemExit as stop:  # argparse: help, version or an error it has already told
            status = stop.code if isinstance(stop.code, int) else USAGE_STATUS
        if sys.stdout is not None:
            sys.stdout.flush()
        return status
    except (StrdInputError, MissingExtraError) as error:
        return _complain(str(error))
    except KeyboardInterrupt:
        return INTERRUPTED_STATUS
    except BrokenPipeError:
        _drop_output()
        return PIPE_STATUS
    except OSError as error:  # every file that is read has its own message; this is a full disk
        _drop_output()
        return _complain(f"cannot write the output: {error.strerror or error}")


def _dispatch(argv: Sequence[str] | None) -> int:
    parser = _Parser(
        prog="python -m tenferro",
        description="Exact derivatives of NumPy code on the CPU.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"tenferro {tenferro.__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    command = commands.add_parser(
        "strd", help=strd_cli.SUMMARY, description=strd_cli.DESCRIPTION, allow_abbrev=False
    )
    strd_cli.add_arguments(command)
    command.set_defaults(execute=strd_cli.execute)
    args = parser.parse_args(argv)
    if not hasattr(args, "execute"):
        parser.print_help()
        return 0
    status: int = args.execute(args)
    return status


def _complain(message: str) -> int:
    with contextlib.suppress(OSError):
        if sys.stderr is not None:
            sys.stderr.write(f"python -m tenferro: error: {message}\n")
            sys.stderr.flush()
    return USAGE_STATUS


def _drop_output() -> None:
    """Send what is still buffered nowhere, or the interpreter would complain about it at its end."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        stdout = sys.stdout.fileno()
        os.dup2(os.open(os.devnull, os.O_WRONLY), stdout)


if __name__ == "__main__":
    sys.exit(main())
