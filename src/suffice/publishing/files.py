"""The files of an answer, one format after the other, each with what it comes from."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from suffice.data_files.source import (
    DRAWS,
    LIKELIHOOD,
    SUMMARIES,
    Provenance,
    ReleaseSource,
    write_dataset,
    write_netcdf,
)
from suffice.data_files.tables import columns_of, csv_bytes, csv_metadata, json_bytes, parquet_bytes, table_of
from suffice.pipeline.ask.posterior.arviz import method_text
from suffice.pipeline.ask.publication.request import mass_of, model_text, pooled_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from collections.abc import Set as AbstractSet

    from suffice.pipeline.ask.posterior.likelihood import AnyLikelihood
    from suffice.pipeline.ask.publication.answer import Answer
    from suffice.pipeline.ask.publication.question import Question


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerFile:
    """One file that is to be published.

    Attributes
    ----------
    name : str
        As ``cancelled-summaries.parquet``.
    role : {"summaries", "draws", "card", "likelihood"}
    format : str
    rows : int or None
        Where it is a table.
    content : bytes
    beside : callable or None
        Of a CSV file: takes the path that it got, and returns its metadata.
    """

    name: str
    role: Literal["summaries", "draws", "card", "likelihood"]
    format: str
    rows: int | None
    content: bytes
    beside: Callable[[str], bytes] | None = None


def answer_files(question: Question, answer: Answer) -> Iterator[AnswerFile]:
    """Give the files of one answer in the request's formats.

    Raises
    ------
    MissingExtraError
        Where a format needs an extra that is not installed.
    UsageError
        Where a card would have too many rows.
    """
    request = question.request
    if answer.likelihood is not None:
        yield from _likelihood_files(question, answer, answer.likelihood)
        return
    tables: dict[tuple[str, Literal["summaries", "draws"]], Any] = {
        ("summaries", "summaries"): columns_of(answer.rows),
        **{(name, "summaries"): columns_of(rows) for name, rows in answer.further.items()},
    }
    formats = set(request.formats)
    has_draws = request.draws > 0 and answer.draws is not None
    if has_draws and answer.draws is not None and formats & {"parquet", "csv"}:
        tables["draws", "draws"] = answer.draws()
    for (what, role), columns in tables.items():
        source = source_of(question, answer, DRAWS if role == "draws" else SUMMARIES)
        yield from _table_files(f"{answer.name}-{what}", role, columns, source, formats)
    if "json" in formats:
        source = source_of(question, answer, SUMMARIES)
        content = json_bytes(answer.rows, source, **answer.further)
        yield AnswerFile(
            name=f"{answer.name}-summaries.json",
            role="summaries",
            format="json",
            rows=len(answer.rows),
            content=content,
        )
    if "netcdf" in formats and answer.to_arviz is not None:
        source = source_of(question, answer, DRAWS)
        yield AnswerFile(
            name=f"{answer.name}-draws.nc",
            role="draws",
            format="netcdf",
            rows=None,
            content=_netcdf_bytes(answer.to_arviz(), source),
        )
    if "card" in formats and answer.posterior is not None:
        yield AnswerFile(
            name=f"{answer.name}-card.html",
            role="card",
            format="html",
            rows=None,
            content=_card(question, answer).encode(),
        )


def source_of(question: Question, answer: Answer, what: str) -> Provenance:
    """Return what the numbers of an answer's file rest on."""
    request = question.request
    asked = [statistic for statistic in request.statistics if statistic.statistic in answer.statistics]
    model = None if request.model is None else model_text(request.model)
    populations: list[str] = []
    if request.pooled is not None and answer.posterior is not None:
        model, populations = pooled_text(request.pooled), [str(answer.posterior.prior)]
    return Provenance(
        what=what,
        releases=tuple(map(ReleaseSource.of, question.releases)),
        statistic=", ".join(answer.statistics),
        method=method_text(request.method),
        prior=_joined(
            [
                *populations,
                *(
                    prior.prior if prior.name is None else f"{prior.name}: {prior.prior}"
                    for statistic in asked
                    for prior in statistic.priors
                ),
            ]
        ),
        n_prior=_joined(statistic.n_prior for statistic in asked),
        predictor_prior=_joined(statistic.predictor_prior for statistic in asked),
        where=", ".join(f"{column}={key}" for column, key in request.where.items()) or None,
        rolled_up_over=", ".join(request.over) or None,
        pooled_as=request.relation,
        model=model,
        mass=None if request.mass is None else float(request.mass),
        interval=_joined(statistic.interval for statistic in asked),
        draws=None if request.kind == "likelihood" else request.draws,
        seed=None if request.kind == "likelihood" else request.seed,
        publication_id=request.publication_id,
        notes=answer.notes,
    )


