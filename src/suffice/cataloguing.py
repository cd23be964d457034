"""Make a catalogue of a store: a static site from public files alone.

Pages of releases are kept from one run to the next, as long as the release, what leads to other pages, and
the design are what they were: a run costs as much as what is new. ``catalogue.json`` in the site says what
was made of what; nothing else in the folder is ever touched.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from collections import defaultdict
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from suffice.errors import SufficeError, UsageError
from suffice.pages.budget import Budget, Charged, guarantee
from suffice.pages.feeds import atom_feed, json_feed
from suffice.pages.release_facts import release_facts
from suffice.pages.release_page import Banner, Link, Site, release_page
from suffice.pages.rendering import design_fingerprint
from suffice.pages.site_pages import (
    Entry,
    dataset_page,
    dataset_path,
    reading_page,
    search_page,
    series_page,
    series_path,
    start_page,
)
from suffice.pages.statistic_view import statistic_view
from suffice.storage.releases.location import MANIFEST
from suffice.storage.releases.release_store import open_release, open_store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from suffice.storage.releases.release_store import ListedRelease, ReleaseStore
    from suffice.storage.signatures.keys import KeyReference

STATE = "catalogue.json"
_STATE_VERSION = 1
_FACTS = "facts.json"
_LARGEST_FILE = 2**31


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalogue:
    """A catalogue that was made.

    Attributes
    ----------
    index : str
        The path of its first page.
    releases, publications : int
        How many it shows.
    rendered, kept, removed : int
        Pages of releases and publications that were made anew, left as they were, and removed.
    problems : tuple of str
        Why something in the store is not shown.
    """

    index: str
    releases: int
    publications: int
    rendered: int
    kept: int
    removed: int
    problems: tuple[str, ...]


def catalogue(
    store: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    ledger_export: str | os.PathLike[str] | None = None,
    title: str | None = None,
    base_url: str | None = None,
    public_keys: Sequence[KeyReference] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Catalogue:
    """Make, or bring up to date, a static site on all releases of a store.

    Parameters
    ----------
    store : str or path
        Path or URI of the store; it is only read.
    out : str or path
        A folder of this machine: a new one, an empty one, or an earlier catalogue's.
    ledger_export : str or path, optional
        What ``suffice ledger export`` wrote: then the pages of datasets show every charge.
    title : str, optional
        Of the site.
    base_url : str, optional
        Where the site will stand, for feeds and citations.
    public_keys : sequence of str or path, optional
        Show only releases that one of these keys signed; see :func:`suffice.open_release`.
    progress : callable, optional
        Gets the number of releases that are done, and of all.

    Raises
    ------
    UsageError
        Where `out` is no folder that may be written, or an option cannot be used.
    LedgerCorruptError
        Where the export does not verify.
    StoreError
        Where the store cannot be read.
    """
    import suffice  # noqa: PLC0415 - the version alone

    site = Site(
        title=_checked_title(title), version=suffice.__version__, base_url=_checked_base_url(base_url)
    )
    folder = _Folder.open(out)
    opened = open_store(os.fspath(store))
    charges = None if ledger_export is None else _charges(Path(ledger_export))
    work = _Work(site=site, folder=folder, store=opened, public_keys=public_keys)
    entries = work.releases(progress)
    publications = work.publications(entries)
    budgets = _budgets(entries, charges)
    pages = {
        "index.html": start_page(site, entries, budgets, publications, work.problems),
        "search.html": search_page(site, entries, publications),
        "reading.html": reading_page(site, entries[-1] if entries else None),
        "feed.xml": atom_feed(site, entries),
        "feed.json": json_feed(site, entries),
    }
    for name in budgets:
        of = [entry for entry in entries if entry.facts["dataset"] == name]
        pages[dataset_path(name)] = dataset_page(site, name, of, budgets[name])
    for name in dict.fromkeys(entry.facts["name"] for entry in entries):
        of = [entry for entry in entries if entry.facts["name"] == name]
        pages[series_path(name)] = series_page(site, name, of)
    for path, text in pages.items():
        folder.write(path, text.encode())
    removed = folder.finish()
    return Catalogue(
        index=str(folder.path / "index.html"),
        releases=len(entries),
        publications=len(publications),
        rendered=work.rendered,
        kept=work.kept,
        removed=removed,
        problems=tuple(work.problems),
    )


@dataclass(slots=True, kw_only=True)
class _Folder:
    """The site's folder: what an earlier run wrote there, and what this one writes or keeps."""

    path: Path
    earlier: dict[str, str]
    keys: dict[str, str]
    files: dict[str, str] = field(default_factory=dict)
    new_keys: dict[str, str] = field(default_factory=dict)

    @classmethod
    def open(cls, out: str | os.PathLike[str]) -> _Folder:
        from suffice.storage.releases.store_identity import KEY  # noqa: PLC0415 - one caller

        text = os.fspath(out)
        if "://" in text:
            message = f"--out {text}: a catalogue is written to a folder of this machine: copy it from there"
            raise UsageError(message)
        try:
            path = Path(os.path.realpath(text))
            if any((place / KEY).exists() for place in (path, *path.parents)):
                message = f"--out {text}: this lies inside a release store: name another place"
                raise UsageError(message)
            path.mkdir(parents=True, exist_ok=True)
            state = path / STATE
            if not state.exists():
                if any(path.iterdir()):
                    message = f"--out {text}: the folder is neither empty nor a catalogue: name another"
                    raise UsageError(message)
                return cls(path=path, earlier={}, keys={})
            content = json.loads(state.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            if isinstance(error, UsageError):
                raise
            message = f"--out {text}: no catalogue can be written there"
            raise UsageError(message) from None
        if not _is_state(content):
            message = f"--out {text}: {STATE} there is no catalogue's: name another folder"
            raise UsageError(message)
        return cls(path=path, earlier=content["files"], keys=content["keys"])

    def is_kept(self, of: str, key: str, paths: Iterable[str]) -> bool:
        """Keep the files of a page where they were made of the same, and tell so."""
        below = [path for path in self.earlier if path.startswith(f"{of}/")]
        if self.keys.get(of) != key or not below or not set(paths) <= set(below):
            return False
        try:
            if not all((self.path / path).is_file() for path in below):
                return False
        except OSError:
            return False
        self.files.update({path: self.earlier[path] for path in below})
        self.new_keys[of] = key
        return True

    def made(self, of: str, key: str) -> None:
        """Note what the files below a folder were made of."""
        self.new_keys[of] = key

    def read(self, path: str) -> bytes:
        return (self.path / path).read_bytes()

    def write(self, path: str, data: bytes) -> None:
        """Write a file whole, unless it stands there as it is."""
        target = self.path / path
        digest = hashlib.sha256(data).hexdigest()
        try:
            if not (self.earlier.get(path) == digest and target.is_file()):
                target.parent.mkdir(parents=True, exist_ok=True)
                hidden = target.with_name(f".{secrets.token_hex(8)}")
                hidden.write_bytes(data)
                hidden.replace(target)
        except OSError:
            message = f"--out {self.path}: {path} cannot be written"
            raise UsageError(message) from None
        self.files[path] = digest

    def finish(self) -> int:
        """Remove what an earlier run wrote and this one did not, note what there is; count pages removed."""
        gone = [path for path in self.earlier if path not in self.files]
        try:
            for path in gone:
                (self.path / path).unlink(missing_ok=True)
                for parent in PurePosixPath(path).parents:
                    place = self.path / parent
                    if place == self.path or not place.is_dir() or any(place.iterdir()):
                        break
                    place.rmdir()
        except OSError:
            message = f"--out {self.path}: pages of an earlier run cannot be removed"
            raise UsageError(message) from None
        state = {"suffice_catalogue": _STATE_VERSION, "files": self.files, "keys": self.new_keys}
        self.write(STATE, (json.dumps(state, sort_keys=True, indent=0) + "\n").encode())
        return sum(of not in self.new_keys for of in self.keys)


def _is_state(content: Any) -> bool:
    """Tell whether a document is a catalogue's state, all of whose paths stay below the folder."""

    def is_path(path: Any) -> bool:
        parts = PurePosixPath(path).parts
        return bool(parts) and parts[0] != "/" and ".." not in parts and "\0" not in path

    return (
        isinstance(content, dict)
        and content.get("suffice_catalogue") == _STATE_VERSION
        and all(
            isinstance(content.get(name), dict)
            and all(isinstance(value, str) and is_path(key) for key, value in content[name].items())
            for name in ("files", "keys")
        )
    )


@dataclass(slots=True, kw_only=True)
class _Work:
    """One run over a store."""

    site: Site
    folder: _Folder
    store: ReleaseStore
    public_keys: Sequence[KeyReference] | None
    problems: list[str] = field(default_factory=list)
    rendered: int = 0
    kept: int = 0

    def releases(self, progress: Callable[[int, int], None] | None) -> list[Entry]:
        """Make or keep the page of every release; return them by name and window."""
        listed = list(self.store.releases())
        newest: dict[tuple[str, str], ListedRelease] = {}
        for one in listed:
            newest[one.name, one.window] = one  # sorted by amendment
        of_series: defaultdict[str, list[ListedRelease]] = defaultdict(list)
        for one in listed:
            if newest[one.name, one.window] is one:
                of_series[one.name].append(one)
        entries = []
        for done, one in enumerate(listed, start=1):
            try:
                entries.append(self._release(one, newest[one.name, one.window], of_series[one.name]))
            except SufficeError as error:
                self.problems.append(f"{one.name}@{one.edition}, {one.release_id}: {error}")
            if progress is not None:
                progress(done, len(listed))
        return entries

    def _release(self, one: ListedRelease, newest: ListedRelease, series: Sequence[ListedRelease]) -> Entry:
        place = f"releases/{one.name}/{one.edition}/{one.release_id}"
        manifest = self.store.read_manifest(one.name, one.edition, one.release_id) or b""
        amended = newest if newest is not one else None
        around = _neighbours(one, series)
        key = _key(
            hashlib.sha256(manifest).hexdigest(),
            design_fingerprint(),
            self.site,
            amended,
            around,
            sorted(map(str, self.public_keys or [])),
            os.environ.get("SUFFICE_PUBLIC_KEYS"),
        )
        if self.folder.is_kept(place, key, [f"{place}/index.html", f"{place}/{_FACTS}"]):
            facts = json.loads(self.folder.read(f"{place}/{_FACTS}"))
            self.kept += 1
        else:
            facts = self._make_release(one, place, manifest, amended, around)
            self.folder.made(place, key)
            self.rendered += 1
        return Entry(
            facts=facts,
            path=f"{place}/index.html",
            mark="amended" if amended else "",
            words=" ".join(facts["words"]),
        )

    def _make_release(
        self,
        one: ListedRelease,
        place: str,
        manifest: bytes,
        amended: ListedRelease | None,
        around: Sequence[tuple[str, ListedRelease]],
    ) -> dict[str, Any]:
        release = open_release(one.uri, public_keys=self.public_keys)
        files = {MANIFEST: manifest}
        for file in release.manifest["files"]:
            key = f"{one.name}/{one.edition}/{one.release_id}/{file['path']}"
            files[file["path"]] = self.store.objects.get(key, at_most=_LARGEST_FILE) or b""
        seed = int(hashlib.sha256(manifest).hexdigest()[:12], 16)
        views = [statistic_view(release, name, seed=seed) for name in release.statistics]
        facts = release_facts(release, manifest, views)
        banners = []
        if amended is not None:
            banners.append(
                Banner(
                    kind="amended",
                    head="Amended.",
                    text="The window was released again, with later rows; this one is kept as it was.",
                    path=_path_of(amended),
                    link=f"See {amended.name}@{amended.edition}",
                )
            )
        page = release_page(
            release,
            facts,
            views,
            site=self.site,
            root="../" * 4,
            uri=one.uri if "://" in one.uri else f"./{place}",
            path=f"{place}/index.html",
            files=files,
            banners=banners,
            neighbours=[
                (kind, Link(path=_path_of(other), label=f"{other.name}@{other.edition}"))
                for kind, other in around
            ],
            series=Link(path=series_path(one.name), label=one.name),
            signature_note="checked" if self.public_keys else "not checked by this catalogue",
        )
        for name, data in files.items():
            self.folder.write(f"{place}/{name}", data)
        self.folder.write(f"{place}/{_FACTS}", (json.dumps(facts, ensure_ascii=False) + "\n").encode())
        self.folder.write(f"{place}/index.html", page.encode())
        return facts

    def publications(self, entries: Sequence[Entry]) -> list[Link]:
        """Make the pages of publications."""
        return []


def _neighbours(one: ListedRelease, series: Sequence[ListedRelease]) -> list[tuple[str, ListedRelease]]:
    """Return the releases of the windows before and after."""
    windows = [other.window for other in series]
    place = windows.index(one.window)
    around = []
    if place > 0:
        around.append(("Before", series[place - 1]))
    if place + 1 < len(series):
        around.append(("After", series[place + 1]))
    return around


def _path_of(one: ListedRelease) -> str:
    return f"releases/{one.name}/{one.edition}/{one.release_id}/index.html"


def _key(*parts: object) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def _checked_title(title: str | None) -> str:
    if title is None:
        return "Private statistics"
    if not title.strip() or len(title) > 120 or not title.isprintable():
        message = f"--title {title}: a title is one line of 1 to 120 characters that can be seen"
        raise UsageError(message)
    return title.strip()


def _checked_base_url(url: str | None) -> str | None:
    from urllib.parse import urlsplit  # noqa: PLC0415 - one caller

    if url is None:
        return None
    try:
        parts = urlsplit(url)
        is_one = parts.scheme in {"http", "https"} and parts.hostname and not parts.username
        plain = url.isascii() and url.isprintable() and not any(sign in url for sign in " \"'<>\\^`{|}")
    except ValueError:
        is_one = plain = False
    if not is_one or not plain or parts.query or parts.fragment or parts.password:
        message = (
            "--base-url: write where the site will stand, as https://example.org/data, without a user, a "
            "query or a fragment"
        )
        raise UsageError(message)
    return url.rstrip("/")


def _budgets(entries: Sequence[Entry], charges: Mapping[str, Budget] | None) -> dict[str, Budget]:
    """Return what each dataset spent: by an export where there is one, else by its published releases."""
    found: dict[str, Budget] = {}
    for name in sorted({entry.facts["dataset"] for entry in entries} | set(charges or {})):
        if charges is not None and name in charges:
            found[name] = charges[name]
            continue
        of = sorted(
            (entry for entry in entries if entry.facts["dataset"] == name),
            key=lambda entry: (entry.facts["created"], entry.facts["label"]),
        )
        first = of[0].facts
        found[name] = Budget(
            guarantee=guarantee(
                first["neighboring"],
                first["unit"],
                [entry.facts["max_rows"] for entry in of if entry.facts["max_rows"] is not None],
            ),
            charges=tuple(
                Charged(
                    hour=entry.facts["created"],
                    what=entry.facts["label"],
                    epsilon=Fraction(entry.facts["epsilon"]),
                    state="published",
                )
                for entry in of
            ),
        )
    return found


def _charges(path: Path) -> dict[str, Budget]:
    """Read a ledger's export and verify it; return what was charged to each dataset."""
    from suffice.errors import LedgerCorruptError  # noqa: PLC0415 - one caller
    from suffice.storage.ledger.export import read_export  # noqa: PLC0415

    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, ValueError):
        message = f"--ledger-export {path}: the file cannot be read"
        raise UsageError(message) from None
    export = read_export(text)
    problems = export.verify()
    if problems:
        message = f"--ledger-export {path}: {problems[0]}"
        raise LedgerCorruptError(message)
    return _charged_by(export.lines)


