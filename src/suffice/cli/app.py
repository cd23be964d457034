"""The command line: parsing and printing only. Exit statuses are those of ``suffice.errors``.

No option is given twice that is not declared to repeat, and no value is empty: the last of two windows, or
the default in place of an empty ledger, would decide in silence. What an operator pins is asked here too,
before a command does anything.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import os
import signal
import sys
from copy import copy
from functools import cache
from importlib import import_module
from inspect import getdoc
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup
from typer.exceptions import TyperException
from typer.main import get_command

import suffice
from suffice.cli import messages, output
from suffice.cli.late_modules import postpone_unused_modules
from suffice.cli.options import JsonOption  # noqa: TC001 - Typer reads the annotations
from suffice.cli.output import forget_withdrawn, say, say_json
from suffice.errors import ReleaseInterruptedError, SufficeError, UsageError, bounded_message
from suffice.monitoring import records
from suffice.profile import finding, settings

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


_WIDTH = 100
CLOSED_PIPE = 128 + 13
"""The status of a program whose reader has gone, as shells give it to one that SIGPIPE ends."""
GARBAGE = 200_000
"""Objects made before a collection: at the 700 of Python, imports alone spend a tenth of their time on it."""
REPORT_LEAKS = frozenset({"duckdb", "jaxlib"})
"""Libraries that print at the end of a process what is left of theirs."""
PANELS = {
    "Read what was released (consumer)": (
        "list show table posterior quantiles tree adopt compare compare-priors pool calibrate model publish "
        "publications verify catalogue demo"
    ),
    "Own the data (owner)": "inspect ledger store audit withdraw disclose",
    "Make releases (operator)": (
        "init plan rehearse release backfill status describe keys cluster config doctor metrics"
    ),
}
"""For whom commands are, in the order of the help: every command in one panel."""


COMMANDS = {
    "demo": ("suffice.cli.app", "demo"),
    "init": ("suffice.cli.inspect", "init"),
    "plan": ("suffice.cli.plan", "plan"),
    "inspect": ("suffice.cli.inspect", "inspect"),
    "release": ("suffice.cli.release", "release"),
    "rehearse": ("suffice.cli.release", "rehearse"),
    "audit": ("suffice.cli.audit", "audit"),
    "backfill": ("suffice.cli.windows", "backfill"),
    "status": ("suffice.cli.windows", "status"),
    "metrics": ("suffice.cli.monitor", "metrics"),
    "doctor": ("suffice.cli.monitor", "doctor"),
    "list": ("suffice.cli.release", "list_releases"),
    "show": ("suffice.cli.release", "show"),
    "compare": ("suffice.cli.compare", "compare"),
    "pool": ("suffice.cli.pool", "pool"),
    "compare-priors": ("suffice.cli.compare", "compare_priors"),
    "verify": ("suffice.cli.trust", "verify"),
    "disclose": ("suffice.cli.trust", "disclose"),
    "withdraw": ("suffice.cli.withdrawal", "withdraw"),
    "describe": ("suffice.cli.withdrawal", "describe"),
    "adopt": ("suffice.cli.adopt", "adopt"),
    "table": ("suffice.cli.table", "table"),
    "catalogue": ("suffice.cli.catalogue", "catalogue"),
    "posterior": ("suffice.cli.posterior", "posterior"),
    "quantiles": ("suffice.cli.quantiles", "quantiles"),
    "tree": ("suffice.cli.tree", "tree"),
    "publish": ("suffice.cli.publish", "publish"),
    "calibrate": ("suffice.cli.calibration", "calibrate"),
}
"""Where each command is, as module and function here: of a command line only its own is imported."""
GROUPS = {
    "ledger": ("suffice.cli.ledger", "app"),
    "keys": ("suffice.cli.keys", "app"),
    "config": ("suffice.cli.config", "app"),
    "cluster": ("suffice.cli.keys", "cluster_app"),
    "store": ("suffice.cli.store", "app"),
    "publications": ("suffice.cli.publications", "app"),
}
MODELS = "model"
COMMANDS_OF_MODELS = {
    "classify": ("suffice.cli.predict", "classify"),
    "predict": ("suffice.cli.predict", "predict"),
    "query": ("suffice.cli.query", "query"),
    "transitions": ("suffice.cli.transitions", "transitions"),
    "field": ("suffice.cli.field", "field"),
    "synthesize": ("suffice.cli.synthesize", "synthesize"),
    "hidden-markov": ("suffice.cli.hidden_markov", "hidden_markov"),
    "small-areas": ("suffice.cli.small_areas", "small_areas"),
}


class StrictCommand(TyperCommand):
    """A command whose words are checked, and whose ledger, store and the like are what the profile allows."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the words of the command; of an option that was left out no reader is made: 1 ms each."""
        given = _check_words(self, ctx, args)
        asked = copy(self)
        asked.params = [param for param in self.params if param in given or not may_be_left_out(param)]
        rest = super(StrictCommand, asked).parse_args(ctx, args)
        ctx.params |= {str(param.name): None for param in self.params if param not in asked.params}
        _ask_profile(ctx)
        settings.log_format()  # before anything is done: one that is misspelt would be found by its absence
        records.begin(ctx.command_path.partition(" ")[2])
        return rest


