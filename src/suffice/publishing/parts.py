"""Publications of very many cells, a part at a time: what a part rests on, its file, whether it stands there.

A part is a function of the request and of the release alone: whichever thread, process or machine has it, and
in whatever order, its file has the same bytes. A part whose file stands there is not computed again.
"""

from __future__ import annotations

import dataclasses
import importlib.metadata
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from suffice.data_files.source import DRAWS, SUMMARIES, Provenance, ReleaseSource
from suffice.data_files.tables import SOURCE, parquet_bytes, parquet_metadata, table_of
from suffice.errors import ClusterError, UsageError
from suffice.pipeline.ask.batches.part_answer import (
    PartTerms,
    answer_part,
    cells_per_part,
    parts_of,
    return_freed_memory,
)
from suffice.pipeline.ask.inference.posterior_terms import PosteriorTerms
from suffice.pipeline.ask.posterior.arviz import method_text
from suffice.pipeline.ask.posterior.notes import described
from suffice.pipeline.ask.publication.question import cells_asked, further_terms, shared_terms
from suffice.pipeline.ask.publication.request import kind_of_intervals, mass_of
from suffice.pipeline.cluster.connection import open_cluster
from suffice.pipeline.cluster.stream import stream
from suffice.pipeline.math.distributions.composite import worst_diagnostics
from suffice.profile.settings import pinned_certificates
from suffice.storage.publications.publication import LONGEST_DIAGNOSTIC, MOST_FILES
from suffice.storage.publications.publication_store import put_receipt, with_receipts

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from suffice.pipeline.ask.batches.part_answer import AnswerPart
    from suffice.pipeline.ask.pooling.release import Release
    from suffice.pipeline.ask.publication.question import Question
    from suffice.pipeline.cluster.addresses import AnyCluster
    from suffice.pipeline.math.distributions.composite import CellProgress
    from suffice.pipeline.terms.released.noisy_statistic import Cells, NoisyStatistic
    from suffice.storage.publications.publication import PublishedEntry, PublishedFile
    from suffice.storage.publications.publication_store import PublicationStore
    from suffice.storage.signatures.signing import Signer


def publish_parts(
    question: Question,
    publications: PublicationStore,
    *,
    cluster: AnyCluster,
    progress: CellProgress | None = None,
    signer: Signer | None = None,
) -> tuple[list[PublishedEntry], dict[str, dict[str, str]]]:
    """Compute and write all parts that do not stand there yet.

    Parameters
    ----------
    question : Question
        Of kind ``posterior``, with ``cells_per_part``.
    publications : PublicationStore
    cluster : str or Client
        Where parts are computed, as ``open_cluster`` takes it. It changes no number.
    progress : callable, optional
        Gets the number of cells that are done, and of all, after every part.
    signer : Signer, optional
        Who will sign the manifest: parts that stand there count where this key signed a receipt of them.

    Returns
    -------
    entries : list of PublishedEntry
        Of the files of all parts, in order.
    diagnostics : dict of str to dict of str to str
        By statistic, the worst of all parts, as text; empty where draws are independent.

    Raises
    ------
    UsageError
        Where there would be too many parts, or files.
    ClusterError, StoreError, MissingExtraError
        Where the cluster or the store cannot be used. What was written stays, and is used again.
    """
    publication_id = question.request.publication_id
    all_parts = [
        StatisticParts.of(question, position) for position in range(len(question.request.statistics))
    ]
    n_files = sum(len(each.parts) for each in all_parts) * (2 if question.request.draws else 1)
    if n_files > MOST_FILES:
        message = (
            f"these statistics make {n_files} files, and a publication has at most {MOST_FILES}: publish "
            "fewer statistics at once, or fewer draws"
        )
        raise UsageError(message)
    standing = with_receipts(publications, publication_id, signer)
    files = {file.name: file for file in standing}
    entries: dict[tuple[int, int], list[PublishedEntry]] = {}
    diagnostics: dict[str, dict[str, Any]] = {}
    missing: dict[int, list[AnswerPart]] = {}
    done, n_cells = 0, sum(len(each.cells) for each in all_parts)

    def take(
        position: int, part: AnswerPart, part_entry: list[PublishedEntry], rests_on: Mapping[str, Any]
    ) -> None:
        nonlocal done
        name = all_parts[position].statistic
        entries[position, part.number] = part_entry
        diagnostics[name] = worst_diagnostics([diagnostics.get(name, {}), rests_on])
        done += part.stop - part.start
        if progress is not None:
            progress(done, n_cells)

    for position, each in enumerate(all_parts):
        for part in each.parts:
            written_before = each.standing(part, files, publications)
            if written_before is None:
                missing.setdefault(position, []).append(part)
            else:
                take(position, part, *written_before)
    try:
        for position, computed in _computed(cluster, all_parts, missing):
            written = _put(publications, publication_id, computed, signer)
            take(position, computed.part, written, computed.diagnostics)
    except ClusterError as error:
        of = sum(len(each.parts) for each in all_parts)
        message = (
            f"{error}; {len(entries)} of {of} parts are written and kept: the same command, with this or "
            "another --cluster, computes the others"
        )
        raise ClusterError(message) from None
    return (
        [entry for place in sorted(entries) for entry in entries[place]],
        {name: described(numbers) for name, numbers in diagnostics.items() if numbers},
    )