def _likelihood_files(question: Question, answer: Answer, likelihood: AnyLikelihood) -> Iterator[AnswerFile]:
    """Give a likelihood as tables, with all that reading it back takes in the metadata."""
    formats, name = set(question.request.formats), f"{answer.name}-likelihood"
    source = source_of(question, answer, LIKELIHOOD)
    table = likelihood.to_table()
    if "parquet" in formats:
        stated = {key.decode(): text.decode() for key, text in table.schema.metadata.items()}
        yield AnswerFile(
            name=f"{name}.parquet",
            role="likelihood",
            format="parquet",
            rows=table.num_rows,
            content=parquet_bytes(table.replace_schema_metadata(None), source, further=stated),
        )
    if "csv" in formats:
        yield AnswerFile(
            name=f"{name}.csv",
            role="likelihood",
            format="csv",
            rows=table.num_rows,
            content=csv_bytes(table),
            beside=lambda path: csv_metadata(table, source, path),
        )
    if "netcdf" in formats:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "likelihood.nc"
            write_dataset(likelihood.to_xarray(), path, source)
            content = path.read_bytes()
        yield AnswerFile(name=f"{name}.nc", role="likelihood", format="netcdf", rows=None, content=content)


def _joined(texts: Any) -> str | None:
    distinct = dict.fromkeys(text for text in texts if text is not None)
    return "; ".join(distinct) or None


def _table_files(
    name: str,
    role: Literal["summaries", "draws"],
    columns: Mapping[str, Any],
    source: Provenance,
    formats: AbstractSet[str],
) -> Iterator[AnswerFile]:
    if not formats & {"parquet", "csv"}:
        return
    table = table_of(columns)
    if "parquet" in formats:
        yield AnswerFile(
            name=f"{name}.parquet",
            role=role,
            format="parquet",
            rows=table.num_rows,
            content=parquet_bytes(table, source),
        )
    if "csv" in formats:
        yield AnswerFile(
            name=f"{name}.csv",
            role=role,
            format="csv",
            rows=table.num_rows,
            content=csv_bytes(table),
            beside=lambda path: csv_metadata(table, source, path),
        )


def _netcdf_bytes(drawn: Any, source: Provenance) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "draws.nc"
        write_netcdf(drawn, path, source)
        return path.read_bytes()


def _card(question: Question, answer: Answer) -> str:
    from suffice.pages.card import card  # only where a card is asked for
    from suffice.pipeline.ask.publication.answer import quantile_draws

    request = question.request
    if answer.posterior is None:
        message = "a card shows one posterior"
        raise ValueError(message)
    return card(
        question.releases[0 if question.series is None else -1],
        answer.posterior,
        mass=mass_of(request),
        interval=_interval_of(question, answer),
        draws=quantile_draws(request.draws),
        seed=request.seed,
        rng=answer.rng(),
    )


def _interval_of(question: Question, answer: Answer) -> str | None:
    (asked,) = [
        statistic for statistic in question.request.statistics if statistic.statistic in answer.statistics
    ]
    return asked.interval
