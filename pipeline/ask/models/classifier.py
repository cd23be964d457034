r"""A naive Bayes classifier from a release: the class of rows that a caller has.

.. math::
    P(y = c) = \pi_c, \qquad P(x_d \mid y = c) = \theta_{d c x_d}, \qquad
    (\pi, \theta) \sim p(\pi, \theta \mid D)

features d independent given the class. The question is the class y of a row x:

.. math:: p(y \mid x, D) = \mathrm{E}_{\theta \mid D} \left[
    \frac{\pi_y \prod_d \theta_{d y x_d}}{\sum_{y'} \pi_{y'} \prod_d \theta_{d y' x_d}} \right]

The expectation is an average over posterior draws, so that what noise leaves open makes chances less sure;
its error is that of the number of draws. A row's features are conditioned on in each draw, and not taken for
further data about the parameters.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.errors import SufficeWarning, UsageError
from suffice.pipeline.ask.inference.posterior_terms import lists_terms
from suffice.pipeline.ask.models import rows_and_draws
from suffice.pipeline.math.parameters.arguments import checked_draws, generator
from suffice.pipeline.terms.declaration.documents import printed

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Unpack

    import pyarrow as pa
    from numpy.typing import NDArray

    from suffice.pipeline.ask.inference.posterior_terms import FurtherTerms
    from suffice.pipeline.ask.pooling.release import Release
    from suffice.pipeline.ask.posterior.posterior import Posterior
    from suffice.pipeline.families.naive_bayes import NaiveBayesSpec
    from suffice.pipeline.math.distributions.distribution import Prior
    from suffice.pipeline.math.priors.mixtures import Mixture
    from suffice.pipeline.terms.declaration.documents import Count
    from suffice.pipeline.terms.declaration.domains import Domain
    from suffice.typing import Cells, Codes, Floats, Mask


DRAWS = 1000
"""Posterior draws that chances are averaged over where nothing is asked for: each costs every row."""
_BLOCK = 1 << 20
"""Numbers, one a row, class and draw, that are worked on at once."""


@printed("accuracy mean_log_score rows=n_rows")
@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """How well classes are told on rows whose class is known.

    Attributes
    ----------
    accuracy : float
        The share of rows whose most probable class is theirs.
    mean_log_score : float
        The mean of the log of the chance that was given to a row's own class, in nats; at most 0.
    n_rows : int
        The rows scored: those whose label is a class, and whose keys are those of a cell.
    """

    accuracy: float
    mean_log_score: float
    n_rows: Count


@dataclass(frozen=True, slots=True, kw_only=True)
class Classification:
    """The classes of some rows; made by ``Classifier.classify``.

    Attributes
    ----------
    classes : tuple of str
        In declared order, ``other`` last.
    probability : ndarray of shape (n_rows, n_classes), float64
        The chance of each class; not a number in rows whose keys are of no selected cell.
    cell : ndarray of shape (n_rows,), int64
        The cell of each row among the selected ones; -1 for none.
    groups : dict of str to list
        The key of every cell, by group column.
    left_out : dict of str to int
        In how many rows each feature drops out of the product: its value is null or no declared category.
    absent : tuple of str
        Features of which there is no column, which drop out of all.
    """

    classes: tuple[str, ...]
    probability: Floats = field(repr=False)
    cell: Cells = field(repr=False)
    groups: Mapping[str, list[str | int]] = field(repr=False)
    left_out: Mapping[str, int]
    absent: tuple[str, ...]
    _domain: Domain = field(repr=False)

    @property
    def predicted(self) -> NDArray[np.object_]:
        """The most probable class of each row as text, (n_rows,); None in rows of no cell."""
        names = np.array([*self.classes, None], dtype=object)
        classes: NDArray[np.object_] = names[np.where(self._is_known, self._largest, len(self.classes))]
        return classes

    @property
    def n_predicted(self) -> int:
        """The number of rows that have chances."""
        return int(np.count_nonzero(self._is_known))

    def score(self, labels: object) -> Score:
        """Compare with known classes.

        Parameters
        ----------
        labels : array
            The class of each row, (n_rows,), compared as a release does; one that is null or no declared
            class is ``other`` where the outcome has it, and its row is not scored where not.

        Raises
        ------
        UsageError
            Where there are not as many labels as rows, or none can be scored.
        """
        column = rows_and_draws.array_of("labels", labels)
        if len(column) != len(self.cell):
            message = f"there are {len(column)} labels of {len(self.cell)} rows"
            raise UsageError(message)
        codes = rows_and_draws.codes_of(column, self._domain)
        if len(self.classes) > len(self._domain):
            codes = np.where(codes == rows_and_draws.UNLISTED, len(self._domain), codes)
        scored = np.flatnonzero((codes != rows_and_draws.UNLISTED) & self._is_known)
        if not len(scored):
            message = f"no row can be scored: none has a cell and a class of {', '.join(self.classes)}"
            raise UsageError(message)
        probability = np.maximum(self.probability[scored, codes[scored]], np.finfo(np.float64).tiny)
        return Score(
            accuracy=float(np.mean(self._largest[scored] == codes[scored])),
            mean_log_score=float(np.mean(np.log(probability))),
            n_rows=len(scored),
        )

    def columns(self, most: int | None = None) -> dict[str, Any]:
        """Return columns of a table of the first `most` rows, or of all.

        They are ``row`` (from 0), the keys of its cell, ``predicted_class``, ``class_probability`` (its
        chance), and ``probability[CLASS]`` of each class. None and NaN stand in rows of no cell.
        """
        cells, probability = self.cell[:most], self.probability[:most]
        return {
            "row": np.arange(len(cells)),
            **{
                column: [None if cell == rows_and_draws.NO_CELL else values[cell] for cell in cells.tolist()]
                for column, values in self.groups.items()
            },
            "predicted_class": self.predicted[:most],
            "class_probability": probability.max(axis=1, initial=0.0),
            **{f"probability[{name}]": probability[:, place] for place, name in enumerate(self.classes)},
        }

    @property
    def _is_known(self) -> Mask:
        return np.not_equal(self.cell, rows_and_draws.NO_CELL)

    @property
    def _largest(self) -> NDArray[np.int64]:
        """Return the place of the first largest chance of each row; any in rows of no cell."""
        largest: NDArray[np.int64] = np.argmax(np.nan_to_num(self.probability), axis=1)
        return largest


@dataclass(frozen=True, slots=True, kw_only=True)
class Classifier:
    """Classifies rows by posterior draws of a naive Bayes model; made by :func:`classifier`.

    Where the release has groups, each row is classified by the cell of its own keys, which are columns of the
    rows; one whose keys are of no selected cell has no chances: NaN. A group column in which all selected
    cells have one key may be absent.

    Attributes
    ----------
    classes : tuple of str
        In declared order, ``other`` last.
    posterior : Posterior
        What was drawn from.
    entry : NaiveBayesSpec
        The outcome and the features, each with its column and its categories.
    cells : RowCells
        Where rows lie among the cells.
    draws : int
        The number of posterior draws.
    """

    classes: tuple[str, ...]
    posterior: Posterior = field(repr=False)
    entry: NaiveBayesSpec = field(repr=False)
    cells: rows_and_draws.RowCells = field(repr=False)
    draws: int
    _log_classes: Floats = field(repr=False)
    _log_features: Mapping[str, Floats] = field(repr=False)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of rows that are looked at: of the features, then the group columns."""
        of_features = (variable.column for variable in self.entry.features.values())
        return tuple(dict.fromkeys((*of_features, *self.cells.keys)))

    def classify(self, rows: object) -> Classification:
        """Return the chances of each class, and what they rest on.

        Parameters
        ----------
        rows : mapping of str to array, or table
            Columns under the names that the spec has for them (``column``, by default the feature's name);
            others are not looked at. A value that is null or no declared category counts as ``other`` where
            the feature has it, and drops out of the product where not. So does, with a warning, a feature of
            which there is no column.

        Raises
        ------
        UsageError
            Where there is no column of any feature or of a group, or a column is no array.
        """
        columns = rows_and_draws.columns_of(rows, self.columns)
        absent = self._absent(columns)
        n_rows = len(next(iter(columns.values())))
        codes = {name: self._codes(name, columns, n_rows) for name in self.entry.features}
        cells = self.cells.of(columns, n_rows)
        sizes = [table.shape[1] for table in self._log_features.values()]
        (outcome,) = self.entry.outcome.values()
        return Classification(
            classes=self.classes,
            probability=self._probabilities(
                np.stack([cells + 1, *codes.values()], axis=1), [self.posterior.n_groups + 1, *sizes]
            ),
            cell=cells,
            groups=self.posterior.groups,
            left_out={
                name: int(np.count_nonzero(feature_codes == size - 1))
                for (name, feature_codes), size in zip(codes.items(), sizes, strict=True)
            },
            absent=absent,
            _domain=outcome.categories,
        )

    def predict_proba(self, rows: object) -> Floats:
        """Return the chance of each class, (n_rows, n_classes); see :meth:`classify`."""
        return self.classify(rows).probability

    def predict(self, rows: object) -> NDArray[np.object_]:
        """Return the most probable class of each row, (n_rows,); see :meth:`classify`."""
        return self.classify(rows).predicted

    def score(self, rows: object, labels: object) -> Score:
        """Compare with known classes of rows; see :meth:`classify` and ``Classification.score``."""
        return self.classify(rows).score(labels)

    def _absent(self, columns: Mapping[str, pa.Array]) -> tuple[str, ...]:
        """Return the features without a column; refuse that it is all of them, and warn of some."""
        features = self.entry.features
        absent = tuple(name for name, variable in features.items() if variable.column not in columns)
        if len(absent) == len(features):
            wanted = ", ".join(self.columns)
            message = f"rows have no column of any feature of {self.posterior.statistic}: it reads {wanted}"
            raise UsageError(message)
        if absent:
            message = f"rows have no column of {', '.join(absent)}: what is absent drops out of every product"
            warnings.warn(SufficeWarning(message), stacklevel=3)
        return absent

    def _codes(self, name: str, columns: Mapping[str, pa.Array], n_rows: int) -> Codes:
        """Return the code of a feature in each row; its number of categories where it drops out."""
        variable = self.entry.features[name]
        unlisted = self._log_features[name].shape[1] - 1
        if variable.column not in columns:
            return np.full(n_rows, unlisted, np.int32)
        codes = rows_and_draws.codes_of(columns[variable.column], variable.categories)
        instead = len(variable.categories) if variable.other else unlisted
        return np.where(codes == rows_and_draws.UNLISTED, np.int32(instead), codes)

    def _probabilities(self, codes: NDArray[np.int64], sizes: list[int]) -> Floats:
        """Return chances (n_rows, n_classes) of rows of codes: of the cell, from 1, and of each feature."""
        distinct, places = _distinct(codes, sizes)
        chances = np.full((len(distinct), len(self.classes)), np.nan)
        known = np.flatnonzero(distinct[:, 0] > 0)
        step = max(1, _BLOCK // (len(self.classes) * self.draws))
        for start in range(0, len(known), step):
            block = known[start : start + step]
            chances[block] = self._chances(distinct[block, 0] - 1, distinct[block, 1:])
        return chances[places]

    def _chances(self, cells: NDArray[np.int64], codes: NDArray[np.int64]) -> Floats:
        """Return chances (n_rows, n_classes) of rows with these cells and codes of features."""
        # log pi_y + sum_d log theta_{d y x_d}, normalised over y in each draw, then averaged over draws.
        joint = self._log_classes[cells]
        for place, table in enumerate(self._log_features.values()):
            joint += table[cells, codes[:, place]]
        joint -= joint.max(axis=1, keepdims=True)
        np.exp(joint, out=joint)
        joint /= joint.sum(axis=1, keepdims=True)
        chances: Floats = joint.mean(axis=2)
        return chances


@lists_terms
def classifier(
    release: Release,
    statistic: str,
    *,
    prior: Prior | Mixture | str | None = None,
    draws: int = DRAWS,
    rng: np.random.Generator | int | None = None,
    **terms: Unpack[FurtherTerms],
) -> Classifier:
    """Make a classifier from a ``naive_bayes`` statistic. Costs no privacy.

    Parameters
    ----------
    release : Release
        As ``suffice.open_release`` returns it.
    statistic : str
        Its name in the release.
    prior, **terms
        As in ``Release.posterior``.
    draws : int, > 0
        Posterior draws that chances are averaged over.
    rng : numpy.random.Generator or int, optional
        A generator or the seed of one; a fresh one otherwise.

    Raises
    ------
    UsageError, PriorError
        Where the statistic is of another family, or the prior, the method or the keys do not fit.
    """
    rows_and_draws.require_family(release, statistic, ("naive_bayes",), "a classifier")
    draws, source = checked_draws(draws, least=2), generator(rng)
    posterior = release.posterior(statistic, prior, **terms)
    if posterior.model is None:
        message = f"{statistic} has no model of rows"
        raise UsageError(message)
    entry: Any = posterior.model.entry
    of_class, *of_features = (
        np.log(np.maximum(table, np.finfo(np.float64).tiny))
        for table in rows_and_draws.drawn_tables(posterior, draws, source)
    )
    return Classifier(
        classes=rows_and_draws.tables_of(posterior)[0].variables[0].categories,
        posterior=posterior,
        entry=entry,
        cells=rows_and_draws.row_cells(release, posterior),
        draws=draws,
        _log_classes=np.ascontiguousarray(np.moveaxis(of_class, 0, -1)),
        _log_features={
            name: _by_category(table) for name, table in zip(entry.features, of_features, strict=True)
        },
    )


def _by_category(table: Floats) -> Floats:
    """Turn (draws, n_cells, classes, categories) into (n_cells, categories + 1, classes, draws); 0 at last.

    What a row needs lies together, and the entry after the categories is that of a feature that drops out.
    """
    by_category = np.moveaxis(table, (1, 3, 2, 0), (0, 1, 2, 3))
    cells, categories, *rest = by_category.shape
    result = np.zeros((cells, categories + 1, *rest))
    result[:, :-1] = by_category
    return result


def _distinct(codes: NDArray[np.int64], sizes: list[int]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return distinct rows of codes, and where each row stands among them: alike rows are alike."""
    if math.prod(sizes) < 1 << 62:
        flat = np.ravel_multi_index(tuple(codes.T), tuple(sizes))
        distinct, places = np.unique(flat, return_inverse=True)
        return np.stack(np.unravel_index(distinct, tuple(sizes)), axis=1), places
    distinct, places = np.unique(codes, axis=0, return_inverse=True)
    return distinct, places.reshape(-1)
