"""What judging a posterior by its priors and by its release asks of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np

    from suffice.pipeline.ask.inference.predictive import Model
    from suffice.pipeline.math.distributions.prior import Prior
    from suffice.pipeline.math.priors.mixtures import AnyDensity, Mixture
    from suffice.pipeline.math.priors.record_count import NPrior
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
    from suffice.pipeline.terms.statistics.block import Parameters
    from suffice.typing import Floats, Mask


class Judged(Protocol):
    """A posterior, with what it is of; attributes as in ``Posterior``."""

    @property
    def statistic(self) -> str: ...  # noqa: D102 - as in Posterior, and so below

    @property
    def family(self) -> str: ...  # noqa: D102

    @property
    def prior(self) -> Prior | Mixture | AnyDensity: ...  # noqa: D102

    @property
    def n_prior(self) -> NPrior | None: ...  # noqa: D102

    @property
    def groups(self) -> Mapping[str, list[str | int]]: ...  # noqa: D102

    @property
    def distribution(self) -> Any: ...  # noqa: D102

    @property
    def model(self) -> Model | None: ...  # noqa: D102

    @property
    def models_clipping(self) -> Mask | None: ...  # noqa: D102

    @property
    def before_clipping(self) -> bool: ...  # noqa: D102

    @property
    def constants(self) -> Parameters | None: ...  # noqa: D102

    @property
    def design_effect(self) -> Floats | None: ...  # noqa: D102

    @property
    def observed(self) -> tuple[NoisyStatistic, ...]: ...  # noqa: D102

    @property
    def parameters(self) -> tuple[str, ...]: ...  # noqa: D102

    @property
    def n_groups(self) -> int: ...  # noqa: D102

    @property
    def method(self) -> str: ...  # noqa: D102

    def mean(self, parameter: str) -> Floats: ...  # noqa: D102

    def sample(self, draws: int, rng: np.random.Generator) -> dict[str, Floats]: ...  # noqa: D102