def _put(
    publications: PublicationStore, publication_id: str, computed: PartFiles, signer: Signer | None
) -> list[PublishedEntry]:
    """Write the files of a part; whoever signs leaves a receipt of each."""
    entries = []
    for name, (content, rows) in computed.files.items():
        file = publications.put_file(publication_id, name, content)
        if signer is not None:
            put_receipt(publications, publication_id, file, signer)
        entries.append(file.entry(role="part", file_format="parquet", rows=rows))
    return entries


def _computed(
    cluster: AnyCluster, all_parts: Sequence[StatisticParts], missing: Mapping[int, Sequence[AnswerPart]]
) -> Iterator[tuple[int, PartFiles]]:
    """Give what is missing as it is computed, each with its statistic's position; none opens no cluster."""
    if missing:
        return_freed_memory()  # of reading and checking the release
        with open_cluster(cluster, certificates=pinned_certificates()) as opened:
            for position, parts in missing.items():
                for computed in stream(opened, part_files, all_parts[position].tasks(parts)):
                    yield position, computed


PART = "part"
"""The key of a part's metadata under which it says which cells it has, as JSON."""
_TEXTS = frozenset({"sampler", "not_reconciled"})
_NUMBERS = frozenset({"chains", "draws", "largest_r_hat", "fewest_effective_draws"})
"""What diagnostics of posteriors state."""
_LARGEST_NUMBER = 2**53
FORMATS = ("parquet",)
"""That are written in parts."""


def cells_of_parts(
    release: Release, statistics: Sequence[str], where: Mapping[str, object] | None, draws: object
) -> int | None:
    """Return how many cells a part has at most; None where all fit into one, so that there are no parts.

    Raises
    ------
    UsageError
        Where the release has no such statistic, column or key.
    """
    if not statistics or not isinstance(draws, int) or draws < 0:
        return None  # refused with all else that a request may not say
    asked = [cells_asked(release, name, where) for name in statistics]
    most = min(cells_per_part(cells.plan, draws) for cells in asked)
    return most if max(map(len, asked)) > most else None


@dataclass(frozen=True, slots=True, kw_only=True)
class PartTask:
    """What one task computes; it travels to a worker.

    Attributes
    ----------
    asked : PartTerms
    part : Part
    cells : NoisyStatistic
        Those of the part.
    sources : dict of str to Source
        What the part's files rest on, by their names.
    """

    asked: PartTerms
    part: AnswerPart
    cells: NoisyStatistic = field(repr=False)
    sources: Mapping[str, Provenance] = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartFiles:
    """What one task returns.

    Attributes
    ----------
    part : Part
    files : dict of str to tuple of bytes and int
        By name: content, and rows.
    diagnostics : dict
        What chains rest on; empty where draws are independent.
    """

    part: AnswerPart
    files: Mapping[str, tuple[bytes, int]] = field(repr=False)
    diagnostics: Mapping[str, Any]


def part_files(task: PartTask) -> PartFiles:
    """Compute a part, and write its files in memory; runs on a worker."""
    answer = answer_part(task.asked, task.part.number, task.cells)
    columns = {SUMMARIES: answer.summaries, DRAWS: answer.draws}
    stated = json.dumps(_stated(task.part, answer.diagnostics), sort_keys=True)
    files = {}
    for name, source in task.sources.items():
        table = table_of(columns[source.what] or {})
        noted = dataclasses.replace(source, notes=answer.notes)
        content = parquet_bytes(table, noted, further={PART: stated}, searched=tuple(task.cells.groups))
        files[name] = (content, table.num_rows)
    part_files = PartFiles(part=task.part, files=files, diagnostics=answer.diagnostics)
    del answer, columns, table
    return_freed_memory()
    return part_files


