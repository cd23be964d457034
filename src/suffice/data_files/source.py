"""Where the numbers of a file come from, as every format that is written here states it; netCDF for ArviZ."""

from __future__ import annotations

import importlib.util
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from suffice.errors import MissingExtraError
from suffice.pipeline.ask.posterior.arviz import method_text
from suffice.pipeline.ask.publication.manifest_digest import manifest_sha256
from suffice.pipeline.math.distributions.interval_kinds import CENTRAL
from suffice.pipeline.terms.declaration.documents import Also, document, printed
from suffice.pipeline.terms.declaration.exact_numbers import format_number
from suffice.pipeline.terms.released.sample import ReleasedQuantile

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from suffice.pipeline.ask.borrowing.held_out import HeldOutComparison
    from suffice.pipeline.ask.calibration.calibrate import Calibration
    from suffice.pipeline.ask.calibration.pooled_calibration import PooledCalibration
    from suffice.pipeline.ask.models.hidden_markov import StateComparison
    from suffice.pipeline.ask.models.hidden_markov_fit import HiddenMarkovFit
    from suffice.pipeline.ask.pooling.comparison import PriorComparison
    from suffice.pipeline.ask.pooling.release import Release
    from suffice.pipeline.ask.posterior.posterior import Posterior
    from suffice.pipeline.terms.declaration.documents import Sha256, ShortId
    from suffice.pipeline.terms.released.sample import ReleasedSample

_GROUPS = ("posterior", "sample_stats")


def write_netcdf(drawn: Any, path: Path, source: Provenance) -> None:
    """Write a container of ArviZ, as ``Posterior.to_arviz`` returns it.

    Raises
    ------
    MissingExtraError
        Where what ArviZ writes netCDF with is not installed.
    UsageError
        Where the file cannot be written.
    """
    from suffice.pipeline.ask.posterior.arviz import write_container

    for group in _GROUPS:
        if group in drawn:
            drawn[group].attrs.update(source.attributes())
    write_container(drawn, path)


def write_dataset(dataset: Any, path: Path, source: Provenance) -> None:
    """Write an ``xarray.Dataset`` as netCDF, its source in the attributes.

    Raises
    ------
    MissingExtraError
        Where what writes netCDF is not installed.
    """
    if importlib.util.find_spec("h5netcdf") is None:
        name, extra = "netCDF", "arviz"
        raise MissingExtraError(name, extra)
    dataset.assign_attrs(source.attributes()).to_netcdf(path, engine="h5netcdf")


ESTIMATES = "unbiased estimates, and the standard deviation of their noise"
SUMMARIES = "posterior summaries"
DRAWS = "posterior draws"
LIKELIHOOD = "log likelihood, as tables"
SAMPLE = "draws of a released posterior sample"


@printed("label release_id manifest_sha256 withdrawn?")
@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseSource:
    """A release that numbers rest on.

    Attributes
    ----------
    label, release_id, manifest_sha256 : str
        Name and edition; 16 hex digits; of the manifest's bytes.
    withdrawn : str or None
        When, by whom and why it was withdrawn; None where it stands.
    """

    label: str
    release_id: ShortId
    manifest_sha256: Sha256
    withdrawn: str | None = None

    @classmethod
    def of(cls, release: Release) -> ReleaseSource:
        """Return what is stated of a release."""
        return cls(
            label=release.label,
            release_id=release.release_id,
            manifest_sha256=manifest_sha256(release),
            withdrawn=None if release.withdrawn is None else str(release.withdrawn),
        )


@printed(
    "written_by releases what statistic method? prior? n_prior? predictor_prior? where? rolled_up_over? "
    "pooled_as? model? mass? interval? draws? seed? publication_id? notes?=stated_notes"
)
@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """What the numbers of one file are, and what they were worked out from.

    Attributes
    ----------
    what : str
        ``ESTIMATES``, ``SUMMARIES``, ``DRAWS``, ``SAMPLE``, or another short text.
    releases : tuple of ReleaseSource
    statistic : str
        Its name; several are separated by commas.
    method : str or None
        ``noise-aware``, or ``plug-in: not calibrated``; None of estimates.
    prior, n_prior, predictor_prior : str or None
        As text; None where there is none.
    where : str or None
        The cells that were asked for, as ``origin=JFK, month=1``; None of all.
    rolled_up_over : str or None
        Group columns over which cells were merged.
    pooled_as : str or None
        How several releases were put together: ``disjoint`` or ``same_data``.
    model : str or None
        What is asked of a model, as ``query; target well; do treated=yes``.
    mass : float or None
        Of the intervals.
    interval : str or None
        Their kind: ``central`` or ``highest-density``.
    draws, seed : int or None
        Of posterior draws; no seed where they cannot be drawn again.
    publication_id : str or None
        Of what is published.
    notes : tuple of str
        What there is to say beside the numbers, a sentence each.
    """

    what: str
    releases: Annotated[tuple[ReleaseSource, ...], Also(minItems=1)]
    statistic: str
    method: str | None = None
    prior: str | None = None
    n_prior: str | None = None
    predictor_prior: str | None = None
    where: str | None = None
    rolled_up_over: str | None = None
    pooled_as: str | None = None
    model: str | None = None
    mass: float | None = None
    interval: str | None = None
    draws: int | None = None
    seed: int | None = None
    publication_id: str | None = None
    notes: tuple[str, ...] = ()

    @property
    def written_by(self) -> str:
        """The package and its version."""
        from importlib.metadata import version  # only files say it

        return f"suffice {version('suffice')}"

    @property
    def stated_notes(self) -> tuple[str, ...] | None:
        """The notes; None where there are none."""
        return self.notes or None

    def document(self) -> dict[str, Any]:
        """Return it as JSON has it; what is not stated is left out."""
        written: dict[str, Any] = document(self)
        return written

    def text(self) -> str:
        """Return the document as one line of JSON, as formats hold it whose metadata are text."""
        return json.dumps(self.document(), ensure_ascii=False, sort_keys=True)

    def attributes(self) -> dict[str, str]:
        """Return name and text of everything, as netCDF holds it; ``source`` is the whole document."""
        flat = {
            name: str(value)
            for name, value in self.document().items()
            if name not in {"releases", "notes", "written_by"}
        }
        return {
            **flat,
            "release": ", ".join(release.label for release in self.releases),
            "release_id": ", ".join(release.release_id for release in self.releases),
            "manifest_sha256": ", ".join(release.manifest_sha256 for release in self.releases),
            **self._withdrawn(),
            "notes": "; ".join(self.notes),
            "source": self.text(),
        }

    def _withdrawn(self) -> dict[str, str]:
        withdrawals = [
            f"{release.label}: {release.withdrawn}" for release in self.releases if release.withdrawn
        ]
        return {"withdrawn": "; ".join(withdrawals)} if withdrawals else {}


