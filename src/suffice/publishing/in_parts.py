"""Publications of very many cells: computed and written a part at a time, each a file of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from suffice.errors import ClusterError, UsageError
from suffice.pipeline.ask.batches.freed_memory import return_freed_memory
from suffice.pipeline.ask.posterior.notes import described
from suffice.pipeline.cluster.connection import open_cluster
from suffice.pipeline.cluster.stream import stream
from suffice.pipeline.math.distributions.piecewise import worst_diagnostics
from suffice.profile.settings import pinned_certificates
from suffice.publishing.parts import PartFiles, StatisticParts, part_files
from suffice.storage.publications.manifest_model import MOST_FILES
from suffice.storage.publications.receipts import put_receipt, with_receipts

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from suffice.pipeline.ask.batches.parts import Part
    from suffice.pipeline.ask.publication.question import Question
    from suffice.pipeline.math.distributions.cell_blocks import CellProgress
    from suffice.storage.publications.manifest_model import PublishedEntry
    from suffice.storage.publications.publication_store import PublicationStore
    from suffice.storage.signatures.signing import Signer


def publish_parts(
    question: Question,
    publications: PublicationStore,
    *,
    cluster: str,
    progress: CellProgress | None = None,
    signer: Signer | None = None,
) -> tuple[list[PublishedEntry], dict[str, dict[str, str]]]:
    """Compute and write all parts that do not stand there yet.

    Parameters
    ----------
    question : Question
        Of kind ``posterior``, with ``cells_per_part``.
    publications : PublicationStore
    cluster : str
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
    n_files = sum(len(one.parts) for one in all_parts) * (2 if question.request.draws else 1)
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
    missing: dict[int, list[Part]] = {}
    done, n_cells = 0, sum(len(one.cells) for one in all_parts)

    def take(position: int, part: Part, found: list[PublishedEntry], rests_on: Mapping[str, Any]) -> None:
        nonlocal done
        name = all_parts[position].statistic
        entries[position, part.number] = found
        diagnostics[name] = worst_diagnostics([diagnostics.get(name, {}), rests_on])
        done += part.stop - part.start
        if progress is not None:
            progress(done, n_cells)

    for position, one in enumerate(all_parts):
        for part in one.parts:
            found = one.standing(part, files, publications)
            if found is None:
                missing.setdefault(position, []).append(part)
            else:
                take(position, part, *found)
    try:
        for position, computed in _computed(cluster, all_parts, missing):
            written = _put(publications, publication_id, computed, signer)
            take(position, computed.part, written, computed.diagnostics)
    except ClusterError as error:
        of = sum(len(one.parts) for one in all_parts)
        message = (
            f"{error}; {len(entries)} of {of} parts are written and kept: the same command, with this or "
            "another --cluster, computes the others"
        )
        raise ClusterError(message) from None
    return (
        [entry for place in sorted(entries) for entry in entries[place]],
        {name: described(found) for name, found in diagnostics.items() if found},
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
    cluster: str, all_parts: Sequence[StatisticParts], missing: Mapping[int, Sequence[Part]]
) -> Iterator[tuple[int, PartFiles]]:
    """Give what is missing as it is computed, each with its statistic's position; none opens no cluster."""
    if missing:
        return_freed_memory()  # of reading and checking the release
        with open_cluster(cluster, certificates=pinned_certificates()) as opened:
            for position, parts in missing.items():
                for computed in stream(opened, part_files, all_parts[position].tasks(parts)):
                    yield position, computed
