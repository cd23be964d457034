"""What a release holds, by name: one statistic that can be asked, and the table of all of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from suffice.errors import UnknownNameError
from suffice.pipeline.ask.inference.posterior_terms import FurtherTerms, lists_terms
from suffice.pipeline.terms.declaration.wording import counted, not_a_name
from suffice.pipeline.terms.released.table import Table

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Unpack

    from suffice.pipeline.ask.borrowing.pooling import Pooling
    from suffice.pipeline.ask.inference.chosen_priors import AnyPrior
    from suffice.pipeline.ask.posterior.likelihood import AnyLikelihood
    from suffice.pipeline.ask.posterior.posterior import Posterior
    from suffice.pipeline.math.distributions.composite import CellProgress
    from suffice.pipeline.math.priors.record_count import NPrior
    from suffice.pipeline.spec.about import About
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
    from suffice.pipeline.terms.statistics.statistic_plan import StatisticPlan


_CALLED_HERE = {
    **dict.fromkeys(
        ("mean", "sd", "std", "interval", "sample", "plot", "summary", "quantile", "probability", "highest"),
        "posterior().$()",
    ),
    **dict.fromkeys(("where", "sel", "loc", "query"), "posterior(where={COLUMN: KEY}), table(where=...)"),
    **dict.fromkeys(("head", "describe", "estimates", "values", "data"), "table()"),
    **dict.fromkeys(("to_pandas", "to_df", "to_dataframe", "to_csv"), "to_frame()"),
    "fit": "posterior(prior)",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistic:
    """One statistic of a release; ``release["cancelled"]``.

    Attributes
    ----------
    release : Release
        What it is of.
    name : str
        Its name there.
    """

    release: Any = field(repr=False)
    name: str

    @property
    def plan(self) -> StatisticPlan:
        """What was released, at which sensitivity, with how much noise."""
        plan: StatisticPlan = self.release.plan_of(self.name)
        return plan

    @property
    def noisy(self) -> NoisyStatistic:
        """Its noisy values and their law; a sample has none, and is refused."""
        noisy: NoisyStatistic = self.release.statistic(self.name)
        return noisy

    @property
    def family(self) -> str:
        """Its family."""
        return self.plan.family

    @property
    def parameters(self) -> tuple[str, ...]:
        """The parameters that a posterior has; of a sample, the one that was drawn."""
        return parameters_of(self.plan)

    @property
    def groups(self) -> dict[str, list[str | int]]:
        """The key of every cell, by group column."""
        asked = self.release.sampled if self._is_sample else self.release.statistics
        return dict(asked[self.name].groups)

    @property
    def _is_sample(self) -> bool:
        return self.name in self.release.sampled

    def __getitem__(self, parameter: object) -> Any:
        """Refuse a parameter: that is asked of a posterior.

        Raises
        ------
        UnknownNameError
            Always; it says what was meant.
        """
        message = f"a statistic has no {parameter!r}: table(where=...) has its cells"
        if parameter in self.parameters:
            message = f"parameters are a posterior's, a statistic has sums: posterior()[{parameter!r}]"
        raise UnknownNameError(message)

    def __len__(self) -> int:
        """Return how many cells there are."""
        if self._is_sample:
            return len(self.release.sampled[self.name].indices)
        return len(self.release.cells(self.name))

    def __repr__(self) -> str:
        of = f" by {', '.join(self.plan.groups)}" if self.plan.groups else ""
        return (
            f"<Statistic {self.name} of {self.release.label}: {self.family}, "
            f"{counted(len(self), 'cell')}{of}>"
        )

    def __str__(self) -> str:
        return str(self.table())

    if not TYPE_CHECKING:  # a type checker knows what there is

        def __getattr__(self, name: str) -> Any:
            raise not_a_name(type(self), name, _CALLED_HERE)

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return the table as a stream of Arrow."""
        return self.table().__arrow_c_stream__(requested_schema)

    def table(self, where: Mapping[str, object] | None = None) -> Table:
        """Return unbiased estimates with the standard deviation of their noise, or a sample's draws."""
        table: Table = self.release.table(self.name, where)
        return table

    def to_frame(self, library: str | None = None, *, where: Mapping[str, object] | None = None) -> Any:
        """Return the table as a frame of pandas or Polars; see :meth:`Table.to_frame`."""
        return self.table(where).to_frame(library)

    @lists_terms
    def posterior(
        self,
        prior: AnyPrior = None,
        *,
        progress: CellProgress | None = None,
        pooled: bool | str | Sequence[str] | Pooling = False,
        **terms: Unpack[FurtherTerms],
    ) -> Posterior:
        """Return the posterior of the parameters in every cell; see :meth:`Release.posterior`."""
        posterior: Posterior = self.release.posterior(
            self.name, prior, progress=progress, pooled=pooled, **terms
        )
        return posterior

    def likelihood(
        self,
        *,
        n_prior: NPrior | int | str | None = None,
        where: Mapping[str, object] | None = None,
    ) -> AnyLikelihood:
        """Return the likelihood of the parameter in every cell; see :meth:`Release.likelihood`."""
        likelihood: AnyLikelihood = self.release.likelihood(self.name, n_prior=n_prior, where=where)
        return likelihood


