"""What there is to say of a posterior beside its numbers, a sentence each."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from suffice.pipeline.ask.posterior.posterior import Posterior
    from suffice.typing import Mask

LARGEST_R_HAT, FEWEST_EFFECTIVE_DRAWS = 1.05, 400
"""Of chains that posteriors can rest on."""
_LEAST_WITHIN = 1e-4
"""Of a posterior, what must lie within bounds for the rest of it to be resolved."""


def model_lines(posterior: Posterior) -> list[str]:
    """Return all that there is to say of clipping, of rows of one unit and of the prior, a sentence each."""
    said = [
        *clipping_warnings(posterior),
        design_effect_text(posterior),
        far_tail_text(posterior),
        *prior_lines(posterior),
    ]
    return [line for line in said if line]


def prior_lines(posterior: Posterior) -> list[str]:
    """Return what there is to say of an unusual prior and of how it is answered, a sentence each."""
    said = [
        point_mass_text(posterior),
        values_text(posterior),
        reweighted_text(posterior),
        hardly_within_text(posterior),
    ]
    return [line for line in said if line]


def point_mass_text(posterior: Posterior) -> str:
    """Say how probable the values are at which the prior has point masses; empty where it has none."""
    masses = posterior.point_masses
    if not masses:
        return ""
    name = posterior.parameters[0]
    # Those that have most of it, and the rest in number.
    likeliest = sorted(masses, key=lambda value: -float(masses[value].mean()))
    parts = []
    for value in sorted(likeliest[:_NAMED]):
        ends = [f"{float(end):.3g}" for end in (masses[value].min(), masses[value].max())]
        parts.append(f"{name} = {value:g} {ends[0] if ends[0] == ends[1] else ' to '.join(ends)}")
    more = f" and {len(masses) - _NAMED} more" if len(masses) > _NAMED else ""
    return (
        f"the prior's point masses have the posterior probabilities {', '.join(parts)}{more}, by evidence; "
        "intervals are closed, and hold at least what they say; densities are of the rest"
    )


def values_text(posterior: Posterior) -> str:
    """Say how narrow a prior's spikes may be to be seen, where its values are all that is known of it."""
    from suffice.pipeline.math.priors.composed import is_known_by_values  # numpy is slow to import

    if not is_known_by_values(posterior.prior):
        return ""
    return (
        "the prior is a function of which only values are known: they are looked at 17 million times, and a "
        "spike narrower than a hundred-millionth of its support, or of where it has nearly all of its mass, "
        "is not seen; name it by hints, or give point masses as such"
    )


def reweighted_text(posterior: Posterior) -> str:
    """Say what an answer by reweighted draws rests on; empty of others."""
    known = posterior.diagnostics
    if "largest_pareto_k" not in known:
        return ""
    count = known["fewest_effective_draws"]
    return (
        f"approximate: {known['sampler']}, {known['draws']} a cell or more; Pareto k is at most "
        f"{known['largest_pareto_k']:.2f} (up to .7 averages can be relied on), and "
        f"{count:.0f} draws or more count, so that a mean errs by {1 / math.sqrt(count):.3f} "
        "posterior standard deviations or less (standard error)"
    )


def hardly_within_text(posterior: Posterior) -> str:
    """Say in how many cells next to nothing of the posterior is left within the bounds; empty where in none.

    Sums are integrated over where the whole prior puts them. Where 2e-4 of it is left within, means and
    standard deviations are right to 2e-4 of the latter; where 3e-5, they are off by a fifth and a third.
    """
    import numpy as np

    from suffice.pipeline.math.distributions.composite import blocks_of
    from suffice.pipeline.math.distributions.within_limits import WithinLimits

    few = sum(
        int(np.sum(block.share < _LEAST_WITHIN))
        for block in blocks_of(posterior.distribution)
        if isinstance(block, WithinLimits)
    )
    if not few:
        return ""
    return (
        f"in {few} of {posterior.n_groups} cells less than a ten-thousandth of the posterior under the whole "
        "prior lies where parameters of records within the bounds can be: means and intervals there may "
        "be off by a posterior standard deviation; state a prior that allows for them, or truncate it to the "
        "bounds"
    )