class StrictGroup(TyperGroup):
    """A group of commands whose own words are checked; the whole command line shows whom each is for."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands, in panels where there are any."""
        if ctx.parent is not None:
            super().format_commands(ctx, formatter)
            return
        first = max(map(len, self.commands))
        for panel, names in PANELS.items():
            limit = formatter.width - 6 - first
            rows = [(name, self.commands[name].get_short_help_str(limit)) for name in names.split()]
            with formatter.section(panel):
                formatter.write_dl([(name.ljust(first), text) for name, text in rows])

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the words before the command's name; where there are none, show what there is, and succeed."""
        if not args and self.no_args_is_help:
            say(ctx.get_help())
            raise typer.Exit
        _check_words(self, ctx, args)
        return super().parse_args(ctx, args)


_SETTINGS: dict[str, Any] = {"max_content_width": _WIDTH, "help_option_names": ["--help", "-h"]}


def make_strict(app: typer.Typer) -> None:
    """Let every command and group below `app` check its words, and show the whole of its first line."""
    app.info.cls = StrictGroup
    app.info.context_settings = _SETTINGS
    for command in app.registered_commands:
        command.cls = StrictCommand
        if command.callback is not None:
            command.short_help = (getdoc(command.callback) or "").partition("\n")[0]
        command.context_settings = _SETTINGS
    for group in app.registered_groups:
        group.cls = StrictGroup
        if group.typer_instance is not None:
            make_strict(group.typer_instance)


def own_words(error: TyperException) -> str:
    """Return what is wrong with a command's words, without the words of the library that found it."""
    text = str(getattr(error, "format_message", error.__str__)()) or "see --help"
    if text == "Missing argument 'statistic'.":
        return f"{text} `suffice show RELEASE` lists the statistics of a release"
    place, is_of_input, rest = text.partition(": Input should be ")
    if not is_of_input:
        return text
    kind, is_kind, _ = rest.removeprefix("a valid ").partition(",")
    if rest.startswith("a valid "):
        return f"{place}: this is no valid {kind if is_kind else rest.removeprefix('a valid ')}"
    return f"{place}: this should be {rest}"


def may_be_left_out(param: Any) -> bool:
    """Whether an option is None where its command does not name it, and nothing else is asked."""
    is_single = param.nargs == 1 and not getattr(param, "multiple", False)
    is_bare = param.default is None and param.callback is None and param.envvar is None
    return is_single and is_bare and not param.required and param.opts[0].startswith("-")


