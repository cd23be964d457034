"""Publish posteriors: the plain function that orders request, look-up, computation, files and manifest.

The order is the promise: everything is read and checked, then the request is written out and looked up. What
was published before is returned, and nothing is computed. Otherwise every file is put, named by its content,
and the manifest last: a reader sees all of it or nothing.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import math
import os
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from suffice.errors import SignatureError, SufficeWarning, UsageError
from suffice.pipeline.ask.inference.posterior_terms import lists_terms
from suffice.pipeline.ask.pooling.release import Release
from suffice.pipeline.ask.pooling.series import Series
from suffice.pipeline.ask.publication.answering import answers
from suffice.pipeline.cluster.connection import THREADS, check_cluster
from suffice.profile.settings import cluster_setting, pinned_profile, publication_store
from suffice.publishing.asking import question_of, title_of
from suffice.publishing.files import answer_files
from suffice.publishing.parts import publish_parts
from suffice.storage.objects.address import read_address
from suffice.storage.objects.object_store import Patience
from suffice.storage.publications.publication import compose_publication
from suffice.storage.publications.publication_store import PublicationStore, holds_publications, holds_store
from suffice.storage.releases.location import MANIFEST
from suffice.storage.releases.release_store import locate, open_release
from suffice.storage.signatures import signing

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Unpack

    from suffice.pipeline.ask.borrowing.pooling import Pooling
    from suffice.pipeline.ask.inference.chosen_priors import AnyPrior
    from suffice.pipeline.ask.inference.posterior_terms import FurtherTerms
    from suffice.pipeline.ask.publication.question import Question
    from suffice.pipeline.cluster.addresses import AnyCluster
    from suffice.pipeline.math.distributions.composite import CellProgress
    from suffice.storage.publications.publication import Publication, PublishedEntry

    Reference = Release | str | os.PathLike[str]

PUBLISH_TIMEOUT = 600.0
"""Seconds for which a store that fails is tried again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """A publication, and whether this call made it.

    Attributes
    ----------
    publication : Publication
    is_new : bool
        Whether this call published it; False where the request was answered before, or by another
        writer meanwhile.
    signature : str
        ``checked`` against keys that are demanded, or against the one that this publisher signs with;
        ``not_checked``; ``unsigned``.
    """

    publication: Publication
    is_new: bool
    signature: signing.SignatureStatus


