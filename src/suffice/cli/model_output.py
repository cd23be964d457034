"""What every command of ``suffice model`` says of the posterior that its numbers follow from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from suffice.cli import output
from suffice.cli.terminal import in_line, say
from suffice.pipeline.ask.posterior.notes import conflict_lines, plug_in_lines

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from suffice.data_files.source import Provenance
    from suffice.pipeline.ask.pooling.release import Release
    from suffice.pipeline.ask.posterior.posterior import Posterior

DIGITS = 4
"""Of drawn numbers in a terminal: more of them would be chance."""


def basis_document(
    opened: Release, posterior: Posterior, *, mass: float | None, draws: int, seed: int | None
) -> dict[str, Any]:
    """Return what numbers rest on, as JSON states it: release, statistic, method, priors, diagnostics.

    The mass is None where there are no intervals.
    """
    stated = source("posterior summaries of a model", [opened], posterior, mass=mass, draws=draws, seed=seed)
    return {
        "source": stated.document(),
        "release": opened.label,
        "statistic": posterior.statistic,
        "family": posterior.family,
        "rows_of": posterior.rows_of,
        "method": posterior.method,
        **({"plug_in": lines} if (lines := plug_in_lines(posterior)) else {}),
        "prior": str(posterior.prior),
        "n_prior": None if posterior.n_prior is None else str(posterior.n_prior),
        "predictor_prior": posterior.predictor_prior,
        **({} if mass is None else {"mass": mass, "interval": stated.interval}),
        "draws": draws,
        "seed": seed,
        **({"diagnostics": posterior.diagnostics} if posterior.diagnostics else {}),
        "conflicts": conflict_lines(posterior),
    }


def source(
    what: str,
    releases: Sequence[Release],
    posterior: Posterior,
    *,
    mass: float | None = None,
    draws: int,
    seed: int | None,
) -> Provenance:
    """Return what the numbers of a model's file rest on."""
    from suffice.data_files.source import posterior_source  # pydantic is slow to import

    return posterior_source(what, releases, posterior, mass=mass, draws=draws, seed=seed)


def print_cells(rows: Sequence[Mapping[str, Any]], groups: Mapping[str, Sequence[object]]) -> None:
    """Print a table of drawn numbers; keys that all cells share stand once, above it.

    Parameters
    ----------
    rows : sequence of mapping
    groups : mapping of str to sequence
        The keys of all cells by group column.
    """
    from suffice.pipeline.math.parameters.contrasts import in_words  # numpy is slow to import

    shared = {column: keys[0] for column, keys in groups.items() if len(set(keys)) == 1}
    if shared:
        say(f"{in_line(in_words(shared))}\n")
    kept = [{name: value for name, value in row.items() if name not in shared} for row in rows]
    output.print_rows(kept, digits=DIGITS)


def print_basis(opened: Release, posterior: Posterior, *, draws: int) -> None:
    """Say what numbers rest on, after a table of them."""
    for line in plug_in_lines(posterior):
        say(f"\n{line}")
    output.print_saturation(opened.statistic(posterior.statistic))
    output.print_conflicts(posterior)
    output.print_diagnostics(posterior)
    say(f"\nrelease: {opened.label}")
    output.print_rows_of(posterior.rows_of)
    say(f"prior: {posterior.prior}")
    if posterior.n_prior is not None:
        say(f"prior of N: {posterior.n_prior}")
    if posterior.predictor_prior is not None:
        say(f"prior of predictors: {posterior.predictor_prior}")
    say(f"numbers are of {draws} posterior draws")