def _check_words(command: TyperCommand | TyperGroup, ctx: Any, args: list[str]) -> list[Any]:
    """Check the words, and return the parameters that they name."""
    values, _, order = command.make_parser(ctx).parse_args(args=list(args))
    for param in {id(param): param for param in order}.values():
        is_option = param.opts[0].startswith("-")
        place = param.opts[0] if is_option else str(getattr(param, "metavar", None) or param.name)
        repeats = getattr(param, "multiple", False) or param.nargs != 1
        if not repeats and sum(other is param for other in order) > 1:
            message = f"{place} is given more than once: give it once"
            raise UsageError(message)
        value = values.get(str(param.name))
        for text in _each(value):
            if isinstance(text, str):
                settings.check_text(place, text)
    return order


def _each(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]


def _ask_profile(ctx: Any) -> None:
    """Replace what the command was given by what the profile allows; refuse what lies outside."""
    profile = settings.pinned_profile()
    for name in settings.VARIABLES.keys() & ctx.params.keys():
        source = ctx.get_parameter_source(name)
        is_given = source is not None and source.name == "COMMANDLINE"
        if ctx.params[name] is None and not is_given:
            continue  # this command does without one
        given = str(ctx.params[name]) if is_given else None
        ctx.params[name] = settings.setting(name, given, profile=profile, option=f"--{name}").value
    if "public_keys" in ctx.params:
        ctx.params["public_keys"] = settings.public_keys(ctx.params["public_keys"] or None, profile=profile)


def _print_version(wanted: bool) -> None:
    if wanted:
        say(f"suffice {suffice.__version__}")
        raise typer.Exit