def _stated(part: AnswerPart, diagnostics: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "number": part.number,
        "start": part.start,
        "stop": part.stop,
        "diagnostics": dict(diagnostics),
        "written_by": importlib.metadata.version("suffice"),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class StatisticParts:
    """All parts of one statistic: where its cells come from, and what is asked of them."""

    asked: PartTerms
    statistic: str
    source: Provenance
    cells: Cells = field(repr=False)
    parts: Sequence[AnswerPart] = field(repr=False)

    @classmethod
    def of(cls, question: Question, position: int) -> StatisticParts:
        """Return the parts of one statistic of a request.

        Raises
        ------
        UsageError
            Where there would be too many.
        """
        request, (release,) = question.request, question.releases
        asked = request.statistics[position]
        cells = cells_asked(release, asked.statistic, request.where)
        most = request.cells_per_part or len(cells)
        prior = asked.priors[0].prior
        stated = further_terms(request, shared_terms(request, asked, cells.slice(0, 1)))
        return cls(
            asked=PartTerms(
                terms=dataclasses.replace(PosteriorTerms(prior=prior, **stated), where=None),
                mass=mass_of(request),
                interval=kind_of_intervals(asked),
                draws=request.draws,
                seed=request.seed,
                place=position,
                n_cells=len(cells),
            ),
            statistic=asked.statistic,
            source=Provenance(
                what=SUMMARIES,
                releases=(ReleaseSource.of(release),),
                statistic=asked.statistic,
                method=method_text(request.method),
                prior=prior,
                n_prior=asked.n_prior,
                predictor_prior=asked.predictor_prior,
                where=", ".join(f"{column}={key}" for column, key in request.where.items()) or None,
                mass=mass_of(request),
                interval=asked.interval,
                draws=request.draws,
                seed=request.seed,
                publication_id=request.publication_id,
            ),
            cells=cells,
            parts=parts_of(len(cells), cells.n_first_keys, most),
        )

    def sources(self, part: AnswerPart) -> dict[str, Provenance]:
        """Return what a part's files rest on, by their names."""
        held = {"summaries": SUMMARIES, **({"draws": DRAWS} if self.asked.draws else {})}
        return {
            f"{self.statistic}-{what}-{part.number:05}.parquet": dataclasses.replace(self.source, what=holds)
            for what, holds in held.items()
        }

    def tasks(self, parts: Sequence[AnswerPart]) -> Iterator[tuple[PartTask]]:
        """Give tasks of some parts; their cells are read when they are asked for."""
        for part in parts:
            cells = self.cells.slice(part.start, part.stop)
            yield (PartTask(asked=self.asked, part=part, cells=cells, sources=self.sources(part)),)

    def standing(
        self, part: AnswerPart, files: Mapping[str, PublishedFile], publications: PublicationStore
    ) -> tuple[list[PublishedEntry], dict[str, Any]] | None:
        """Return the entries and the diagnostics of a part that was written before; None where it was not.

        A part of another version of suffice does not count: the manifest states one.
        """
        entries, metadata_of_part = [], {}
        for name, source in self.sources(part).items():
            file = files.get(name)
            data = file and publications.read_file(self.asked_id, file.path)
            metadata, rows = parquet_metadata(data) if data else ({}, 0)
            metadata_of_part = _read(metadata.get(PART, ""))
            if file is None or metadata_of_part != _stated(part, metadata_of_part.get("diagnostics", {})):
                return None
            if _without_notes(metadata.get(SOURCE, "")) != _without_notes(source.text()):
                return None  # of another request: somebody has put it here
            entries.append(file.entry(role="part", file_format="parquet", rows=rows))
        return entries, metadata_of_part["diagnostics"]

    @property
    def asked_id(self) -> str:
        """The publication's id."""
        return str(self.source.publication_id)


def _without_notes(text: str) -> object:
    """Return what a source states but its notes, which are known once a part is computed."""
    try:
        stated = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return (
        {name: value for name, value in stated.items() if name != "notes"}
        if isinstance(stated, dict)
        else None
    )


def _read(text: str) -> dict[str, Any]:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    diagnostics = document.get("diagnostics") if isinstance(document, dict) else None
    return (
        document
        if isinstance(diagnostics, dict) and all(map(_is_diagnostic, diagnostics, diagnostics.values()))
        else {}
    )


def _is_diagnostic(name: str, value: object) -> bool:
    """Tell whether a part can have told this: parts are read from where others may write."""
    if name in _TEXTS:
        return isinstance(value, str) and len(value) <= LONGEST_DIAGNOSTIC
    is_number = isinstance(value, float) or (type(value) is int and abs(value) < _LARGEST_NUMBER)
    return name in _NUMBERS and is_number