def posterior_source(
    what: str,
    releases: Iterable[Release],
    posterior: Posterior,
    *,
    mass: float | None = None,
    interval: str | None = None,
    draws: int | None = None,
    seed: int | None = None,
) -> Provenance:
    """Return the source of numbers that follow from one posterior; intervals are central if not said."""
    from suffice.pipeline.ask.publication.answer import notes_of  # numpy is slow to import

    return Provenance(
        what=what,
        releases=tuple(map(ReleaseSource.of, releases)),
        statistic=posterior.statistic,
        method=method_text(posterior.method),
        prior=str(posterior.prior),
        n_prior=None if posterior.n_prior is None else str(posterior.n_prior),
        predictor_prior=posterior.predictor_prior,
        mass=mass,
        interval=None if mass is None else interval or CENTRAL,
        draws=draws,
        seed=seed,
        notes=notes_of(posterior),
    )


def fit_source(
    what: str,
    releases: Iterable[Release],
    fit: HiddenMarkovFit | StateComparison,
    *,
    seed: int | None,
) -> Provenance:
    """Return the source of numbers of a hidden Markov model, or of a comparison of numbers of states."""
    from suffice.pipeline.ask.models.hidden_markov_fit import HiddenMarkovFit  # numpy is slow to import

    if isinstance(fit, HiddenMarkovFit):
        settings, lines = fit.settings, fit.diagnostics.lines
    else:
        settings, lines = fit.settings[0], []
    priors = settings.priors
    return Provenance(
        what=what,
        releases=tuple(map(ReleaseSource.of, releases)),
        statistic=", ".join(feature.name for feature in fit.table.features),
        method=method_text(settings.method),
        prior=f"transitions Dirichlet({priors.transitions:g}), emissions Dirichlet({priors.emissions:g})",
        draws=settings.n_draws,
        seed=seed,
        notes=(*lines, *settings.lines),
    )


def comparison_source(release: Release, comparison: PriorComparison) -> Provenance:
    """Return the source of a comparison of priors."""
    return Provenance(
        what="log evidence of priors",
        releases=(ReleaseSource.of(release),),
        statistic=comparison.statistic,
        method="noise-aware",
        prior="; ".join(comparison.priors),
        n_prior=comparison.n_prior,
    )


def held_out_source(release: Release, comparison: HeldOutComparison) -> Provenance:
    """Return the source of a comparison of cells alone and pooled."""
    return Provenance(
        what="log scores of held-out cells",
        releases=(ReleaseSource.of(release),),
        statistic=comparison.statistic,
        method="noise-aware",
        prior="; ".join(comparison.answers),
        n_prior=comparison.n_prior,
    )


def calibration_source(
    release: Release, statistic: str, calibration: Calibration | PooledCalibration, *, seed: int | None
) -> Provenance:
    """Return the source of a calibration, which simulates one release's statistic."""
    return Provenance(
        what="calibration by simulated releases",
        releases=(ReleaseSource.of(release),),
        statistic=statistic,
        method=method_text(calibration.method),
        prior=str(calibration.prior),
        n_prior=str(calibration.n_prior),
        seed=seed,
    )


def sample_source(release: Release, sample: ReleasedSample) -> Provenance:
    """Return the source of a released sample's draws."""
    if isinstance(sample, ReleasedQuantile):
        return Provenance(
            what=SAMPLE,
            releases=(ReleaseSource.of(release),),
            statistic=sample.plan.name,
            draws=sample.quantile.draws,
            notes=(f"drawn once: each {sample.quantile.law}",),
        )
    drawn = sample.sample
    lower, upper = map(format_number, drawn.within)
    note = (
        f"drawn once, from {drawn.grid} points of {lower}..{upper}, at temperature "
        f"{float(drawn.temperature):.6g}: "
    ) + (
        "their spread tells of privacy as well as of the parameter"
        if drawn.is_tempered
        else "from the data's own posterior under this prior"
    )
    return Provenance(
        what=SAMPLE,
        releases=(ReleaseSource.of(release),),
        statistic=sample.plan.name,
        prior=drawn.prior,
        draws=drawn.draws,
        notes=(note,),
    )


def table_source(release: Release, statistic: str) -> Provenance:
    """Return the source of a statistic's table."""
    return Provenance(what=ESTIMATES, releases=(ReleaseSource.of(release),), statistic=statistic)