def options(
    *,
    version: Annotated[  # noqa: ARG001 - its callback prints it
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
    profile: Annotated[
        str | None,
        typer.Option("--config", metavar="FILE", help="The deployment profile. Default: SUFFICE_CONFIG."),
    ] = None,
) -> None:
    """Release differentially private sufficient statistics once; draw posteriors from them for ever."""
    finding.CHOSEN.set(profile)


def demo(
    directory: Annotated[Path, typer.Option("--dir", help="Where to work.")] = Path("demo"),
    *,
    as_json: JsonOption = False,
) -> None:
    """Run the whole main job on real flight records, offline."""
    from suffice.cli.demo import run_demo

    summary = run_demo(directory, quiet=as_json)
    if as_json:
        output.print_json(summary)


def whole() -> typer.Typer:
    """Return the whole command line; it is put together once."""
    return _of((*COMMANDS, *GROUPS, MODELS))


@cache
def _of(names: tuple[str, ...]) -> typer.Typer:
    """Put together some commands, whose modules alone are imported."""
    app = typer.Typer(
        name="suffice",
        help="Release differentially private sufficient statistics once; draw posteriors from them for ever.",
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        add_completion=False,
        no_args_is_help=True,
    )
    app.callback()(options)
    for name in names:
        if name in COMMANDS:
            app.command(name)(_at(COMMANDS[name]))
        else:
            app.add_typer(_models() if name == MODELS else _at(GROUPS[name]), name=name)
    make_strict(app)
    return app


def _models() -> typer.Typer:
    models = typer.Typer(
        help="Models over a release: predict, query, follow over time. Costs no privacy.",
        rich_markup_mode=None,
        no_args_is_help=True,
    )
    for name, place in COMMANDS_OF_MODELS.items():
        models.command(name)(_at(place))
    return models


def _at(place: tuple[str, str]) -> Any:
    module, name = place
    return getattr(import_module(module), name)


@cache
def command() -> Callable[..., object]:
    """Return the whole command line as what is called with words."""
    return get_command(whole())


def command_for(words: Sequence[str]) -> Callable[..., object]:
    """Return the command line with the one command that words begin with: all take .1 s to put together.

    It is whole where words begin with none, and its help may be asked.
    """
    first = words[0] if words else ""
    if first in COMMANDS or first in GROUPS or first == MODELS:
        return _command_alone((first,))
    return _command_alone(()) if list(words) == ["--version"] else command()


@cache
def _command_alone(names: tuple[str, ...]) -> Callable[..., object]:
    return get_command(_of(names))


def _fail(name: str, message: str, status: int, *, as_json: bool) -> NoReturn:
    if as_json:
        say_json({"error": {"type": name, "message": message, "exit_status": status}}, indent=None)
    messages.show_error(name, message, status, as_text=not as_json)
    sys.exit(status)


def _interrupt(_signal: int, _frame: object) -> NoReturn:
    raise KeyboardInterrupt


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line, and exit with its status."""
    chosen, log = finding.CHOSEN.set(None), records.CURRENT.set(None)
    collected_at = gc.get_threshold()
    gc.set_threshold(GARBAGE)
    # Else the process is a program's, whose files may be closed by what is collected.
    ends = arguments is None
    if ends:
        atexit.unregister(leave_garbage)
        atexit.register(leave_garbage)
    postpone_unused_modules()
    try:
        forget_withdrawn()
        _run(list(sys.argv[1:] if arguments is None else arguments))
    except (SystemExit, BrokenPipeError) as end:
        status = getattr(end, "code", None)
        if isinstance(end, BrokenPipeError) or isinstance(end.__context__, BrokenPipeError):
            status = _forget_reader()  # the library that reads the words ends with 1
        if records.CURRENT.get() is not None:
            records.write("ended", exit_status=status if isinstance(status, int) else 0)
        sys.exit(status)
    finally:
        if not ends:  # else the lower threshold would let everything be looked through, just before the end
            gc.set_threshold(*collected_at)
        records.CURRENT.reset(log)
        finding.CHOSEN.reset(chosen)  # of this command alone, where a program runs several


def leave_garbage() -> None:
    """Let what is left at the end go with the process: looking through it is a fifth of a small question."""
    if REPORT_LEAKS.isdisjoint(sys.modules):
        gc.freeze()


def _forget_reader() -> int:
    """Let what is still to be printed go nowhere, as nobody reads it; return the status of a closed pipe."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.__stdout__, sys.__stderr__):
        if stream is not None:
            with contextlib.suppress(BrokenPipeError):
                stream.flush()
            os.dup2(nowhere, stream.fileno())
    return CLOSED_PIPE


def _run(words: list[str]) -> NoReturn:
    """Run one command, and exit with its status."""
    as_json = "--json" in words
    # A scheduler stops jobs with SIGTERM: treat it as an interrupt, so that the charge is settled.
    signal.signal(signal.SIGTERM, _interrupt)
    messages.show_warnings()
    try:
        status = command_for(words)(words, standalone_mode=False, prog_name="suffice")
        sys.stdout.flush()  # a closed pipe shows here at the latest
    except SufficeError as error:
        _fail(type(error).__name__, str(error), error.exit_status, as_json=as_json)
    except TyperException as error:
        _fail("UsageError", bounded_message(own_words(error)), UsageError.exit_status, as_json=as_json)
    except KeyboardInterrupt:
        status = ReleaseInterruptedError.exit_status
    except MemoryError:
        _fail("MemoryError", "not enough memory: ask for fewer cells or draws", 1, as_json=as_json)
    except BrokenPipeError:
        raise
    except Exception as error:  # noqa: BLE001 - a text of ours, never one that could hold data
        _fail(type(error).__name__, f"internal error ({type(error).__name__})", 1, as_json=as_json)
    if status == ReleaseInterruptedError.exit_status:  # Typer returns it for an interrupt of its own
        text = (
            "interrupted; a command that only reads left nothing behind; of one that releases "
            "`suffice ledger show` lists what was charged, and the same command again settles it"
        )
        _fail(ReleaseInterruptedError.__name__, text, ReleaseInterruptedError.exit_status, as_json=as_json)
    sys.exit(status if isinstance(status, int) else 0)
