"""One run that makes a site: which pages were made, which were kept, and what is not shown.

The site's folder lists what an earlier run wrote there, so that this one replaces and removes nothing else.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from suffice.errors import SignatureError, UsageError
from suffice.pages.rendering import design_fingerprint

if TYPE_CHECKING:
    from collections.abc import Callable

    from suffice.errors import SufficeError
    from suffice.pages.release_page import Site

STATE = "catalogue.json"
"""What was made of what: by file its SHA-256, by page what it was made of."""
_STATE_VERSION = 1
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")
"""How a URI begins, also one that was read as a path, which lost a slash."""


@dataclass(slots=True, kw_only=True)
class SiteFolder:
    """The site's folder: what an earlier run wrote there, and what this one writes or keeps."""

    path: Path
    earlier: dict[str, str]
    keys: dict[str, str]
    files: dict[str, str] = field(default_factory=dict)
    new_keys: dict[str, str] = field(default_factory=dict)

    @classmethod
    def open(cls, out: str | os.PathLike[str]) -> SiteFolder:
        """Open a new folder, an empty one, or an earlier catalogue's, be it an unfinished one.

        Raises
        ------
        UsageError
            Where it is something else, lies inside a store, or cannot be written.
        """
        from suffice.storage.publications.publication_store import holds_store  # one caller

        text = os.fspath(out)
        if _SCHEME.match(text):
            message = f"--out {text}: a catalogue is written to a folder of this machine: copy it from there"
            raise UsageError(message)
        try:
            path = Path(os.path.realpath(text))
            if any(map(holds_store, (path, *path.parents))):
                message = f"--out {text}: this lies inside a store: name another place"
                raise UsageError(message)
            path.mkdir(parents=True, exist_ok=True)
            state = path / STATE
            if not state.exists():
                if any(path.iterdir()):
                    message = f"--out {text}: the folder is neither empty nor a catalogue: name another"
                    raise UsageError(message)
                folder = cls(path=path, earlier={}, keys={})
                folder._note()  # from here on it is a catalogue's, also where this run is interrupted
                return folder
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

    def kept(self, of: str, key: str, document: str) -> Any | None:
        """Keep the files of a page where they were made of the same, and return one of them, a JSON document.

        None where they were made of something else, or are not all there any more.
        """
        below = [path for path in self.earlier if path.startswith(f"{of}/")]
        if self.keys.get(of) != key or document not in below:
            return None
        try:
            if not all((self.path / path).is_file() for path in below):
                return None
            data = (self.path / document).read_bytes()
        except OSError:
            return None
        if hashlib.sha256(data).hexdigest() != self.earlier[document]:
            return None
        self.files.update({path: self.earlier[path] for path in below})
        self.new_keys[of] = key
        return json.loads(data)

    def made(self, of: str, key: str) -> None:
        """Note what the files below a folder were made of."""
        self.new_keys[of] = self.keys[of] = key
        self.earlier.update(
            {path: digest for path, digest in self.files.items() if path.startswith(f"{of}/")}
        )

    def write(self, path: str, data: bytes) -> None:
        """Write a file whole, unless it stands there as it is."""
        target = self.path / path
        digest = hashlib.sha256(data).hexdigest()
        try:
            if not _holds(target, data):
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
        self._note()
        return sum(of not in self.new_keys for of in self.keys)

    def _note(self) -> None:
        """Write down what there is."""
        state = {"suffice_catalogue": _STATE_VERSION, "files": self.files, "keys": self.new_keys}
        self.write(STATE, (json.dumps(state, sort_keys=True, indent=0) + "\n").encode())
        del self.files[STATE]  # it does not list itself


def _holds(target: Path, data: bytes) -> bool:
    """Tell whether a file has this content already: what is unchanged keeps its time."""
    return target.is_file() and target.stat().st_size == len(data) and target.read_bytes() == data


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
        made = self.folder.kept(place, key, document)
        if made is None:
            made = make()
            self.folder.made(place, key)
            self.rendered.add(place)
        elif place not in self.rendered:  # a second look in one run finds what the first has made
            self.kept.add(place)
        return made

    def leave_out(self, what: str, error: SufficeError) -> None:
        """Note what is not shown."""
        self.problems[what] = str(error)
        is_unsigned = isinstance(error, SignatureError)
        self.not_shown[what] = "no demanded key signed it" if is_unsigned else "it does not verify"