@lists_terms
def publish(
    release: Reference | Series,
    statistics: str | Sequence[str] = (),
    *,
    prior: AnyPrior | Mapping[str, AnyPrior] = None,
    priors: Mapping[str, AnyPrior] | None = None,
    disjoint: Sequence[Reference] = (),
    same_data: Sequence[Reference] = (),
    compare: Reference | None = None,
    pooled: bool | str | Sequence[str] | Pooling = False,
    kind: str = "posterior",
    roll_up: str | Sequence[str] = (),
    assume: str | None = None,
    series: Sequence[Reference] = (),
    model: Mapping[str, Any] | None = None,
    vouched: bool = False,
    mass: float = 0.95,
    interval: str | None = None,
    draws: int | None = None,
    seed: int | None = None,
    formats: str | Sequence[str] | None = None,
    to: str | os.PathLike[str] | None = None,
    store: str | os.PathLike[str] | None = None,
    public_keys: Sequence[signing.KeyReference] | None = None,
    allow_withdrawn: bool = False,
    publication_keys: Sequence[signing.KeyReference] | None = None,
    publish_timeout: float = PUBLISH_TIMEOUT,
    notice: Callable[[str], None] | None = None,
    cluster: AnyCluster = THREADS,
    progress: CellProgress | None = None,
    **terms: Unpack[FurtherTerms],
) -> Publication:
    """Publish what releases say of some statistics, once; asking again finds it. Costs no privacy.

    Parameters
    ----------
    release : Release, Series, str or path
        Opened, or as :func:`suffice.open_release` takes it. A series, from :func:`suffice.open_series`, is of
        pooled cells: those of all its windows, which walk over them.
    statistics : str or sequence of str
        One or more of its statistics; each is answered by itself.
    prior : prior or mapping of str to prior, optional
        As in ``Release.posterior``, of every statistic; or by statistic. It has to be one that text can
        state: a conjugate prior, a mixture, or a density by its name.
    priors : mapping of str to prior, optional
        Two or more by name: a sensitivity table in place of one posterior.
    disjoint, same_data : sequence of releases, optional
        Pool these with `release`, as ``suffice.pool`` does.
    compare : release, optional
        Say how statistics changed from `release` to this one, as ``suffice.compare`` does.
    pooled : bool, str, sequence of str or Pooling, optional
        Let cells borrow strength, as in ``Release.posterior`` and ``Series.posterior``: each stands beside
        itself alone. Tables of covariates and neighbours are files, which the request states by their
        SHA-256.
    kind : {"posterior", "likelihood"}
        The likelihood in the place of a posterior, as ``Release.likelihood`` returns it: tables that anyone
        puts a prior to.
    roll_up : str or sequence of str, optional
        Merge cells over these group columns, as ``suffice.roll_up`` does.
    assume : {"one parameter"}, optional
        That merged cells share their parameters; otherwise the answer is what their records add up to.
    series : sequence of releases, optional
        Of a hidden Markov model: further windows, which are time.
    model : mapping, optional
        A model and its choices, as ``{"name": "transitions", "steps": [3]}``; see
        ``suffice.pipeline.ask.publication.request``.
    vouched : bool
        The caller knows that releases are related as said, although their manifests do not show it.
    mass : float
        Of the credible intervals, between 0 and 1.
    interval : {"central", "highest-density"}, optional
        Their kind, as in ``Posterior.credible_interval``; each family's default otherwise. Those of models
        are central.
    draws : int, >= 0, optional
        Posterior draws a cell, 4000 otherwise; with 0 only summaries are published, and quantiles that need
        draws rest on 4000. Of a hidden Markov fit: those that are kept of each restart, as it chooses them.
    seed : int, optional
        Of the draws. Without one it follows from the rest of the request.
    formats : sequence of str, optional
        Of ``parquet``, ``csv``, ``json``, ``netcdf`` and ``card``. Otherwise Parquet, and a card where it
        shows one posterior and fits on a page.
    to : str or path, optional
        The store to publish in; that of the release otherwise.
    store, public_keys, allow_withdrawn
        As in :func:`suffice.open_release`.
    publication_keys : sequence of str or path, optional
        Demand that a publication which is found is signed by one of these keys.
    publish_timeout : float
        Seconds for which a store that fails in a way that may pass is tried again.
    notice : callable, optional
        Gets a sentence before every wait for a store.
    cluster : str or distributed.Client
        Where very many cells are computed, in parts, as of :func:`suffice.release`. It changes no number.
    progress : callable, optional
        Gets the number of cells that are done, and of all.
    **terms
        As in ``Release.posterior``.

    Returns
    -------
    Publication
        The one that stands in the store: of two writers the first wins.

    Raises
    ------
    UsageError, PriorError
        Where a choice does not exist or does not fit; nothing is computed then.
    ReleaseMissingError, ReleaseCorruptError, SignatureError
        As :func:`suffice.open_release`.
    StoreError
        Where the store cannot be read or written; then nothing is published.
    MissingExtraError
        Where a format needs an extra that is not installed.
    """
    destination(to)
    placed = cluster_setting(cluster, profile=pinned_profile())

    def opened(reference: Reference) -> Release:
        if isinstance(reference, Release):
            return reference
        return open_release(reference, store=store, public_keys=public_keys, allow_withdrawn=allow_withdrawn)

    question = question_of(
        release if isinstance(release, Series) else opened(release),
        statistics,
        disjoint=[opened(release) for release in disjoint],
        same_data=[opened(release) for release in same_data],
        compare=None if compare is None else opened(compare),
        series=[opened(release) for release in series],
        pooled=pooled,
        kind=kind,
        roll_up=roll_up,
        assume=assume,
        prior=prior,
        priors=priors,
        **terms,
        model=model,
        vouched=vouched,
        mass=mass,
        interval=interval,
        draws=draws,
        seed=seed,
        formats=formats,
    )
    publications = publications_of(
        question, to, publication_keys=publication_keys, publish_timeout=publish_timeout, notice=notice
    )
    return carry_out(question, publications, cluster=placed, progress=progress).publication


def carry_out(
    question: Question,
    publications: PublicationStore,
    *,
    cluster: AnyCluster = THREADS,
    progress: CellProgress | None = None,
) -> Published:
    """Answer a request, unless it was answered before, and publish the answer.

    Parameters
    ----------
    question : Question
    publications : PublicationStore
    cluster : str or Client
        Where parts of very many cells are computed.
    progress : callable, optional
        Gets the number of cells that are done, and of all.

    Raises
    ------
    UsageError, StoreError, ClusterError, MissingExtraError
        As :func:`publish`.
    """
    check_cluster(cluster)
    request = question.request
    signer = signing.publication_signer_from_environment()
    publication = publications.find(request.publication_id)
    if publication is not None:
        return _found(publication, publications, signer)
    publications.check_create_only()
    if request.cells_per_part is None:
        entries, diagnostics = _whole(question, publications, progress)
    else:
        entries, diagnostics = publish_parts(
            question, publications, cluster=cluster, progress=progress, signer=signer
        )
    manifest = compose_publication(
        request.content(),
        title=title_of(question),
        losses={release.release_id: release.loss for release in question.releases},
        files=entries,
        created=dt.datetime.now(dt.UTC),
        diagnostics=diagnostics,
        signer=signer,
    )
    published = publications.publish(request.publication_id, manifest)
    if published.data == manifest:
        status = signing.signature_status(published.manifest, checked=True)
        return Published(publication=published, is_new=True, signature=status)
    return _found(published, publications, signer)


