#!/bin/sh
# Build a target by buildah, the same twice: sh deploy/image/build.sh pipeline [argument of buildah]...
# With BASE and BUILDER by digest, or the bases that bases.sh makes. Run it from a clean checkout's top.
# FORMAT=oci makes equal digests, and leaves out the health check; docker's format, equal layers.
set -eu
target=$1
shift
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' pyproject.toml)
exec buildah build --format "${FORMAT:-docker}" --omit-history --identity-label=false --target "$target" \
    --timestamp "$SOURCE_DATE_EPOCH" \
    --file deploy/image/Containerfile --ignorefile deploy/image/Containerfile.dockerignore \
    --build-arg "BUILDER=${BUILDER:-localhost/suffice-builder}" --build-arg "BASE=${BASE:-localhost/suffice-base}" \
    --build-arg "SOURCE_DATE_EPOCH=$SOURCE_DATE_EPOCH" --build-arg "VERSION=$version" \
    --build-arg "REVISION=$(git rev-parse HEAD)" \
    --build-arg "CREATED=$(date --utc --date "@$SOURCE_DATE_EPOCH" +%Y-%m-%dT%H:%M:%SZ)" \
    --tag "localhost/suffice-$target" "$@" .
