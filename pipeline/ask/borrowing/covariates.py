r"""Public covariates of cells: a formula's design matrix, and coefficients in a person's own units.

.. math:: m_c = m + \sum_k w_{ck} \beta_k, \qquad \beta_k \sim \mathrm{Normal}(0, 1)

Columns of the design are those that ``formulaic`` makes of a formula, without its intercept, which is m. They
are less their means over the cells of a pool. One that is 0 or 1 is an indicator, and stays in its unit;
others are divided by their standard deviation over all cells, so that hyperpriors do not depend on units.
Coefficients are told in the unit that the table has.

``formulaic`` evaluates what stands in a formula: functions other than ``FUNCTIONS`` are refused, and so is
what a short text could make long, as powers of powers and thousands of terms.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

import numpy as np

from suffice.errors import MissingExtraError, UsageError
from suffice.pipeline.ask.borrowing.public_table import public_table
from suffice.pipeline.math.distributions.distribution import Line
from suffice.pipeline.math.engines.pooled.regression import Regression
from suffice.pipeline.math.parameters.arguments import ends_of
from suffice.pipeline.math.parameters.parameter_posterior import MASS
from suffice.pipeline.terms.declaration.wording import counted
from suffice.pipeline.terms.released.table import Table

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from suffice.pipeline.ask.borrowing.pooling import Pooling
    from suffice.pipeline.math.engines.pooled.distribution import PooledDistribution
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
    from suffice.typing import Cells, Floats

FUNCTIONS = (
    *("C", "I", "Q", "log", "log2", "log10", "exp", "np.log1p", "np.sqrt", "np.abs", "np.where"),
    *("poly", "bs", "cs", "cr", "cc", "center", "scale", "standardize"),
    *("contr.treatment", "contr.sum", "contr.helmert", "contr.poly", "contr.diff"),
)
MOST_COEFFICIENTS = 60
_CALLED = re.compile(r"([\w.]+)\s*\(")
_NOT_OF_A_FORMULA = re.compile(r"__|[{};@]|[\])]\s*[(\[]|\blambda\b")
_OF_COLUMNS = ("poly", "bs", "cs", "cr", "cc")
_EVALUATED = (
    *(ast.Expression, ast.Call, ast.keyword, ast.Name, ast.Attribute, ast.Load, ast.Constant),
    *(ast.List, ast.Tuple, ast.BinOp, ast.UnaryOp, ast.Compare, ast.BoolOp, ast.boolop, ast.cmpop),
    *(ast.UAdd, ast.USub, ast.Invert, ast.Not, ast.BitAnd, ast.BitOr),
    *(ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow),
)
"""What may stand in a call: no comprehension, no shift, no index."""
MOST_TERMS = 10_000
MOST_POWER = 10
_LONGEST = 2_000
_LEAST = 1e-7
"""Of a column's standard deviation: what others leave of it, where it is no combination of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Coefficient:
    """What is known of one column of the design.

    Attributes
    ----------
    name : str
        As ``income``, or ``C(state)[T.NY]``.
    mean, sd, lower, upper : float
        Of the logit or the logarithm, for one unit of the column; the interval is central.
    step : float
        The standard deviation of the column over cells, in its unit; 1 of an indicator.
    mass : float
        Of the interval.
    what : str
        What multiplies: ``odds``, or the parameter's name.
    """

    name: str
    mean: float
    sd: float
    lower: float
    upper: float
    step: float
    mass: float
    what: str

    @property
    def factors(self) -> tuple[float, float, float]:
        """What odds or rates multiply by for a step: at the mean, and at both ends of the interval."""
        middle, low, high = np.exp(np.array([self.mean, self.lower, self.upper]) * self.step).tolist()
        return middle, low, high

    def __str__(self) -> str:
        middle, low, high = self.factors
        is_more = "multiplies" if self.what != "odds" else "multiply"
        per = f"per {self.step:.4g} of {self.name}" if self.step != 1.0 else f"per 1 of {self.name}"
        return f"{self.what} {is_more} by {middle:.3g} ({100 * self.mass:g} %: {low:.3g} to {high:.3g}) {per}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Design:
    """The columns of a formula at every cell.

    Attributes
    ----------
    formula : str
    names : tuple of str
    columns : ndarray of shape (n_cells, n_coefficients), float64
        In the units of the table.
    steps : ndarray of shape (n_coefficients,), float64
        Standard deviations over all cells; 1 of indicators.
    """

    formula: str
    names: tuple[str, ...]
    columns: Floats
    steps: Floats

    def of_pool(self, cells: Cells, where: str) -> Floats:
        """Return the standardised design of some cells, (n_cells, n_coefficients), of mean 0.

        Raises
        ------
        UsageError
            Where a column is constant over these cells, or a combination of others.
        """
        values = self.columns[cells] / self.steps
        design: Floats = values - np.mean(values, axis=0)
        if len(self.names) > len(cells) - 2:
            message = (
                f"formula {self.formula!r} has {counted(len(self.names), 'column')}, and the pool{where} "
                f"{counted(len(cells), 'cell')}: it needs more cells than columns"
            )
            raise UsageError(message)
        basis = np.zeros((len(cells), 0))
        for place, name in enumerate(self.names):
            column = design[:, place]
            size = float(np.linalg.norm(column))
            if size <= _LEAST * max(1.0, float(np.max(np.abs(values[:, place])))) * len(cells) ** 0.5:
                message = f"the covariate {name} is the same in all cells{where}: leave it out"
                raise UsageError(message)
            left = column - basis @ (basis.T @ column)
            left -= basis @ (basis.T @ left)
            if float(np.linalg.norm(left)) <= _LEAST * size:
                message = (
                    f"the covariate {name} is a linear combination of those before it{where} "
                    f"({', '.join(self.names[:place])}): leave one of them out"
                )
                raise UsageError(message)
            basis = np.column_stack([basis, left / np.linalg.norm(left)])
        return design

    def coefficients(
        self, pool: PooledDistribution, parameter: str, mass: float = MASS
    ) -> tuple[Coefficient, ...]:
        """Sum up the posterior of coefficients."""
        hyper = pool.hyperparameters
        assert isinstance(hyper, Regression)  # noqa: S101 - of cells with a design
        weight = hyper.weight.ravel()
        kept = np.flatnonzero(weight)
        weight = weight[kept]
        told = []
        for place, (name, step) in enumerate(zip(self.names, self.steps.tolist(), strict=True)):
            values = hyper.coefficients[..., place].ravel()[kept] / step
            mean = float(weight @ values)
            order = np.argsort(values)
            below = np.cumsum(weight[order]) - weight[order] / 2.0
            lower, upper = np.interp(ends_of(mass), below, values[order]).tolist()
            told.append(
                Coefficient(
                    name=name,
                    mean=mean,
                    sd=float(np.sqrt(weight @ (values - mean) ** 2)),
                    lower=lower,
                    upper=upper,
                    step=step,
                    mass=mass,
                    what="odds" if pool.line is Line.LOGIT else f"the {parameter}",
                )
            )
        return tuple(told)