def _found(
    publication: Publication, publications: PublicationStore, signer: signing.Signer | None
) -> Published:
    """Return what was published before; warn where this publisher signs, and that is not what it signed."""
    checked = publications.keys is not None
    if not checked and signer is not None:
        try:
            signing.check_signature(publication.manifest, [signer.public_key], signing.PUBLICATION)
            checked = True
        except SignatureError:
            message = (
                f"the publication {publication.publication_id} was found, and {signer.public_key.key_id} did "
                "not sign it: whoever may write to the store may have made it; --publication-key, or "
                "publication_keys=, demands signatures"
            )
            warnings.warn(message, SufficeWarning, stacklevel=2)
    status = signing.signature_status(publication.manifest, checked=checked)
    return Published(publication=publication, is_new=False, signature=status)


def _whole(
    question: Question, publications: PublicationStore, progress: CellProgress | None
) -> tuple[list[PublishedEntry], dict[str, dict[str, str]]]:
    """Answer a request whole, and put its files."""
    request = question.request
    entries: list[PublishedEntry] = []
    diagnostics: dict[str, dict[str, str]] = {}
    for answer in answers(question, progress):
        for file in answer_files(question, answer):
            standing = publications.put_file(request.publication_id, file.name, file.content)
            entries.append(standing.entry(role=file.role, file_format=file.format, rows=file.rows))
            if file.beside is not None:
                described = file.beside(standing.path)
                beside = publications.put_file(
                    request.publication_id, f"{file.name}-metadata.json", described
                )
                entries.append(beside.entry(role=file.role, file_format="json"))
        if answer.diagnostics:
            diagnostics[answer.name] = dict(answer.diagnostics)
    return entries, diagnostics


def publications_of(
    question: Question,
    to: str | os.PathLike[str] | None,
    *,
    publication_keys: Sequence[signing.KeyReference] | None = None,
    publish_timeout: float = PUBLISH_TIMEOUT,
    notice: Callable[[str], None] | None = None,
) -> PublicationStore:
    """Open where a question's answer is published: in a store, or in that of its first release.

    Raises
    ------
    UsageError
        Where the timeout is none, or there is no store.
    """
    if not 0.0 <= publish_timeout < math.inf:
        message = f"publish_timeout is a number of seconds of at least 0, not {publish_timeout!r}"
        raise UsageError(message)
    patience = Patience(seconds=publish_timeout)
    if notice is not None:
        patience = dataclasses.replace(patience, notice=notice)
    place = destination(to)
    if place is None:
        place = publication_store(None, store=store_of(question.releases[0]), profile=pinned_profile())
    _check_root(place)
    return PublicationStore.open(place, publication_keys=publication_keys, patience=patience)


def _check_root(place: str) -> None:
    """Refuse a folder inside of a store or a release: nobody looks for publications there.

    Asked of folders alone: who publishes into a bucket may not read above its publications.

    Raises
    ------
    UsageError
    """
    address = read_address(place)
    if address.bucket:
        return
    path = Path(address.path)
    try:
        is_inside = (
            (path / MANIFEST).exists() or holds_publications(path) or any(map(holds_store, path.parents))
        )
    except OSError:
        return  # the store says what is wrong with it
    if is_inside:
        message = f"{place}: this lies inside of a release or a store: name the store itself"
        raise UsageError(message)


def destination(to: str | os.PathLike[str] | None) -> str | None:
    """Return the store to publish in, as far as it is known before a release is opened; None: the release's.

    Raises
    ------
    PinnedError
        Where the deployment profile does not allow it.
    """
    profile = pinned_profile()
    if to is None and (profile is None or profile.publications is None):
        return None
    return publication_store(None if to is None else os.fspath(to), store="", profile=profile)


def store_of(release: Release) -> str:
    """Return the store that a release stands in.

    Raises
    ------
    UsageError
        Where it stands in none: it is a copy.
    """
    owner = locate(release.uri).store
    if owner is None:
        message = f"{release.label} stands in no store: say where to publish with --to STORE, or to="
        raise UsageError(message)
    return owner.uri