def parameters_of(plan: StatisticPlan) -> tuple[str, ...]:
    """Return the names of a statistic's parameters."""
    if plan.sample is not None:
        return (plan.sample.parameter,)
    from suffice.pipeline.families import FAMILIES  # numpy is slow to import

    names = tuple(space.name for space in FAMILIES[plan.family].parameter_spaces(plan.parameters))
    if plan.family == "multivariate_normal":  # the variances are of the covariance's diagonal
        return (names[0], "variance", *names[1:])
    return names


class Statistics(Mapping[str, "NoisyStatistic"]):
    """The noisy statistics of a release, in declared order; it shows itself as a table of what can be asked.

    Parameters
    ----------
    release : Release
    """

    def __init__(self, release: Any) -> None:
        self._release = release

    def __getitem__(self, name: str) -> NoisyStatistic:
        """Return a statistic's noisy values."""
        noisy: NoisyStatistic = self._release.noisy[name]
        return noisy

    def __iter__(self) -> Iterator[str]:
        """Give the names."""
        return iter(self._release.noisy)

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._release.noisy)

    def __contains__(self, name: object) -> bool:
        """Tell whether there is such a statistic, without reading it."""
        return name in self._release.noisy

    def __repr__(self) -> str:
        return str(self.table())

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return the table as a stream of Arrow."""
        return self.table().__arrow_c_stream__(requested_schema)

    def _ipython_key_completions_(self) -> list[str]:
        return list(self)

    def table(self) -> Table:
        """Return one row for each statistic and each sample: what it is of, and what can be asked of it."""
        about = self._release.about
        rows = [row_of(statistic) for statistic in self._release.values()]
        has_labels = any(about.words(row["statistic"]).label for row in rows)
        return Table(rows, in_words=partial(_labelled, about) if has_labels else list)

    def to_frame(self, library: str | None = None) -> Any:
        """Return the table as a frame of pandas or Polars; see :meth:`Table.to_frame`."""
        return self.table().to_frame(library)


def _labelled(about: About, rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return rows of a table of statistics for people: names, by which one asks, beside labels."""
    return [
        {"statistic": row["statistic"], "label": about.words(row["statistic"]).label or "", **row}
        for row in rows
    ]


def row_of(statistic: Statistic) -> dict[str, Any]:
    """Return what a table of statistics says of one."""
    plan = statistic.plan
    quantities = dict.fromkeys(quantity.name for quantity in plan.quantities)
    return {
        "statistic": statistic.name,
        "family": plan.family,
        "columns": ", ".join(plan.columns),
        "cells": len(statistic),
        "estimates": "draws" if plan.sample is not None else ", ".join(quantities),
        "posterior of": "" if plan.sample is not None else ", ".join(statistic.parameters),
        str(plan.loss.measure): plan.loss.text,
    }
