#!/bin/sh
# R compiled to WebAssembly into FOLDER/node_modules: sh tests/install_webr.sh FOLDER. Of what npm would install with it
# (100 MB for a page with an editor) only ws is needed.
set -eu
mkdir -p "$1/node_modules"
cd "$1"
install() {
    npm pack --silent "$1@$2" >/dev/null
    echo "$3  $1-$2.tgz" | sha256sum --check --quiet
    mkdir -p "node_modules/$1"
    tar -xzf "$1-$2.tgz" -C "node_modules/$1" --strip-components=1
    rm "$1-$2.tgz"
}
install ws 8.23.0 b8bd105a274ae9ca114f8c6ce4d9dbb0c764fe5118ba633c557e1703e297c587
install webr 0.6.0 5821c8bd87484add59064fa13fa62a65f686032f3f64dacf4b0aa34c4325e959
