#!/bin/sh
# Make the two bases from Debian's packages, where no registry can be reached: localhost/suffice-builder and
# localhost/suffice-base. Needs root, mmdebstrap and buildah.
set -eu
SUITE=${SUITE:-trixie}
MIRROR=${MIRROR:-http://deb.debian.org/debian}
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export SOURCE_DATE_EPOCH
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

make_base() { # name, packages
    mmdebstrap --quiet --variant=minbase --include="$2" \
        --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
        --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-include=/usr/share/doc/*/copyright' \
        "$SUITE" "$scratch/$1.tar" "$MIRROR"
    container=$(buildah from scratch)
    buildah add --quiet "$container" "$scratch/$1.tar" / >/dev/null
    buildah config --env PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin "$container"
    buildah commit --quiet --timestamp "$SOURCE_DATE_EPOCH" "$container" "localhost/$1"
    buildah rm "$container" >/dev/null
}

make_base suffice-base python3,ca-certificates
make_base suffice-builder python3,python3-venv,ca-certificates,binutils
