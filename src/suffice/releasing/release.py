"""One release, from spec to manifest: the plain function that orders ledger, engine, mechanism and store.

The order is the guarantee. Everything that can be refused is refused before the charge is reserved; the
charge is durably in ``drawing`` before noise is drawn; from then on, unknown means spent. What
became of a charge after a failure, :mod:`suffice.releasing.run` decides.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from suffice.errors import DataChangedError, SufficeWarning, UsageError
from suffice.pipeline.spec.plan import compile_plan
from suffice.pipeline.spec.spec import AnySpec, Spec, load_spec, require_source
from suffice.pipeline.spec.windows_and_amendments import ALL, check_amendment, moment, resolve_window
from suffice.pipeline.terms.declaration.privacy_loss import PrivacyLoss
from suffice.profile.settings import settings
from suffice.releasing.expectation import Expected
from suffice.releasing.granting import naming_the_grant
from suffice.releasing.guarding import contained, uncharged, wait_for
from suffice.releasing.run import PUBLISHED, ReleaseRun
from suffice.storage.ledger.account import chosen_witness
from suffice.storage.ledger.opening import open_ledger
from suffice.storage.objects.address import read_address
from suffice.storage.operations.witness import check_witness, follow_witness, open_for_release
from suffice.storage.releases.manifest import require_manifest
from suffice.storage.releases.release_store import open_release
from suffice.storage.releases.spool import spool_path
from suffice.storage.signatures.signing import signer_from_environment

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from suffice.pipeline.ask.pooling.release import Release
    from suffice.pipeline.cluster.addresses import AnyCluster
    from suffice.pipeline.rows.sources.given_rows import GivenRows
    from suffice.releasing.run import ReleaseStatus
    from suffice.storage.ledger.charge import Charge

    Progress = Callable[[int, int], None]
    Notice = Callable[[str], None]

PUBLISH_TIMEOUT = 3600.0
"""Seconds for which the publication of a staged charge is tried again, unless the caller says otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a run did.

    Attributes
    ----------
    release : Release
        The published release; :attr:`Release.withdrawn` says whether it was withdrawn since.
    status : str
        ``published``, or ``already_published`` where the same key had been published before: then no
        data were read and nothing was charged.
    charged : PrivacyLoss
        What the account paid for it, in the account's measure.
    remaining : PrivacyLoss
        What the account has left.
    """

    release: Release
    status: ReleaseStatus
    charged: PrivacyLoss
    remaining: PrivacyLoss


_RELEASED: dict[str, str] = {}
"""Digests of the rows that this session released, by charge: exact data, which stay in its memory."""


def run_release(
    spec: AnySpec,
    store: str | os.PathLike[str] | None = None,
    ledger: str | None = None,
    cluster: AnyCluster | None = None,
    window: str = ALL,
    *,
    data: Any = None,
    amendment: int = 0,
    as_of: str | datetime | None = None,
    allow_open: bool = False,
    new_attempt: bool = False,
    publish_timeout: float = PUBLISH_TIMEOUT,
    wait: bool = False,
    witness: str | None = None,
    progress: Progress | None = None,
    notice: Notice | None = None,
) -> Release:
    """Charge the ledger, compute exact statistics, add noise once, publish; return the release.

    Running it again with the same spec returns the published release, reads no data and charges nothing.

    Parameters
    ----------
    spec : Spec, path, str or mapping
        From :func:`suffice.spec`, or what :func:`suffice.load_spec` takes.
    store : str, optional
        URI of the release store; otherwise ``SUFFICE_STORE``, what the deployment profile pins, or
        ``releases``.
    ledger : str, optional
        URL of the privacy ledger; otherwise ``SUFFICE_LEDGER``, what the profile pins, or
        ``sqlite:///ledger.db``.
    cluster : str or distributed.Client, optional
        ``threads``, ``local``, the address of a Dask scheduler inside the trust boundary, a function that
        returns a client of one, as ``MODULE:FUNCTION``, or such a client, which stays open; otherwise
        ``SUFFICE_CLUSTER``, what the profile pins, or ``threads``.
    window : str
        The label of the period released, or ``latest-complete``, for a spec with windows; else ``all``.
    data : data frame or Arrow table, optional
        The rows, where the spec names no source: of pandas or Polars, a pyarrow Table or RecordBatchReader,
        anything with ``__arrow_c_stream__``, or a mapping of column names to arrays. They are summed in
        this process, and stay in its memory.
    amendment : int
        Release the window again, as this amendment of the spec's calendar, for another charge; 0 for its
        first release.
    as_of : str or datetime, optional
        The run's scheduled time, with its offset from UTC; now, where it is left out. It decides which window
        is ``latest-complete``, and which has ended.
    allow_open : bool
        Release a window that has not ended by then, for good, without the rows that are still to come.
    new_attempt : bool
        Charge again after an attempt that was spent without a release.
    publish_timeout : float
        Seconds for which a store that fails after the draw is tried again. Later, any run of the same spec
        on this host publishes what was drawn.
    wait : bool
        Wait while another run holds the charge, instead of raising `ChargeInProgressError`.
    witness : str, optional
        URI of the ledger's witness; ``SUFFICE_WITNESS`` otherwise; where that is not set, none is asked.
    progress : callable, optional
        Called with the number of finished tasks and of all tasks.
    notice : callable, optional
        Called with a sentence about every wait.

    Returns
    -------
    Release

    Raises
    ------
    SpecError, SpecChangedError, NameTakenError, AmendmentError
        Nothing was charged.
    DataChangedError
        This session released the same name from other rows; nothing was charged.
    PinnedError, ProfileError
        A parameter lies outside of the deployment profile, or the profile cannot be used; nothing was
        opened.
    AccountError
        The account refuses; nothing was read, nothing was charged.
    SchemaError
        Columns are missing or of the wrong type family; nothing was charged.
    StorageError
        The store or the ledger; where it came after the reservation, the text states the charge's state.
    SpoolError
        The spool; the text states the charge's state where it came after the reservation.
    StageFailedError
        A stage failed after the reservation.
    ExpectationNotMetError
        The spec expects more rows or units than were counted, noise included; the count alone is charged.
    """
    if not isinstance(spec, Spec | str | os.PathLike | Mapping):
        message = (
            f"a {type(spec).__name__} is no spec: it comes first, and rows are handed over by name, as "
            "suffice.release(suffice.spec(...), data=frame)"
        )
        raise UsageError(message)
    if store is not None and not isinstance(store, str | os.PathLike):
        message = f"a {type(store).__name__} is no store: hand rows over as suffice.release(spec, data=frame)"
        raise UsageError(message)
    loaded = load_spec(spec)
    rows = given_rows(loaded, data)
    del data  # no frame of an error that is raised from here holds it
    outcome = carry_out(
        loaded,
        given=rows,
        store=None if store is None else os.fspath(store),
        ledger=ledger,
        cluster=cluster,
        window=window,
        amendment=amendment,
        as_of=as_of,
        allow_open=allow_open,
        new_attempt=new_attempt,
        publish_timeout=publish_timeout,
        wait=wait,
        witness=witness,
        progress=progress,
        notice=notice,
    )
    return outcome.release


def given_rows(spec: Spec, data: Any) -> GivenRows | None:
    """Take the rows that were given, without reading them; None where the spec has a source.

    Raises
    ------
    UsageError
        Where rows are given beside a source, or neither is there, or they are in a form that is not taken.
    """
    require_source(spec, is_given=data is not None)
    if data is None:
        return None
    from suffice.pipeline.rows.sources.contract import spec_columns
    from suffice.pipeline.rows.sources.given_rows import of

    expected = Expected.of(spec)
    more = () if expected is None else spec_columns(expected.spec)
    return of(data, tuple(dict.fromkeys((*spec_columns(spec), *more))))


def data_digest(spec: AnySpec, data: Any) -> str:
    """Return the SHA-256 of what a spec reads of rows in memory, for an owner's list of checksums.

    It is the same in whatever library, chunks and widths the rows come. Show it to nobody but the owner: who
    has it can try guesses of the rows against it.

    Parameters
    ----------
    spec : Spec, path, str or mapping
        One without a source.
    data : data frame or Arrow table
        As of :func:`suffice.release`.

    Returns
    -------
    str
        64 hex digits. A list names them ``data:``.

    Raises
    ------
    SchemaError, UsageError
        Where a column cannot be read.
    """
    loaded = load_spec(spec)
    given = given_rows(loaded, data)
    assert given is not None  # noqa: S101 - rows were given

    def digest() -> str:
        given.table({})
        return given.digest()

    return contained(digest)


def carry_out(
    spec: Spec,
    *,
    given: GivenRows | None = None,
    store: str | None = None,
    ledger: str | None = None,
    cluster: AnyCluster | None = None,
    window: str = ALL,
    amendment: int = 0,
    as_of: str | datetime | None = None,
    allow_open: bool = False,
    new_attempt: bool = False,
    publish_timeout: float = PUBLISH_TIMEOUT,
    wait: bool = False,
    witness: str | None = None,
    progress: Progress | None = None,
    notice: Notice | None = None,
) -> Outcome:
    """Do what :func:`run_release` does, and say also whether it was done before and what remains."""
    require_source(spec, is_given=given is not None)
    if not 0 <= publish_timeout < float("inf"):
        message = "the publish timeout is a number of seconds of at least 0"
        raise UsageError(message)
    chosen = settings(store=store, ledger=ledger, cluster=cluster, witness=witness, spec_path=spec.directory)
    if given is not None and chosen.cluster != "threads":
        message = (
            "rows in memory are summed by threads of this process, and another cluster is chosen: "
            'say cluster="threads"'
        )
        raise UsageError(message)
    instant = moment(as_of, datetime.now(UTC))
    window = resolve_window(spec, window, as_of=instant, allow_open=allow_open)
    check_amendment(spec, window, amendment, as_of=instant)
    plan = compile_plan(spec)
    require_manifest(plan)
    expected = Expected.of(spec) if amendment == 0 else None
    signer = signer_from_environment()
    with naming_the_grant(spec), open_ledger(chosen.ledger) as opened:
        pinned_witness = chosen_witness(
            spec.dataset,
            opened.witness(spec.dataset),
            None if chosen.witness is None else read_address(chosen.witness).uri,
        )
        if pinned_witness is not None:
            check_witness(opened, pinned_witness)
        with uncharged():
            opened_store = open_for_release(opened, chosen.store, spec.dataset)
        run = ReleaseRun(
            spec=spec,
            plan=plan,
            window=window,
            amendment=amendment,
            ledger=opened,
            store=opened_store,
            spool_path=spool_path(chosen.ledger, chosen.spool),
            new_attempt=new_attempt,
            publish_timeout=publish_timeout,
            notice=notice or (lambda _: None),
            signer=signer,
            witness=pinned_witness,
            contract=opened.contract(spec.dataset),
            audit=opened.audit(spec.dataset),
            given=given,
        )
        if expected is not None:
            run.before_charging = lambda: expected.require(run, chosen.cluster)
        charge, status = wait_for(
            lambda: run.carry_out(chosen.cluster, progress), wait=wait, notice=run.notice
        )
        if given is not None:
            contained(lambda: _compare(run, charge, given))
        if pinned_witness is not None and status == PUBLISHED:
            follow_witness(opened, pinned_witness)
        remaining = PrivacyLoss(charge.loss.measure, opened.remaining(spec.dataset, window))
        run.put_missing_words(charge)
        uri = run.store.release_uri(charge.name, charge.edition, charge.release_id)
        release = open_release(uri, allow_withdrawn=True)
        if release.withdrawn is not None:
            text = f"{release.label} is published, and stays charged: it was {release.withdrawn}"
            warnings.warn(text, SufficeWarning, stacklevel=2)
        if spec.about and release.about and release.about != spec.about:
            text = (
                f"{release.label} stands with other words than the spec's: `suffice describe {release.label} "
                "SPEC` mends them"
            )
            warnings.warn(text, SufficeWarning, stacklevel=2)
        return Outcome(release=release, status=status, charged=charge.loss, remaining=remaining)


def _compare(run: ReleaseRun, charge: Charge, given: GivenRows) -> None:
    """Note what this session released; refuse other rows under the same name, and say where none can tell.

    Nothing of the rows is kept with the charge: whoever reads a ledger could try guesses against it. So rows
    are compared with those of the same session alone.

    Raises
    ------
    DataChangedError
        Where it released the charge from other rows.
    """
    if run.has_released:
        _RELEASED[charge.charge_id] = given.digest()
        return
    earlier = _RELEASED.get(charge.charge_id)
    if earlier is None:
        text = (
            f"{charge.label} was published before: what it was released from is not known here, so that the "
            "rows given now were not compared, and nothing was charged; another name releases them"
        )
        warnings.warn(text, SufficeWarning, stacklevel=6)  # of who called `run_release`
        return
    given.table({} if run.contract is None else run.contract.columns)
    if given.digest() != earlier:
        message = (
            f"{charge.label} was released in this session, from other rows than are given now; nothing was "
            "charged: give the same rows, or choose another name, which is charged"
        )
        raise DataChangedError(message)
