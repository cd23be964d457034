"""Which records the parameters of a posterior are of, in a sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from suffice.pipeline.ask.inference.clipped_cells import can_be_modelled
from suffice.pipeline.families import FAMILIES

if TYPE_CHECKING:
    from suffice.pipeline.ask.judging.judged import Judged


def estimand_text(posterior: Judged) -> str:
    """Say which records parameters are of, before clipping or after; empty where nothing is clipped."""
    family, constants = FAMILIES[posterior.family], posterior.constants
    is_bounded = family.outside is not None or (constants is not None and bool(constants.columns))
    if not is_bounded:
        return ""
    modelled = posterior.models_clipping
    number = 0 if modelled is None else int(modelled.sum())
    if number == 0 and posterior.before_clipping and can_be_modelled(family, posterior.observed):
        return "of records before clipping: in no cell does clipping make a difference that matters"
    after = "of the records as the public bounds leave them: a value beyond a bound counts as that bound"
    if number == 0:
        return after
    how = "" if family.mean_and_variance is None else ", approximately, by four moments"
    if family.clipped_record is not None and not family.clipped_record.is_exact:
        how = ", approximately, on a lattice of its values"
    cells = f"{number} of {posterior.n_groups} cells"
    before = f"of records before clipping in {cells}, where clipping is modelled{how}"
    if number == posterior.n_groups:
        return before
    if posterior.before_clipping:
        return f"{before}; in the others clipping makes no difference that matters"
    return f"{before}; in the others, {after}"
