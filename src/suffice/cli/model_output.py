"""What every command of ``suffice model`` says of the posterior that its numbers follow from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from suffice.cli import output
from suffice.cli.terminal import say

if TYPE_CHECKING:
    from suffice.pipeline.pooling.release import Release
    from suffice.pipeline.posterior.posterior import Posterior


def basis_document(
    opened: Release, posterior: Posterior, *, mass: float | None, draws: int, seed: int | None
) -> dict[str, Any]:
    """Return what numbers rest on, as JSON states it: release, statistic, method, priors, diagnostics.

    The mass is None where there are no intervals.
    """
    return {
        "release": opened.label,
        "statistic": posterior.statistic,
        "family": posterior.family,
        "rows_of": posterior.rows_of,
        "method": posterior.method,
        **({"plug_in": lines} if (lines := output.plug_in_lines(posterior)) else {}),
        "prior": str(posterior.prior),
        "n_prior": None if posterior.n_prior is None else str(posterior.n_prior),
        "predictor_prior": posterior.predictor_prior,
        **({} if mass is None else {"mass": mass}),
        "draws": draws,
        "seed": seed,
        **({"diagnostics": posterior.diagnostics} if posterior.diagnostics else {}),
        "conflicts": output.conflict_lines(posterior),
    }


def print_basis(opened: Release, posterior: Posterior, *, draws: int) -> None:
    """Say what numbers rest on, after a table of them."""
    for line in output.plug_in_lines(posterior):
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
