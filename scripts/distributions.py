"""Refuse files that an index should not get.

``python -m scripts.distributions DIST --tag TAG --repository URL``

`DIST` holds the wheel and the source distribution as ``python -m build`` leaves them. Nothing is installed,
and nothing of them is run. The exit status is 1 where anything is wrong.
"""

from __future__ import annotations

import argparse
import re
import sys
import tarfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

from packaging.metadata import InvalidMetadata, Metadata
from packaging.utils import parse_sdist_filename, parse_wheel_filename

LINKS = ("Changelog", "Documentation", "Issues", "Repository")
LARGEST = 10 * 2**20
"""Bytes of one file: what is larger was most likely packed by mistake."""
PRIVATE = re.compile(r"(^|/)(\.env|\.netrc|\.pypirc|\.git|\.venv|node_modules|__pycache__)(/|$)|\.(db|pyc)$")
"""Names that stand for secrets, ledgers and other leavings of a working copy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Distribution:
    """A wheel or a source distribution.

    Attributes
    ----------
    name : str
        Of the file.
    files : dict of str to int
        The size in bytes of each file in it, by its path; of a source distribution below its folder.
    metadata : bytes
    texts : dict of str to str
        The contents of the changelog, where there is one.
    """

    name: str
    files: dict[str, int]
    metadata: bytes
    texts: dict[str, str]


def read_wheel(path: Path) -> Distribution:
    """Read a wheel."""
    with zipfile.ZipFile(path) as archive:
        files = {entry.filename: entry.file_size for entry in archive.infolist() if not entry.is_dir()}
        (named,) = (name for name in files if re.fullmatch(r"[^/]+\.dist-info/METADATA", name))
        return Distribution(name=path.name, files=files, metadata=archive.read(named), texts={})


def read_source(path: Path) -> Distribution:
    """Read a source distribution."""
    with tarfile.open(path) as archive:
        members = {member.name.partition("/")[2]: member for member in archive if member.isfile()}
        read = {name: archive.extractfile(members[name]) for name in ("PKG-INFO", "CHANGELOG.md")}
        contents = {name: file.read() for name, file in read.items() if file is not None}
    return Distribution(
        name=path.name,
        files={name: member.size for name, member in members.items()},
        metadata=contents["PKG-INFO"],
        texts={"CHANGELOG.md": contents["CHANGELOG.md"].decode()},
    )


def problems(directory: Path, *, tag: str, repository: str) -> list[str]:
    """Say what is wrong with the files of a directory; an empty list lets them pass."""
    wheels, sources = sorted(directory.glob("*.whl")), sorted(directory.glob("*.tar.gz"))
    if (len(wheels), len(sources), len(list(directory.iterdir()))) != (1, 1, 2):
        return [f"{directory} must hold one wheel, one source distribution and nothing else"]
    wheel, source = read_wheel(wheels[0]), read_source(sources[0])
    faults = [
        *_of_names(wheel, source, tag),
        *_of_wheel(wheel),
        *_of_source(source, tag),
        *_of_metadata(wheel, repository),
    ]
    if wheel.metadata != source.metadata:
        faults.append("the two files have different metadata: build the wheel from the source distribution")
    for distribution in (wheel, source):
        for name, size in distribution.files.items():
            if PRIVATE.search(name):
                faults.append(f"{distribution.name} holds {name}, which is for nobody else")
            if size > LARGEST:
                faults.append(f"{distribution.name} holds {name} of {size} bytes: more than {LARGEST}")
    return faults


def _of_names(wheel: Distribution, source: Distribution, tag: str) -> list[str]:
    name, version, _, tags = parse_wheel_filename(wheel.name)
    faults = []
    if (name, version) != parse_sdist_filename(source.name):
        faults.append(f"{wheel.name} and {source.name} are not of one version")
    if tag != f"v{version}":
        faults.append(f"the tag {tag} is not v{version}, which the files are of")
    if {str(each) for each in tags} != {"py3-none-any"}:
        faults.append(f"{wheel.name} is not for every platform")
    return faults


def _of_wheel(wheel: Distribution) -> list[str]:
    faults = [] if "suffice/py.typed" in wheel.files else ["the wheel has no py.typed"]
    if not any(name.endswith(".dist-info/licenses/LICENSE") for name in wheel.files):
        faults.append("the wheel has no LICENSE")
    strays = [name for name in wheel.files if not re.match(r"suffice/|suffice-[^/]+\.dist-info/", name)]
    return [*faults, *(f"the wheel would install {name} beside the package" for name in strays)]


def _of_source(source: Distribution, tag: str) -> list[str]:
    faults = [] if "LICENSE" in source.files else ["the source distribution has no LICENSE"]
    dated = rf"^## \[{re.escape(tag.removeprefix('v'))}\] - \d{{4}}-\d\d-\d\d$"
    if not re.search(dated, source.texts["CHANGELOG.md"], re.MULTILINE):
        faults.append(f"CHANGELOG.md has no heading with a date for {tag}")
    return faults


def _of_metadata(wheel: Distribution, repository: str) -> list[str]:
    try:
        metadata = Metadata.from_email(wheel.metadata)
    except (ExceptionGroup, InvalidMetadata) as error:
        return [f"the metadata are not valid: {error}"]
    faults = [] if metadata.license_expression else ["the metadata state no licence expression"]
    if metadata.description_content_type != "text/markdown" or not metadata.description:
        faults.append("the metadata have no description in Markdown")
    links = metadata.project_urls or {}
    for label in LINKS:
        if label not in links:
            faults.append(f"the metadata have no link {label}: fill in [project.urls] in pyproject.toml")
        elif label != "Documentation" and not f"{links[label]}/".startswith(f"{repository}/"):
            faults.append(f"the link {label} does not lead to {repository}")
    return faults


def main() -> int:
    """Print what is wrong."""
    parser = argparse.ArgumentParser(description="Refuse files that an index should not get.")
    parser.add_argument("directory", type=Path)
    parser.add_argument("--tag", required=True)
    parser.add_argument("--repository", required=True)
    asked = parser.parse_args()
    faults = problems(asked.directory, tag=asked.tag, repository=asked.repository)
    for problem in faults:
        sys.stdout.write(f"{problem}\n")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
