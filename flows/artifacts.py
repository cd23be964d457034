"""What a run shows on its page: texts and tables of public values only.

Everything here stands in the manifest, the ledger or the spec; none of it follows a data value.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from suffice.pipeline.terms.declaration.exact_numbers import format_epsilon

if TYPE_CHECKING:
    from suffice.pipeline.ask.pooling.release import Release
    from suffice.storage.ledger.ledger import Ledger
    from suffice.storage.publications.publication import Publication

_SHOWN_FILES = 50
SHOWN_WINDOWS = 50
"""The last windows of an account that its table shows."""


def release_text(release: Release, *, ending: str, remaining: str) -> str:
    """Return a release's page in Markdown: what it is, its price, what remains, its files.

    Parameters
    ----------
    release : Release
    ending : str
        The name of the run's state.
    remaining : str
        Epsilon that is left, decimal text.
    """
    title = release.name if release.window == "all" else f"{release.name}@{release.window}"
    facts = {
        "release": f"[{release.uri}]({_link(release.uri)})",
        "manifest": f"[manifest.json]({_link(release.uri)}/manifest.json)",
        "dataset": release.dataset,
        "window": release.window,
        "epsilon": format_epsilon(release.epsilon),
        "remaining epsilon": remaining,
        "neighbouring relation": str(release.neighboring),
        "unit": release.unit,
        "release id": f"`{release.release_id}`",
    }
    files = [
        f"| {file['statistic']} | [{file['path']}]({_link(release.uri)}/{file['path']}) | {file['rows']} "
        f"| `{file['sha256'][:16]}` |"
        for file in release.files
    ]
    return "\n".join(
        [
            f"# {title}: {ending}",
            "",
            "| | |",
            "|---|---|",
            *(f"| {name} | {_cell(text)} |" for name, text in facts.items()),
            "",
            "| statistic | file | rows | SHA-256 begins |",
            "|---|---|---|---|",
            *files,
            "",
            f"Read it with `suffice show {release.uri}`.",
            "",
        ]
    )


def publication_text(publication: Publication, *, ending: str) -> str:
    """Return a publication's page in Markdown: what was asked, of which releases, its files."""
    stated = publication.manifest
    request = stated["request"]
    facts = {
        "publication": f"[{publication.uri}]({_link(publication.uri)})",
        "publication id": f"`{publication.publication_id}`",
        "kind": request["kind"].replace("_", " "),
        "releases": ", ".join(release["label"] for release in request["releases"]),
        "epsilon": f"{', '.join(stated['epsilon'].values())} was spent on these; the publication costs 0",
        "method": request["method"],
        "draws": f"{request['draws']} a cell, seed {request['seed']}",
    }
    priors = [
        f"| {_cell(entry['statistic'])} | {_cell('; '.join(prior['prior'] for prior in entry['priors']))} |"
        for entry in request["statistics"]
    ]
    files = [
        f"| {_cell(file['role'])} | [{_cell(file['name'])}]({_link(publication.uri)}/{file['path']}) | "
        f"{'' if file['rows'] is None else file['rows']} |"
        for file in stated["files"][:_SHOWN_FILES]
    ]
    return "\n".join(
        [
            f"# {_cell(stated['title'])}: {ending}",
            "",
            "| | |",
            "|---|---|",
            *(f"| {name} | {_cell(text)} |" for name, text in facts.items()),
            "",
            "| statistic | prior |",
            "|---|---|",
            *priors,
            "",
            "| role | file | rows |",
            "|---|---|---|",
            *files,
            "",
        ]
    )


def account_rows(ledger: Ledger, dataset: str) -> list[dict[str, str]]:
    """Return an account as rows: the account's own, and one for each of its last windows."""
    account = ledger.account(dataset)
    rows = [
        {
            "account": dataset,
            "window": f"each of {account.per_window}" if account.per_window else "all time",
            "granted": format_epsilon(account.granted),
            "spent": format_epsilon(account.spent),
            "reserved": format_epsilon(account.reserved),
            "remaining": format_epsilon(account.remaining),
        }
    ]
    windows = list(ledger.windows(dataset))[-SHOWN_WINDOWS:]
    return rows + [
        {
            "account": dataset,
            "window": balance.window,
            "granted": format_epsilon(account.granted),
            "spent": format_epsilon(balance.spent),
            "reserved": format_epsilon(balance.reserved),
            "remaining": format_epsilon(balance.remaining),
        }
        for balance in windows
    ]


def _link(uri: str) -> str:
    return uri if "://" in uri else f"file://{uri}"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