def far_tail_text(posterior: Posterior) -> str:
    """Say of which parameters the mean lies outside of a central interval of 95 %; empty where of none."""
    import numpy as np

    from suffice.pipeline.families import FAMILIES
    from suffice.pipeline.families.shared.parameter_space import Support
    from suffice.pipeline.math.parameters.arguments import ends_of
    from suffice.pipeline.math.parameters.parameter_posterior import DRAWS, MASS

    constants = posterior.constants
    spaces = FAMILIES[posterior.family].parameter_spaces(constants) if constants is not None else ()
    outside = {}
    for space in spaces:
        if space.support is not Support.POSITIVE or space.name not in posterior.parameters:
            continue
        mean, sd = posterior.mean(space.name), posterior.sd(space.name)
        if not np.any(sd > _WIDE * mean):
            continue
        rng = np.random.default_rng(0)
        ends = posterior.distribution.quantiles(space.name, ends_of(MASS), DRAWS, rng)
        outside[space.name] = np.asarray((mean < ends[..., 0]) | (mean > ends[..., 1]))
    places = _places(posterior, outside)
    if not places:
        return ""
    return (
        f"the mean lies outside its {100 * MASS:g} % interval of {places}: a far tail holds it, which says "
        "little of where the parameter is; read the interval"
    )


def plug_in_lines(posterior: Posterior) -> list[str]:
    """Return what a plug-in posterior leaves out of account, a sentence each; nothing of any other."""
    from suffice.pipeline.families import FAMILIES  # numpy is slow to import

    if posterior.method != "plug-in":
        return []
    said = ["plug-in: takes the noisy statistics for exact; its intervals are not calibrated"]
    if FAMILIES[posterior.family].of_release:
        said.append(
            "plug-in: takes each row or unit for drawn by itself: its intervals are not of these data"
        )
    return said


def draws_text(posterior: Posterior) -> str:
    """Say that the ends of intervals are quantiles of draws; empty where they rest on none."""
    from suffice.pipeline.math.distributions.composite import from_draws  # numpy is slow to import

    if not from_draws(posterior.distribution):
        return ""
    return "the ends of intervals are from draws: other draws give slightly other ends"


def conflict_lines(posterior: Posterior, of_cells: int | None = None) -> list[str]:
    """Return all that there is to say of conflicts, and of what could not be judged, a sentence each.

    Parameters
    ----------
    posterior : Posterior
    of_cells : int, optional
        How many cells are judged in all, where these are a part of them.
    """
    conflict = dataclasses.replace(posterior.conflict, of_cells=of_cells)
    if not conflict.not_judged:
        return conflict.lines()
    if posterior.family == HISTOGRAM:
        count = len(conflict.not_judged)
        return [*conflict.lines(), f"conflict with the prior of the bins is not judged, for {count} counts"]
    called = (posterior.about.quantity(posterior.statistic, name) for name in conflict.not_judged[:4])
    names = ", ".join(called)
    more = f" and {len(conflict.not_judged) - 4} more" if len(conflict.not_judged) > 4 else ""
    return [*conflict.lines(), f"conflict with the prior of the parameters is not judged for {names}{more}"]


def default_lines(posterior: Posterior) -> list[str]:
    """Return where a default prior, and not the release, decides or moves what is said, a sentence each."""
    from suffice.pipeline.math.parameters.parameter_posterior import MASS  # numpy is slow to import

    if posterior.family == HISTOGRAM:
        return _of_bins(posterior)
    lines = []
    decided = _places(posterior, posterior.decided_by_default)
    moved = _places(posterior, posterior.moved_by_default)
    if decided:
        lines.append(
            f"the default prior decides {100 * MASS:g} % intervals, or their far ends, of {decided}: the "
            "release says little there, and does not rule out what lies outside; a stated prior may say more"
        )
    if moved:
        lines.append(
            f"the default prior moves {moved}: half of it would change their means by two fifths of a "
            "posterior standard deviation or more; where few categories hold almost all it draws them "
            "towards the others, and a stated prior may say more"
        )
    return lines


def _of_bins(posterior: Posterior) -> list[str]:
    """Say of how many bins the default prior decides the shares; names of them would fill lines."""
    from suffice.pipeline.math.parameters.parameter_posterior import MASS  # numpy is slow to import

    masks = posterior.decided_by_default.values()
    decided = sum(int(mask.sum()) for mask in masks)
    if not decided:
        return []
    bins = sum(mask.size for mask in masks)
    said = f"the default prior decides {100 * MASS:g} % intervals of the shares of {decided} of {bins} bins"
    return [f"{said}; a stated prior may say more"]


