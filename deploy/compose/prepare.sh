#!/bin/sh
# Makes what compose.yaml mounts: folders, passwords and keys. It never replaces one that is there.
set -eu
umask 077
cd "$(dirname "$0")"
mkdir -p secrets state/prefect state/spool state/store specs data site

random() { od -An -N24 -tx1 /dev/urandom | tr -d ' \n'; }
keep() { # keep FILE TEXT
    if [ ! -e "secrets/$1" ]; then
        printf '%s\n' "$2" >"secrets/$1.new"
        mv "secrets/$1.new" "secrets/$1"
    fi
}

for login in postgres prefect administrator owner releases auditor; do
    keep "$login.password" "$(random)"
    keep "$login.pgpass" "postgres:5432:*:$login:$(cat "secrets/$login.password")"
done
keep store.user "root-$(random)"
keep store.password "$(random)"
for login in releases readers; do
    keep "$login.aws" "[default]
aws_access_key_id = $login
aws_secret_access_key = $(random)"
done

[ -e .env ] || printf 'SUFFICE_USER=%s:%s\n' "$(id -u)" "$(id -g)" >.env

if [ -e secrets/cluster/ca.pem ]; then
    echo "prepared; the cluster's certificates are there"
elif command -v suffice >/dev/null; then
    suffice cluster certificates secrets/cluster
else
    echo "next: make the cluster's certificates, as README.md says" >&2
fi