class HasCoefficients(Protocol):
    """A pool whose location depends on covariates."""

    @property
    def keys(self) -> dict[str, str | int]:
        """What its cells have in common."""

    @property
    def coefficients(self) -> tuple[Coefficient, ...]:
        """Of its covariates."""


def coefficients_table(pools: Sequence[HasCoefficients]) -> Table:
    """Return one row a covariate of each pool."""
    rows = [
        {
            **pool.keys,
            "covariate": each.name,
            "mean": each.mean,
            "sd": each.sd,
            "lower": each.lower,
            "upper": each.upper,
            "step": each.step,
            "in_words": str(each),
        }
        for pool in pools
        for each in pool.coefficients
    ]
    return Table(rows, title="Covariates: logits or logarithms for one unit")


def design_of(statistic: NoisyStatistic, pooling: Pooling) -> Design | None:
    """Return the design matrix of what is asked for; None where there are no covariates.

    Raises
    ------
    UsageError
        Where the table or the formula cannot be read, or they do not go together.
    MissingExtraError
        Where ``formulaic`` is not installed.
    """
    if pooling.covariates is None and pooling.formula is None:
        return None
    if pooling.over is not None or pooling.adjacency is not None:
        other = "over" if pooling.over is not None else "adjacency"
        message = f"covariates and {other} do not go together yet: leave one of them out"
        raise UsageError(message)
    keys: dict[str, list[Any]] = {column: list(of_cells) for column, of_cells in statistic.groups.items()}
    columns, origin = dict(keys), "the release"
    if pooling.covariates is not None:
        table = public_table(pooling.covariates, "covariates")
        rows = table.rows_of(statistic)
        origin = table.origin
        further = {name: [column[row] for row in rows] for name, column in table.columns.items()}
        columns = {**further, **keys}
    if pooling.formula is None:
        first = [name for name in columns if name not in keys][:2]
        message = f"covariates need a formula that names columns of theirs, as '~ {' + '.join(first)}'"
        raise UsageError(message)
    names, values = _matrix(pooling.formula, columns, keys, origin)
    is_indicator = np.all((values == 0.0) | (values == 1.0), axis=0)
    steps = np.std(values, axis=0)
    steps[is_indicator | (steps == 0.0)] = 1.0
    return Design(formula=pooling.formula, names=names, columns=values, steps=steps)


