# Makes the bucket, the login that publishes and the login that reads; may be run again.
set -eu
MC_HOST_store="http://$(cat /run/secrets/store.user):$(cat /run/secrets/store.password)@store:9000"
export MC_HOST_store
mc mb --ignore-existing store/releases
field() { # field FILE NAME
    while read -r name _ value; do
        if [ "$name" = "$2" ]; then printf '%s' "$value"; fi
    done <"/run/secrets/$1"
}
for login in releases readers; do
    mc admin policy create store "$login" "/srv/policies/$login.json"
    # Both as lines of the standard input: no word of a command holds a secret.
    printf '%s\n%s\n' "$(field $login.aws aws_access_key_id)" "$(field $login.aws aws_secret_access_key)" |
        mc admin user add store
    mc admin policy attach store "$login" --user "$(field $login.aws aws_access_key_id)" || true # it may have it
done
