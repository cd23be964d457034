"""Likelihoods that were written or published, read back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from suffice.errors import UsageError
from suffice.pipeline.ask.posterior.counts_likelihood import CountsLikelihood
from suffice.pipeline.ask.posterior.likelihood_files import COUNTS, MOMENTS, TABLES, named, read_table
from suffice.pipeline.ask.posterior.likelihood_tables import LikelihoodTables
from suffice.pipeline.ask.posterior.moments_likelihood import MomentsLikelihood

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from os import PathLike

    import pyarrow as pa

ReadLikelihood: TypeAlias = LikelihoodTables | CountsLikelihood | MomentsLikelihood
_READERS: dict[str, Callable[[pa.Table, Mapping[str, Any]], ReadLikelihood]] = {
    TABLES: LikelihoodTables.of_table,
    COUNTS: CountsLikelihood.of_table,
    MOMENTS: MomentsLikelihood.of_table,
}


def read_likelihood(source: str | PathLike[str] | bytes) -> ReadLikelihood:
    """Return a likelihood that ``to_parquet`` wrote, or that was published.

    Parameters
    ----------
    source : str, path or bytes
        A file, or its content, as ``Publication.read("cancelled-likelihood.parquet")`` returns it.

    Returns
    -------
    LikelihoodTables, CountsLikelihood or MomentsLikelihood
        Of one parameter; of a table's probabilities; of a mean and a standard deviation.

    Raises
    ------
    UsageError
        Where it is none of these.
    """
    try:
        table, stated = read_table(source)
        return _READERS[stated.get("kind", TABLES)](table, stated)
    except (OSError, KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        if isinstance(error, UsageError):
            raise
        message = f"{named(source)} is no likelihood that to_parquet wrote, or cannot be read"
        raise UsageError(message) from None