def _charged_by(lines: Iterable[Any]) -> dict[str, Budget]:
    """Return the budget of each dataset by the public lines of a ledger: what was drawn counts for good."""
    from suffice.pipeline.spec.editions import edition  # noqa: PLC0415 - one caller

    terms: dict[str, dict[str, Any]] = {}
    reserved: dict[str, dict[str, Any]] = {}
    drawn: defaultdict[str, list[tuple[str, str, Fraction | None]]] = defaultdict(list)
    ended: dict[str, str] = {}
    for line in lines:
        content = line.payload
        if line.kind == "grant":
            terms[content["dataset"]] = content
        elif line.kind == "reserved":
            reserved[content["charge_id"]] = content
        elif line.kind == "drawing":
            dataset = reserved[content["charge_id"]]["dataset"]
            granted = Fraction(terms[dataset]["micro_granted"], 10**6)
            drawn[dataset].append((line.hour, content["charge_id"], granted))
        elif line.kind in {"published", "abandoned"}:
            ended[content["charge_id"]] = line.kind
    return {
        dataset: Budget(
            guarantee=guarantee(term["neighboring"], term["unit"], []),
            charges=tuple(
                Charged(
                    hour=hour,
                    what=f"{reserved[charge]['name']}@"
                    f"{edition(reserved[charge]['window'], reserved[charge]['amendment'])}",
                    epsilon=Fraction(reserved[charge]["micro_epsilon"], 10**6),
                    state=ended.get(charge, "not published yet"),
                    granted=granted,
                )
                for hour, charge, granted in drawn[dataset]
            ),
            per_window=term["per_window"],
            complete=True,
        )
        for dataset, term in terms.items()
    }