HISTOGRAM = "histogram"
"""The family whose entries are many, and in order: sentences count them, and name none."""
_WIDE = 0.5
"""Standard deviations over means up to which a mean is taken to lie within: far tails have larger ones."""
_NAMED = 4
"""Cells that a sentence names, of more."""


def _places(posterior: Posterior, masks: Mapping[str, Mask]) -> str:
    """Return in which cells or entries of which parameters; empty where in none."""
    return ", ".join(
        f"{name} in {int(mask.sum())} of {mask.size} {'cells' if mask.ndim == 1 else 'entries'}"
        + _names(posterior, name, mask)
        for name, mask in masks.items()
        if mask.any()
    )


def _names(posterior: Posterior, parameter: str, mask: Mask) -> str:
    """Return the first few names in brackets; nothing where all are meant, or there are none."""
    labels = posterior.entry_names(parameter)
    names = [label for label, is_meant in zip(labels, mask.ravel(), strict=True) if is_meant and label]
    if mask.all() or not names:
        return ""
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f" ({'; '.join(names[:_NAMED])}{more})"


def unsettled_warning(posterior: Posterior) -> str:
    """Say that chains disagree or are worth few draws; empty where they are not, or draws are independent."""
    r_hat, effective = (
        posterior.diagnostics.get(name) for name in ("largest_r_hat", "fewest_effective_draws")
    )
    if r_hat is None or effective is None:
        return ""
    if r_hat > LARGEST_R_HAT:
        return (
            f"do not rely on these intervals: the chains do not agree with each other (R-hat {r_hat}, above "
            f"{LARGEST_R_HAT}); a stronger prior, or fewer cells with --where, may help"
        )
    return rough_text(effective)


def rough_text(effective: float) -> str:
    """Say that chains are worth few independent draws; empty where they are worth enough."""
    if effective >= FEWEST_EFFECTIVE_DRAWS:
        return ""
    return (
        f"the ends of intervals are rough: the chains are worth {effective:.0f} independent draws, fewer "
        f"than {FEWEST_EFFECTIVE_DRAWS}"
    )


def diagnostics_text(posterior: Posterior) -> dict[str, str]:
    """Return a posterior's diagnostics as people read them; empty where draws are independent."""
    return described(posterior.diagnostics)


def described(diagnostics: Mapping[str, Any]) -> dict[str, str]:
    """Return diagnostics as people read them."""
    return {
        name.replace("_", " ").replace("r hat", "R-hat"): (
            f"{value:.0f}" if name == "fewest_effective_draws" else str(value)
        )
        for name, value in diagnostics.items()
    }


def clipping_warnings(posterior: Posterior) -> list[str]:
    """Return in words what rests on a model of records beyond the bounds, or should and does not."""
    clipping = posterior.clipping
    said: list[str] = []
    if clipping is None:
        return said
    modelled, left = clipping.is_modelled, clipping.is_warned & ~clipping.is_modelled
    if modelled.any():
        most = 100.0 * max(
            (float(share) for share in clipping.share[modelled] if math.isfinite(share)), default=0.0
        )
        said.append(
            f"clipping is modelled in {modelled.sum()} of {posterior.n_groups} cells: the model puts up to "
            f"{most:.3g} % of records beyond the bounds, of which the release holds no values. That is the "
            "model's extrapolation, and wrong where records are skewed or end at a bound by nature; clipping "
            "ignored describes the records as the bounds leave them"
        )
    if left.any():
        share = 100.0 * float(clipping.share[left].max())
        said.append(
            f"clipping was to be modelled and is not in {left.sum()} of {posterior.n_groups} cells: their "
            f"numbers are of the records as the bounds leave them; the model puts up to {share:.3g} % beyond"
        )
    return said


def design_effect_text(posterior: Posterior) -> str:
    """Return in words what rows of one unit do to a posterior; empty where they are taken for independent."""
    effects = posterior.design_effect
    if effects is None:
        return ""
    least, most = (f"{float(end):.3g}" for end in (effects.min(), effects.max()))
    effects_text = f"a design effect of {least}" if least == most else f"design effects of {least} to {most}"
    return f"rows of one unit are not independent: intervals are widened by {effects_text} (approximate)"