def _matrix(
    formula: str, columns: Mapping[str, Sequence[Any]], keys: Mapping[str, Sequence[Any]], origin: str
) -> tuple[tuple[str, ...], Floats]:
    """Return names and values of a formula's columns, without the intercept."""
    formula_class, parser, error_class = _formulaic()
    _check_functions(formula)
    try:
        _check_work(formula, *_terms(parser.get_ast(formula)), columns)
        terms = formula_class(formula)
    except error_class:
        message = f"formula {formula!r} cannot be read: write it as '~ income + C(state)'"
        raise UsageError(message) from None
    needed: Any = getattr(terms, "required_variables", ())
    unknown = sorted(str(name) for name in needed if name not in columns)
    if unknown:
        has = ", ".join(list(columns)[:12])
        message = f"formula {formula!r} names {unknown[0]!r}, and {origin} has {has}"
        raise UsageError(message)
    if hasattr(terms, "lhs") or not hasattr(terms, "required_variables"):
        message = f"formula {formula!r} has a left side or several parts: write it as '~ income + C(state)'"
        raise UsageError(message)
    words = set(re.findall(r"\w+", formula)) | {str(name) for name in needed}
    used = {name: values for name, values in columns.items() if name in words or not name.isidentifier()}
    for name, values in used.items():
        missing = [cell for cell, value in enumerate(values) if value is None]
        if missing and name in {*words, *needed}:
            message = (
                f"the covariate {name} has no value in {counted(len(missing), 'cell')}, of which the first "
                f"is {_cell(keys, missing[0])}: give it one, or leave the cells out by where"
            )
            raise UsageError(message)
    return _evaluated(terms, error_class, formula, used, keys)


def _evaluated(
    terms: Any,
    error_class: type[Exception],
    formula: str,
    used: Mapping[str, Sequence[Any]],
    keys: Mapping[str, Sequence[Any]],
) -> tuple[tuple[str, ...], Floats]:
    import pandas as pd

    frame = pd.DataFrame({name: list(values) for name, values in used.items()})
    try:
        with np.errstate(all="ignore"):
            matrix: Any = terms.get_model_matrix(frame, context={}, na_action="ignore")
        values = np.asarray(matrix, dtype=np.float64)
    except (error_class, TypeError, ValueError, ArithmeticError):
        message = (
            f"formula {formula!r} cannot be worked out of columns {', '.join(used) or '(none)'}: are they "
            "numbers where it needs numbers, and do its functions have what they need?"
        )
        raise UsageError(message) from None
    names = [str(name) for name in matrix.columns]
    if "Intercept" not in names:
        message = (
            f"formula {formula!r} has no intercept, which is the population's location: leave 0 or -1 out"
        )
        raise UsageError(message)
    kept = [place for place, name in enumerate(names) if name != "Intercept"]
    if not 1 <= len(kept) <= MOST_COEFFICIENTS:
        message = f"formula {formula!r} has {counted(len(kept), 'column')}: it takes 1 to {MOST_COEFFICIENTS}"
        raise UsageError(message)
    values = values[:, kept]
    for place, name in enumerate(names[place] for place in kept):
        wrong = np.flatnonzero(~(np.abs(values[:, place]) < 1e100))
        if wrong.size:
            message = (
                f"the covariate {name} is not finite in {counted(wrong.size, 'cell')}, of which the first is "
                f"{_cell(keys, int(wrong[0]))}"
            )
            raise UsageError(message)
    return tuple(names[place] for place in kept), values


def _cell(keys: Mapping[str, Sequence[Any]], cell: int) -> str:
    return ", ".join(f"{column}={of_cells[cell]}" for column, of_cells in keys.items())


def _check_functions(formula: str) -> None:
    """Refuse what a formula of covariates does not need: it would be evaluated."""
    if not isinstance(formula, str):
        message = f"formula is a text, as '~ income + C(state)', not {formula!r}"
        raise UsageError(message)
    # Names in backquotes are columns, whatever stands in them.
    text = re.sub(r"`[^`]*`", "x", formula)
    named = [name for name in _CALLED.findall(text) if name not in FUNCTIONS and not name.isdigit()]
    if named or _NOT_OF_A_FORMULA.search(text):
        what = f"calls {named[0]!r}" if named else "has signs that are of no formula"
        message = f"formula {formula!r} {what}: it may call {', '.join(FUNCTIONS)}"
        raise UsageError(message)
    if len(formula) > _LONGEST:
        message = f"a formula has {_LONGEST:,} characters at most, not {len(formula):,}"
        raise UsageError(message)


