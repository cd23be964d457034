-- Two databases, and a login for each role, whose passwords are those of the secrets. It may be run again: then it
-- sets passwords to what the files say now.
\set ON_ERROR_STOP on
\set prefect `cat /run/secrets/prefect.password`
\set administrator `cat /run/secrets/administrator.password`
\set owner `cat /run/secrets/owner.password`
\set releases `cat /run/secrets/releases.password`
\set auditor `cat /run/secrets/auditor.password`
-- Passwords are in the statements below: keep them out of the server's log, also where one fails.
SET log_statement = 'none';
SET log_min_duration_statement = -1;
SET log_min_error_statement = 'panic';
SET password_encryption = 'scram-sha-256';

SELECT format('CREATE ROLE %I NOLOGIN', role)
FROM unnest(ARRAY['suffice_owner', 'suffice_publisher', 'suffice_auditor']) AS role
WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = role)
\gexec
SELECT format('CREATE ROLE %I LOGIN', role)
FROM unnest(ARRAY['prefect', 'administrator', 'owner', 'releases', 'auditor']) AS role
WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = role)
\gexec

ALTER ROLE prefect PASSWORD :'prefect';
ALTER ROLE administrator PASSWORD :'administrator';
ALTER ROLE owner PASSWORD :'owner';
ALTER ROLE releases PASSWORD :'releases';
ALTER ROLE auditor PASSWORD :'auditor';
GRANT suffice_owner TO owner;
GRANT suffice_publisher TO releases;
GRANT suffice_auditor TO auditor;

SELECT format('CREATE DATABASE %I OWNER %I TEMPLATE template0', name, login)
FROM (VALUES ('prefect', 'prefect'), ('ledger', 'administrator')) AS wanted (name, login)
WHERE NOT EXISTS (SELECT FROM pg_database WHERE datname = name)
\gexec

-- Each login reaches its own database: until roles.sql has run, nobody but its administrator reaches the ledger.
REVOKE ALL ON DATABASE prefect, ledger, postgres, template1 FROM PUBLIC;

-- No login makes large objects in the ledger's database, where they could fill its disk: roles.sql says more.
\connect ledger
REVOKE EXECUTE ON FUNCTION pg_catalog.lo_creat(integer), pg_catalog.lo_create(oid),
    pg_catalog.lo_from_bytea(oid, bytea) FROM PUBLIC;
