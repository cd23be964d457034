"""One run that makes a site: which pages were made, which were kept, and what is not shown."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from suffice.errors import SignatureError
from suffice.pages.rendering import design_fingerprint

if TYPE_CHECKING:
    from collections.abc import Callable

    from suffice.errors import SufficeError
    from suffice.pages.release_page import Site
    from suffice.pages.site_folder import SiteFolder


@dataclass(slots=True, kw_only=True)
class SiteRun:
    """One run over a store.

    Attributes
    ----------
    site : Site
    folder : SiteFolder
    problems : dict of str to str
        Why something in the store is not shown, by what it is.
    not_shown : dict of str to str
        The same for pages, which do not repeat an error's text: it names places of this machine.
    rendered, kept : set of str
        Folders of pages that were made anew, and that were left as they were.
    """

    site: Site
    folder: SiteFolder
    problems: dict[str, str] = field(default_factory=dict)
    not_shown: dict[str, str] = field(default_factory=dict)
    rendered: set[str] = field(default_factory=set)
    kept: set[str] = field(default_factory=set)

    def keep_or_make(self, place: str, made_of: object, document: str, make: Callable[[], Any]) -> Any:
        """Keep the pages of a folder, if they were made of the same; otherwise make them.

        Parameters
        ----------
        place : str
            The folder, below the site's.
        made_of : object
            What decides how its pages look, beside the site and the design; as ``repr`` writes it.
        document : str
            A JSON document in the folder.
        make : callable

        Returns
        -------
        object
            The document where the pages were kept; else what `make` returns.
        """
        parts = (made_of, design_fingerprint(), self.site)
        key = hashlib.sha256(repr(parts).encode()).hexdigest()
        found = self.folder.kept(place, key, document)
        if found is None:
            found = make()
            self.folder.made(place, key)
            self.rendered.add(place)
        elif place not in self.rendered:  # a second look in one run finds what the first has made
            self.kept.add(place)
        return found

    def leave_out(self, what: str, error: SufficeError) -> None:
        """Note what is not shown."""
        self.problems[what] = str(error)
        is_unsigned = isinstance(error, SignatureError)
        self.not_shown[what] = "no demanded key signed it" if is_unsigned else "it does not verify"
