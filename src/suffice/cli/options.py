"""Options and arguments that several commands share."""

from __future__ import annotations

import functools
import inspect
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from suffice.cli.output import note_withdrawn
from suffice.errors import UsageError
from suffice.pipeline.ask.inference.posterior_terms import TERMS, explained

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from suffice.pipeline.ask.pooling.release import Release
    from suffice.pipeline.math.priors.record_count import NPrior

_MOST_DRAWS = 10_000_000
_MOST_SIMULATIONS = 1_000_000

DEFAULT_STORE = "releases"
DEFAULT_LEDGER = "sqlite:///ledger.db"
PUBLISH_TIMEOUT = 3600.0

AllOption = Annotated[bool, typer.Option("--all", help="Compute and print every cell, not the first few.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
StoreOption = Annotated[
    str, typer.Option("--store", envvar="SUFFICE_STORE", metavar="URI", help="Where releases are published.")
]
LedgerOption = Annotated[
    str, typer.Option("--ledger", envvar="SUFFICE_LEDGER", metavar="URL", help="The privacy ledger.")
]
PublicKeyOption = Annotated[
    list[str] | None,
    typer.Option(
        "--public-key",
        metavar="FILE",
        help="Demand a signature by a key of this file; may repeat. Default: SUFFICE_PUBLIC_KEYS.",
    ),
]
PublicationKeyOption = Annotated[
    list[str] | None,
    typer.Option(
        "--publication-key",
        metavar="FILE",
        help="Demand of publications a signature by a key of this file; may repeat. "
        "Default: SUFFICE_PUBLICATION_PUBLIC_KEYS.",
    ),
]
AllowWithdrawnOption = Annotated[
    bool, typer.Option("--allow-withdrawn", help="Read a release also where it was withdrawn.")
]
PublishTimeoutOption = Annotated[
    float,
    typer.Option(
        "--publish-timeout",
        metavar="SECONDS",
        help="How long to retry a store that fails after the draw.",
    ),
]
WitnessOption = Annotated[
    str | None,
    typer.Option(
        "--witness", envvar="SUFFICE_WITNESS", metavar="URI", help="What holds the ledger's head elsewhere."
    ),
]
ClusterOption = Annotated[
    str,
    typer.Option(
        "--cluster",
        envvar="SUFFICE_CLUSTER",
        metavar="threads|local|ADDRESS|MODULE:FUNCTION",
        help="Where Dask runs.",
    ),
]
AsOfOption = Annotated[
    str | None,
    typer.Option(
        "--as-of",
        metavar="TIME",
        help="Its scheduled time, as 2013-02-04T02:00:00+01:00; default: now.",
    ),
]
AllowOpenOption = Annotated[
    bool, typer.Option("--allow-open", help="Release a window that has not ended, for good.")
]
WaitOption = Annotated[
    bool, typer.Option("--wait", help="Wait while another run holds the charge, then go on.")
]
SampleIsOption = Annotated[
    str | None,
    typer.Option(
        "--sample-is",
        metavar="public|synthetic",
        help="What its owner declares the sample to be: its counts are exact.",
    ),
]
OutOption = Annotated[
    Path | None, typer.Option("--out", metavar="FILE", help="Write the table to a .csv or .parquet file.")
]
DrawsOutOption = Annotated[
    Path | None,
    typer.Option("--draws-out", metavar="FILE", help="Write draws to a .csv, .parquet or .nc file."),
]
PlotOption = Annotated[Path | None, typer.Option("--plot", metavar="FILE", help="A .png or .svg file.")]
IntervalOption = Annotated[
    str | None,
    typer.Option(
        "--interval",
        metavar="central|highest-density",
        help="The kind of intervals; default: highest-density of shares, Poisson, categories, else central.",
    ),
]
MassOption = Annotated[float, typer.Option("--mass", help="Of the credible intervals.")]
NumberOfDrawsOption = Annotated[int, typer.Option("--draws", min=2, help="Posterior draws per cell.")]
SeedOption = Annotated[int | None, typer.Option("--seed", help="Of the draws; makes them repeatable.")]
ReleaseArgument = Annotated[
    str, typer.Argument(metavar="RELEASE", help="A path or URI, or NAME[@WINDOW] in the store.")
]
StatisticArgument = Annotated[str, typer.Argument(help="A statistic of the release.")]
SpecArgument = Annotated[Path, typer.Argument(metavar="SPEC", help="A YAML or JSON spec.")]
_REPEATED = {"where": "COLUMN=KEY"}
"""Terms that repeat, and how each is written."""


def _option_of(name: str) -> Any:
    """Return the option of a posterior's term, from the table that explains it."""
    words = explained(name)
    named = f"--{name.replace('_', '-')}"
    if name in _REPEATED:
        return Annotated[
            list[str] | None, typer.Option(named, metavar=_REPEATED[name], help=f"{words.text} May repeat.")
        ]
    if words.choices:
        return Annotated[str, typer.Option(named, metavar="|".join(words.choices), help=words.text)]
    return Annotated[str | None, typer.Option(named, help=words.text)]


WhereOption = _option_of("where")
MethodOption = _option_of("method")
Terms: TypeAlias = dict[str, Any]
"""Terms that a command was given, as functions that make posteriors take them."""


def with_terms(*, without: Sequence[str] = ()) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command an option for every term of a posterior but these; it gets them, read, as ``terms``."""
    names = [name for name in TERMS if name not in without]

    def read(terms: Terms) -> Terms:
        if "n_prior" in terms:
            terms["n_prior"] = parse_prior_of_n(terms["n_prior"])
        if "where" in terms:
            terms["where"] = parse_pairs("--where", terms["where"])
        return terms

    return together("terms", {name: (_option_of(name), TERMS[name].default) for name in names}, read)


def together(
    argument: str, options: Mapping[str, tuple[Any, Any]], read: Callable[[dict[str, Any]], Any]
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command several options, by annotation and default; it gets what is read of them as one."""

    def decorated(command: Callable[..., None]) -> Callable[..., None]:
        signature = inspect.signature(command, eval_str=True)
        parameters: list[inspect.Parameter] = []
        for parameter in signature.parameters.values():
            if parameter.name != argument:
                parameters.append(parameter)
                continue
            parameters += [
                parameter.replace(name=name, default=default, annotation=annotation)
                for name, (annotation, default) in options.items()
            ]

        @functools.wraps(command)
        def with_options(**given: Any) -> None:
            asked = {name: given.pop(name) for name in options}
            command(**given, **{argument: read(asked)})

        del vars(with_options)["__wrapped__"]
        vars(with_options)["__signature__"] = signature.replace(parameters=parameters)
        with_options.__annotations__ = {each.name: each.annotation for each in parameters}
        return with_options

    return decorated


def open_for_reading(
    reference: str, store: str, public_keys: list[str] | None, *, allow_withdrawn: bool
) -> Release:
    """Open the release that a command names; where it was withdrawn, all that the command prints says so."""
    from suffice.storage.releases.release_store import open_release

    release = open_release(reference, store=store, public_keys=public_keys, allow_withdrawn=allow_withdrawn)
    note_withdrawn(release)
    return release


def parse_pairs(option: str, pairs: Sequence[str] | None) -> dict[str, str]:
    """Read repeated COLUMN=KEY."""
    keys: dict[str, str] = {}
    for pair in pairs or ():
        column, equals, key = pair.partition("=")
        if not equals or not column:
            message = f"{option} {pair}: write it as COLUMN=KEY"
            raise UsageError(message)
        if keys.get(column, key) != key:
            message = (
                f"{option} {pair}: {column} is given twice, and takes one key: ask for one at a time, "
                f"or leave {column} out"
            )
            raise UsageError(message)
        keys[column] = key
    return keys


def parse_prior_of_n(text: str | None) -> NPrior | None:
    """Read --n-prior, where there is one."""
    if text is None:
        return None
    from suffice.pipeline.math.priors.record_count import parse_n_prior

    return parse_n_prior(text)


def check_draws(draws: int, seed: int | None) -> None:
    """Refuse a number of draws or a seed that cannot be used."""
    if not 1 <= draws <= _MOST_DRAWS:
        message = f"--draws {draws}: a number of draws in 1..{_MOST_DRAWS}"
        raise UsageError(message)
    if seed is not None and seed < 0:
        message = f"--seed {seed}: a seed is an integer of at least 0"
        raise UsageError(message)


def check_simulation(simulations: int | None, seed: int | None) -> None:
    """Refuse a number of simulations or a seed that cannot be used."""
    if simulations is not None and not 1 <= simulations <= _MOST_SIMULATIONS:
        message = f"--simulations {simulations}: a number in 1..{_MOST_SIMULATIONS}"
        raise UsageError(message)
    if seed is not None and seed < 0:
        message = f"--seed {seed}: a seed is an integer of at least 0"
        raise UsageError(message)
