"""What ``kubectl kustomize`` makes of the folders in ``deploy/kubernetes``, without kubectl.

Only what they use: resources, components, configMapGenerator from files, JSON patches, replacements. Anything
else in a kustomization is refused, so that nothing is passed over. A test holds this against kubectl.
"""

from __future__ import annotations

import copy
import functools
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from collections.abc import Iterator

    Objects = list[dict[str, Any]]

_KNOWN = {"apiVersion", "kind", "resources", "components", "configMapGenerator", "patches", "replacements"}
_LOCAL = "config.kubernetes.io/local-config"


def render(folder: Path) -> Objects:
    """Return the objects that are sent to the cluster; a caller may change them."""
    return copy.deepcopy(_rendered(folder))


@functools.cache
def _rendered(folder: Path) -> Objects:
    objects = _accumulated(folder, [])
    return [each for each in objects if each["metadata"].get("annotations", {}).get(_LOCAL) != "true"]


def _accumulated(folder: Path, objects: Objects) -> Objects:
    content = yaml.load((folder / "kustomization.yaml").read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
    assert content.keys() <= _KNOWN, content.keys() - _KNOWN
    for name in content.get("resources", []):
        place = folder / name
        if place.is_dir():
            objects += _accumulated(place, [])
        else:
            objects += list(yaml.load_all(place.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader))
    for name in content.get("components", []):
        objects = _accumulated(folder / name, objects)
    objects += [_config_map(folder, generator) for generator in content.get("configMapGenerator", [])]
    for patch in content.get("patches", []):
        operations = yaml.load((folder / patch["path"]).read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
        selected = list(_selected(objects, patch["target"]))
        assert selected, patch
        for target in selected:
            for operation in operations:
                _patch(target, operation)
    for replacement in content.get("replacements", []):
        _replace(objects, replacement)
    return objects


def _config_map(folder: Path, asked: dict[str, Any]) -> dict[str, Any]:
    assert asked["options"] == {"disableNameSuffixHash": True}
    data = {Path(name).name: (folder / name).read_text(encoding="utf-8") for name in asked["files"]}
    metadata = {"name": asked["name"], "namespace": asked["namespace"]}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def _selected(objects: Objects, target: dict[str, str]) -> Iterator[dict[str, Any]]:
    assert target.keys() <= {"kind", "name"}
    for candidate in objects:
        if (
            candidate["kind"] == target["kind"]
            and target.get("name", candidate["metadata"]["name"]) == candidate["metadata"]["name"]
        ):
            yield candidate


def _patch(target: dict[str, Any], operation: dict[str, Any]) -> None:
    """Do one operation of RFC 6902."""
    words = [word.replace("~1", "/").replace("~0", "~") for word in operation["path"].split("/")[1:]]
    place: Any = target
    for word in words[:-1]:
        place = place[int(word)] if isinstance(place, list) else place[word]
    value = copy.deepcopy(operation["value"])
    if isinstance(place, list):
        assert (operation["op"], words[-1]) == ("add", "-")
        place.append(value)
    else:
        assert operation["op"] == "add" or (operation["op"] == "replace" and words[-1] in place)
        place[words[-1]] = value


def _replace(objects: Objects, replacement: dict[str, Any]) -> None:
    source = replacement["source"]
    (origin,) = _selected(objects, {"kind": source["kind"], "name": source["name"]})
    ((holder, key),) = _places(origin, _words(source["fieldPath"]))
    value = holder[key]
    for target in replacement["targets"]:
        for selected in _selected(objects, target["select"]):
            for path in target["fieldPaths"]:
                places = list(_places(selected, _words(path)))
                assert places, f"{path} is nowhere in {selected['metadata']['name']}"
                for where, word in places:
                    where[word] = type(where[word])(value)


def _words(path: str) -> list[str]:
    """Split a path at its dots, but not at those behind a backslash."""
    return [word.replace("\0", ".") for word in path.replace("\\.", "\0").split(".")]


def _places(place: Any, words: list[str]) -> Iterator[tuple[Any, Any]]:
    """Yield what holds the field that a path leads to, and under which key."""
    word, rest = words[0], words[1:]
    keys: list[Any]
    if isinstance(place, list):
        if word == "*":
            keys = list(range(len(place)))
        elif word.startswith("["):
            name, _, value = word[1:-1].partition("=")
            keys = [index for index, entry in enumerate(place) if entry[name] == value]
        else:
            keys = [int(word)]
    else:
        assert word in place, f"{word} is none of {sorted(place)}"
        keys = [word]
    for key in keys:
        if rest:
            yield from _places(place[key], rest)
        else:
            yield place, key
