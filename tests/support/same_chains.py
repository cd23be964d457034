"""Chains that are run once in a test, where it asks for the same posterior twice: in JSON and as text, say.

The posterior of several columns starts its generator from the releases and the priors, so the second run
makes the same chains draw by draw (``test_who_asks_again_gets_the_same_chains``). Here they are kept, with
the generator as they left it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from suffice.pipeline.math.engines.multivariate import column_posterior as posterior

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    import pytest


def run_chains_once(patch: pytest.MonkeyPatch) -> None:
    """Keep the chains of each start for as long as the patch lasts."""
    sample: Callable[..., Any] = vars(posterior)["sample_until_settled"]
    kept: dict[tuple[Any, ...], tuple[Any, dict[str, Any]]] = {}

    def sample_once(
        target: Any, start: Any, spread: Any, iterations: Any, rng: np.random.Generator, course: Any = None
    ) -> Any:
        asked = (start.tobytes(), spread.tobytes(), repr(iterations), repr(rng.bit_generator.state))
        if asked not in kept:
            chains = sample(target, start, spread, iterations, rng, course)
            kept[asked] = chains, dict(rng.bit_generator.state)
        chains, rng.bit_generator.state = kept[asked]
        return chains.copy()

    patch.setattr(posterior, "sample_until_settled", sample_once)
