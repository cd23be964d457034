"""The flow ``publish_posterior``: what releases say of some statistics, published for whoever asked.

It reads releases and public tables, and nothing else: neither data nor a ledger. Prefect stores what was
asked and the publication's address, which are public; releases, stores, tables and keys are what the operator
pins.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from suffice.errors import SufficeError
from suffice.flows import endings
from suffice.flows.endings import Subject, publication_text
from suffice.flows.publication_parameters import PublicationParameters  # noqa: TC001 - Prefect reads the annotation
from suffice.flows.running import RunResult, flow, run_work
from suffice.profile.settings import pinned_profile, public_keys, released_reference, setting
from suffice.publishing.asking import question_of, title_of
from suffice.publishing.public_files import table_file
from suffice.publishing.publish import carry_out, destination, publications_of
from suffice.storage.releases.release_series import is_series, open_series
from suffice.storage.releases.release_store import open_release

if TYPE_CHECKING:
    from suffice.flows.endings import Reporter
    from suffice.flows.running import Run
    from suffice.pipeline.ask.pooling.release import Release
    from suffice.pipeline.ask.pooling.series import Series
    from suffice.publishing.publish import Published

_UNREAD = Subject(kind="publication")


@flow(name="publish-posterior")
def publish_posterior(publication: PublicationParameters) -> str:
    """Publish posteriors from releases. It reads no data and no ledger, and charges nothing.

    Asked for again, it finds what was published, and computes nothing.

    Parameters
    ----------
    publication : PublicationParameters
        What is asked of which releases; the same as ``suffice publish`` takes.

    Returns
    -------
    str
        The publication's URI.
    """
    state: str = run_work(
        lambda run: _published(run, publication), unread=_UNREAD, failed=endings.POSTERIOR_NOT_PUBLISHED
    )
    return state


def _published(run: Run, asked: PublicationParameters) -> RunResult:
    """Publish what is asked for; copies of tables that stand at a URI last as long as that takes."""
    with tempfile.TemporaryDirectory() as folder:
        return _carried_out(run, asked, Path(folder))


def _carried_out(run: Run, asked: PublicationParameters, folder: Path) -> RunResult:
    try:
        asked.require_no_password()
        profile = pinned_profile()
        store = setting("store", asked.store, profile=profile).value
        cluster = setting("cluster", asked.cluster, profile=profile).value
        keys = public_keys(None, profile=profile)
        destination(asked.to)  # before any release is opened

        def opened(option: str, *references: str) -> list[Release]:
            return [
                open_release(
                    released_reference(reference, profile=profile, option=option),
                    store=store,
                    public_keys=keys,
                    allow_withdrawn=asked.allow_withdrawn,
                )
                for reference in references
            ]

        tables = {
            name: table_file(name, place, folder, profile=profile) for name, place in asked.tables.items()
        }
        if is_series(asked.release, asked.over):
            asked_of: Release | Series = open_series(asked.release, store=store, public_keys=keys)
        else:
            (asked_of,) = opened("release", asked.release)
        question = question_of(
            asked_of,
            asked.statistics,
            disjoint=opened("disjoint", *asked.disjoint),
            same_data=opened("same_data", *asked.same_data),
            compare=opened("compare", asked.compare)[0] if asked.compare is not None else None,
            roll_up=asked.roll_up,
            assume=asked.assume,
            **asked.terms(tables),
        )
        publications = publications_of(
            question, asked.to, publish_timeout=asked.publish_timeout, notice=run.reporter.notice
        )
        first, title = question.releases[0], title_of(question)
        run.reporter.name_run(title, [first.dataset, first.name])
        published = carry_out(question, publications, cluster=cluster or "")
    except SufficeError as error:
        message = endings.error_text(error)
        return RunResult(ending=endings.POSTERIOR_NOT_PUBLISHED, message=message, subject=_UNREAD)
    names = {
        "dataset": first.dataset,
        "name": first.name,
        "publication_id": published.publication.publication_id,
    }
    return _verdict(published, Subject(kind="publication", names=names, title=title))


def _verdict(published: Published, subject: Subject) -> RunResult:
    ending = endings.POSTERIOR_PUBLISHED if published.is_new else endings.POSTERIOR_FOUND
    publication = published.publication

    def show(reporter: Reporter) -> None:
        text = publication_text(publication, ending=ending.name)
        reporter.show_text(f"publication-{subject.names['name']}", text, description=subject.title)

    done = "no data were read" if published.is_new else "it was published before, and nothing was computed"
    return RunResult(
        ending=ending,
        message=f"{publication.uri}; {done}, nothing was charged",
        subject=subject,
        facts={"uri": publication.uri},
        show=show,
        result=publication.uri,
    )