def _check_work(
    formula: str, terms: int, evaluated: Sequence[str], columns: Mapping[str, Sequence[Any]]
) -> None:
    """Refuse what would take long: whoever asks need not be whose worker it is."""
    texts = {name for name, values in columns.items() if any(isinstance(value, str) for value in values)}
    if terms > MOST_TERMS:
        message = f"formula {formula!r} would have more than {MOST_TERMS:,} terms before they are simplified"
        raise UsageError(message)
    for text in evaluated:
        try:
            tree = ast.parse(text, mode="eval")
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            message = f"formula {formula!r} cannot be read: write it as '~ income + C(state)'"
            raise UsageError(message) from None
        for node in ast.walk(tree):
            if not isinstance(node, _EVALUATED):
                message = f"formula {formula!r} has what is of no formula: {type(node).__name__} in {text!r}"
                raise UsageError(message)
            _check_numbers(formula, node, texts)


def _check_numbers(formula: str, node: ast.AST, texts: Collection[str]) -> None:
    """Refuse a power that is not of a small number, texts in arithmetic, and many columns of one call."""
    if isinstance(node, ast.BinOp) and _holds_text(node, texts):
        message = f"formula {formula!r} has {ast.unparse(node)!r}: arithmetic is of numbers, not of texts"
        raise UsageError(message)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
        exponent = node.right.operand if isinstance(node.right, ast.UnaryOp) else node.right
        is_small = (
            isinstance(exponent, ast.Constant)
            and isinstance(exponent.value, int | float)
            and 0 <= exponent.value <= MOST_POWER
        )
        holds_power = any(isinstance(part, ast.Pow) for part in ast.walk(node.left))
        if not is_small or holds_power:
            message = (
                f"formula {formula!r} has {ast.unparse(node)!r}: a power is a number from 0 to {MOST_POWER}, "
                "and of no other power"
            )
            raise UsageError(message)
    if isinstance(node, ast.Call) and ast.unparse(node.func) in _OF_COLUMNS:
        given = [*node.args[1:], *(keyword.value for keyword in node.keywords)]
        if any(
            isinstance(part, ast.Constant) and isinstance(part.value, int) and part.value > MOST_COEFFICIENTS
            for value in given
            if not isinstance(value, ast.List | ast.Tuple)
            for part in ast.walk(value)
        ):
            message = (
                f"formula {formula!r} asks {ast.unparse(node)!r} for more than {MOST_COEFFICIENTS} columns"
            )
            raise UsageError(message)


def _holds_text(node: ast.AST, texts: Collection[str]) -> bool:
    """Whether a text or a list is part of what arithmetic is of; a comparison of texts is no text."""
    if isinstance(node, ast.Compare):
        return False
    if isinstance(node, ast.List | ast.Tuple) or (isinstance(node, ast.Name) and node.id in texts):
        return True
    if isinstance(node, ast.Constant):
        return not isinstance(node.value, int | float)
    return any(_holds_text(part, texts) for part in ast.iter_child_nodes(node))


def _terms(node: Any) -> tuple[int, list[str]]:
    """Return how many terms a node of a formula makes at most, and the texts of it that are evaluated.

    Nodes are ``formulaic``'s, read and not worked out.
    """
    if not hasattr(node, "operator"):
        return 1, [str(node)] if getattr(node.kind, "name", "") == "PYTHON" else []
    of_parts = [_terms(part) for part in node.args]
    texts = [text for _, more in of_parts for text in more]
    sizes = [size for size, _ in of_parts]
    symbol = node.operator.symbol
    if symbol in ("**", "^"):
        power = str(node.args[1])
        # A power that is no number is refused by ``formulaic`` itself.
        return sizes[0] ** min(int(power), 100) if power.isdecimal() else 1, texts
    if symbol in ("+", "-", "~", "|"):
        return sum(sizes), texts
    return int(np.prod([min(size + 1, MOST_TERMS + 1) for size in sizes])), texts


def _formulaic() -> tuple[Any, Any, type[Exception]]:
    """Return the class of formulas, their parser, and the class of errors in them."""
    try:
        from formulaic import Formula
        from formulaic.errors import FormulaicError
        from formulaic.parser import DefaultFormulaParser
    except ImportError:
        _missing()
    return Formula, DefaultFormulaParser(), FormulaicError


def _missing() -> NoReturn:
    feature = "a formula of covariates"
    raise MissingExtraError(feature, "covariates")
