"""Posteriors of a release's parameters: pure post-processing, vectorised over cells.

``noise-aware`` is the exact posterior given the noisy statistics and the distribution of their noise; it is
calibrated. ``plug-in`` projects the noisy statistics onto what is possible and then takes them for exact, as
in Foulds et al.; it ignores the noise and is not calibrated. One is never silently used for the other.

References
----------
Foulds, Geumlek, Welling, Chaudhuri. On the theory and practice of privacy-preserving Bayesian data analysis.
UAI 2016.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NoReturn

from suffice.pipeline.ask.posterior.judged_posterior import JudgedPosterior
from suffice.pipeline.ask.posterior.summaries import summarise
from suffice.pipeline.math.parameters.arguments import checked_draws, generator
from suffice.pipeline.math.parameters.parameter_posterior import DRAWS, MASS, ParameterPosterior

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    import numpy as np

    from suffice.pipeline.math.parameters.contrasts import Contrast
    from suffice.pipeline.terms.released.table import Table
    from suffice.typing import Floats


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Posterior(JudgedPosterior):
    """The posterior of one statistic's parameters in every selected cell; made by ``posterior_of``.

    Attributes
    ----------
    statistic, family : str
        Which statistic of the release, and its family.
    method : {"noise-aware", "plug-in"}
        How the noise is treated.
    prior : Prior, Mixture, Density, Independent or JointDensity
        The prior of the parameters, the same for every cell.
    n_prior : NPrior or None
        The prior of N: ``Fixed`` where N is public, None under ``plug-in``.
    predictor_prior : str or None
        The prior of the mean and covariance of a regression's predictors; None of other families, and under
        ``plug-in``.
    groups : dict of str to list
        The key of every cell, by group column.
    label_columns : dict of str to tuple
        How the entries along the last axis of parameters are called: ``{"category": (...)}``, or
        ``{"table": (...), VARIABLE: (...)}`` with None where a table lacks a variable; empty where
        parameters are one number a cell.
    distribution : Distribution
        The parameters' joint distribution.
    components : dict of str to tuple of str
        What a parameter with a last axis of its own is of, in order: a column, or a pair as ``x, y``.
    constants : Constants or None
        The public bounds and known parameters of the statistic.
    model : Model or None
        What new rows come from: for ``predictive``, of posteriors made by ``Release.posterior``.
    models_clipping : ndarray of shape (n_groups,), bool, or None
        The cells whose parameters are of records before clipping, which the model extrapolates; in the others
        they are of records as the public bounds leave them. None where the family has no such model.
    before_clipping : bool
        Whether clipping was to be modelled wherever it matters: where it does not, both are the same.
    rows_of : str or None
        Under a column unit, which rows or units the parameters are of; None where every row counts.
    observed : tuple of NoisyStatistic
        What was released: one statistic, or those of several data sets with the same parameters.
    design_effect : ndarray of shape (n_groups,), float64, or None
        How many times fewer independent rows say as much as those of a cell: posterior means, by which the
        distribution is widened, approximately. None where rows of one unit are taken for independent.
    releases : tuple of str
        Label and id of each release that it is of, as ``flights@2013-01 0123456789abcdef``; empty of bare
        statistics.
    about : About
        What the release's owner calls things; names stand for themselves where it is empty.
    titled : str
        What pictures of it are called.
    prices : tuple of str
        What the statistic cost in each of the releases.
    """

    rows_of: str | None = None
    titled: str = ""
    prices: tuple[str, ...] = ()

    def __repr__(self) -> str:
        from suffice.pipeline.ask.posterior.shown import heading

        return f"<{heading(self)}; prior {self.prior}>"

    def __str__(self) -> str:
        from suffice.pipeline.ask.posterior.shown import as_text

        return as_text(self)

    def _repr_html_(self) -> str:
        from suffice.pipeline.ask.posterior.shown import as_html

        return as_html(self)

    def entry_names(self, parameter: str) -> list[str]:
        """Return a name for every entry of every cell in turn, in words where there are any."""
        groups = self.about.groups(self.groups)
        cells = [", ".join(str(keys[cell]) for keys in groups.values()) for cell in range(self.n_groups)]
        names = [self.about.value(self.statistic, name) for name in self.labels(parameter)[1]]
        return [", ".join(filter(None, (cell, name))) for cell in cells for name in names] if names else cells

    def summary(
        self,
        mass: float = MASS,
        *,
        interval: str | None = None,
        draws: int = DRAWS,
        rng: np.random.Generator | int | None = None,
    ) -> Table:
        """Return one row for every cell, parameter and entry: its keys, mean, sd, and interval.

        ``conflict`` says whether a prior and what was released disagree there; it is None where that is not
        known. Numbers that do not exist are None. The list shows itself as a table, and has ``to_frame``.

        Parameters
        ----------
        mass, interval, draws, rng
            As in ``credible_interval``.
        """
        from suffice.pipeline.ask.posterior.shown import marked

        return marked(self, summarise(self, mass, draws, rng, interval=interval), self.n_groups)

    def highest(
        self,
        k: int = 1,
        parameter: str | None = None,
        *,
        draws: int = DRAWS,
        rng: np.random.Generator | int | None = None,
    ) -> Table:
        """Return how probable it is that each cell is among the k highest, the most probable first.

        One row for every cell and entry: its keys, mean, sd, ``probability``, and ``conflict`` as in
        ``summary``. Probabilities are shares of joint draws; see ``among_highest``. The list shows itself as
        a table.

        Parameters
        ----------
        k : int
            Fewer than there are cells.
        parameter : str, optional
            Its name; the only one's where it is left out.
        draws, rng
            As in ``sample``.
        """
        from suffice.pipeline.ask.posterior.shown import highest_table

        return highest_table(self, k, self._known(parameter), draws, generator(rng))

    def robustness(
        self,
        parameter: str | None = None,
        *,
        share: float = 0.1,
        factor: float = 2.0,
        shift: float = 1.0,
        mass: float = MASS,
        above: float | None = None,
        redraws: int | None = None,
        draws: int = DRAWS,
        rng: np.random.Generator | int | None = None,
    ) -> Table:
        """Return how far means and central intervals move with the prior, one record and the noise.

        For every cell and entry a row as stated, and one where a share of the prior is anything else, where
        its density is within a factor of what is stated, where it is moved along the line on which it is
        nearly normal (logarithm, logit or as it is), with one record more or less of an extreme value, and
        with noise that is drawn again. ``mean_least`` and ``mean_most`` are what the posterior mean lies
        between, and so on for both ends of the interval; None is no bound. Of several parameters, and of
        priors with point masses, draws give the neighbourhood within a factor alone.

        Parameters
        ----------
        parameter : str, optional
            Its name; the only one's where it is left out.
        share : float
            At least 0, below 1.
        factor : float
            From 1 to 10.
        shift : float
            From 0 to 10, in standard deviations of the prior on the line.
        mass : float
            Of the interval, above 0 and below 1.
        above : float, optional
            Finite; adds what the probability that the parameter is above this number lies between.
        redraws : int, optional
            Of the noise, 40 or more, or 0; else 400, of up to 10 cells under conjugate priors.
        draws, rng
            As in ``sample``.

        Raises
        ------
        UsageError
            Where a number is none of these, or prior and released values are too far apart to tell.
        """
        from suffice.pipeline.ask.judging.robustness import Neighbourhoods
        from suffice.pipeline.ask.posterior.robustness import robustness_table

        asked = Neighbourhoods(share=share, factor=factor, shift=shift)
        terms = mass, above, redraws, checked_draws(draws), generator(rng)
        return robustness_table(self, self._known(parameter), asked, *terms)

    def to_frame(
        self,
        library: str | None = None,
        *,
        mass: float = MASS,
        interval: str | None = None,
        draws: int = DRAWS,
        rng: np.random.Generator | int | None = None,
    ) -> Any:
        """Return ``summary`` as a frame of pandas, or of Polars; see ``Table.to_frame``.

        Warns
        -----
        ConflictWarning
            As ``credible_interval``.
        """
        frame = self.summary(mass, interval=interval, draws=draws, rng=rng).to_frame(library)
        self.warn_of_conflict()
        return frame

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return ``summary`` as a stream of Arrow, for whatever takes one."""
        return self.summary().__arrow_c_stream__(requested_schema)

    def plot(
        self,
        kind: str | None = None,
        *,
        mass: float = MASS,
        interval: str | None = None,
        draws: int = DRAWS,
        rng: np.random.Generator | int | None = None,
    ) -> Any:
        """Return a picture of every parameter, which notebooks show; ``save`` writes it to a file.

        Parameters
        ----------
        kind : {"density", "forest", "robustness"}, optional
            Densities, medians and intervals, or how far they move; by the number of cells otherwise.
        mass, interval, draws, rng
            As in ``credible_interval``.

        Raises
        ------
        MissingExtraError
            Where matplotlib is not installed.
        """
        # By name, as pandas opens its plotting backends: pictures are above, and an extra.
        pictures = importlib.import_module("suffice.plots.pictures")
        return pictures.picture(
            self, kind=kind, mass=mass, interval=interval, draws=draws, rng=generator(rng)
        )

    def quantile(
        self,
        parameter: str | float | Sequence[float],
        q: float | Sequence[float] | None = None,
        *,
        draws: int = DRAWS,
        rng: np.random.Generator | int | None = None,
    ) -> Floats:
        """Posterior quantiles, as ``ParameterPosterior.quantile`` has them.

        Warns
        -----
        ConflictWarning
            As ``credible_interval``.
        """
        quantiles = ParameterPosterior.quantile(self, parameter, q, draws=draws, rng=rng)
        self.warn_of_conflict()
        return quantiles

    def credible_interval(
        self,
        parameter: str | None = None,
        mass: float = MASS,
        *,
        interval: str | None = None,
        draws: int = DRAWS,
        rng: np.random.Generator | int | None = None,
    ) -> Floats:
        """Credible intervals, as ``ParameterPosterior.credible_interval`` has them.

        Warns
        -----
        ConflictWarning
            Once a posterior of releases, where a prior and what was released disagree; see ``conflict``.
        """
        ends = ParameterPosterior.credible_interval(
            self, parameter, mass, interval=interval, draws=draws, rng=rng
        )
        self.warn_of_conflict()
        return ends

    def _contrast(self, *asked: Any) -> Contrast:
        from suffice.pipeline.ask.posterior.shown import contrast_table

        named: list[Any] = [
            self.about.in_names(each, self.groups) if isinstance(each, Mapping) else each for each in asked
        ]
        contrast = ParameterPosterior._contrast(self, *named)  # noqa: SLF001 - its own, without super in slots
        self.warn_of_conflict(stacklevel=4)
        sides = [each for each in named if isinstance(each, Mapping)]
        return replace(contrast, as_table=contrast_table(self, contrast, sides))

    @property
    def notes(self) -> tuple[str, ...]:
        """All that there is to say beside the numbers, a sentence each, as the command line prints it.

        Of clipping, of rows of one unit, of priors that what was released contradicts, and of intervals that
        a default prior decides. ``estimand`` is not among them: it belongs above the numbers.
        """
        from suffice.pipeline.ask.posterior.notes import conflict_lines, default_lines, model_lines

        return (*model_lines(self), *conflict_lines(self), *default_lines(self))

    def __array__(self, *_: object, **__: object) -> NoReturn:
        """Refuse to be taken for one array, as ArviZ and NumPy would.

        Raises
        ------
        TypeError
            Always; it says what there is.
        """
        message = "a posterior is no array: give ArviZ posterior.to_arviz(), and NumPy posterior.mean()"
        raise TypeError(message)

    def to_arviz(self, draws: int = DRAWS, rng: np.random.Generator | int | None = None) -> Any:
        """Draws for ArviZ: one chain of independent draws, with a dimension for each group column.

        Returns
        -------
        arviz.InferenceData or xarray.DataTree
            The former with ArviZ below 1.0.

        Raises
        ------
        MissingExtraError
            Where ArviZ is not installed.
        """
        from suffice.pipeline.ask.posterior.arviz import to_arviz  # slow to import, and an extra

        return to_arviz(self, draws, rng)

    def to_netcdf(
        self, path: str | os.PathLike[str], draws: int = DRAWS, rng: np.random.Generator | int | None = None
    ) -> None:
        """Write draws to a netCDF file that ArviZ reads; see ``to_arviz``.

        Raises
        ------
        MissingExtraError
            Where ArviZ, or what it writes netCDF with, is not installed.
        UsageError
            Where the file cannot be written.
        """
        from suffice.pipeline.ask.posterior.arviz import write_netcdf

        write_netcdf(self, path, draws, rng)
