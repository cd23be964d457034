"""Classes of rows: their chances, the most probable one, and how well these do."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.errors import UsageError
from suffice.pipeline.ask.models.row_cells import NO_CELL
from suffice.pipeline.ask.models.row_codes import UNLISTED, array_of, codes_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from suffice.pipeline.terms.declaration.domains import Domain
    from suffice.typing import Cells, Floats, Mask


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
    n_rows: int


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
        found: NDArray[np.object_] = names[np.where(self._is_known, self._largest, len(self.classes))]
        return found

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
        column = array_of("labels", labels)
        if len(column) != len(self.cell):
            message = f"there are {len(column)} labels of {len(self.cell)} rows"
            raise UsageError(message)
        codes = codes_of(column, self._domain)
        if len(self.classes) > len(self._domain):
            codes = np.where(codes == UNLISTED, len(self._domain), codes)
        scored = np.flatnonzero((codes != UNLISTED) & self._is_known)
        if not len(scored):
            message = f"no row can be scored: none has a cell and a class of {', '.join(self.classes)}"
            raise UsageError(message)
        own = np.maximum(self.probability[scored, codes[scored]], np.finfo(np.float64).tiny)
        return Score(
            accuracy=float(np.mean(self._largest[scored] == codes[scored])),
            mean_log_score=float(np.mean(np.log(own))),
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
                column: [None if cell == NO_CELL else values[cell] for cell in cells.tolist()]
                for column, values in self.groups.items()
            },
            "predicted_class": self.predicted[:most],
            "class_probability": probability.max(axis=1, initial=0.0),
            **{f"probability[{name}]": probability[:, place] for place, name in enumerate(self.classes)},
        }

    @property
    def _is_known(self) -> Mask:
        return np.not_equal(self.cell, NO_CELL)

    @property
    def _largest(self) -> NDArray[np.int64]:
        """Return the place of the first largest chance of each row; any in rows of no cell."""
        largest: NDArray[np.int64] = np.argmax(np.nan_to_num(self.probability), axis=1)
        return largest
