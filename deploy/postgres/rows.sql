-- Who may read rows, where the source is a table or a view in PostgreSQL.
--
--   suffice_rows        the trusted cluster, and nobody else: reads one relation, writes nothing
--
-- Run it in the warehouse's database, not in the ledger's, as a role that may grant what it names; it may be run
-- again, for one relation at a time:
--
--   psql "$WAREHOUSE" -v schema=public -v relation=flights -f deploy/postgres/rows.sql
--   CREATE ROLE statistics LOGIN PASSWORD '...' IN ROLE suffice_rows;
--   ALTER ROLE statistics SET default_transaction_read_only = on;
--
-- No login is a member of this role and of one that reads releases only, and no owner, publisher or auditor of
-- the ledger needs it. A view that leaves out columns that no spec names is better than its table.
--
-- Nothing is taken from others: where everybody may read the relation, the script says so.

\set ON_ERROR_STOP on

BEGIN;

DO $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'suffice_rows') THEN
        CREATE ROLE suffice_rows NOLOGIN;
    END IF;
    EXECUTE format('GRANT CONNECT ON DATABASE %I TO suffice_rows', current_database());
END
$$;

REVOKE ALL ON :"schema".:"relation" FROM suffice_rows;
REVOKE ALL ON SCHEMA :"schema" FROM suffice_rows;
GRANT USAGE ON SCHEMA :"schema" TO suffice_rows;
GRANT SELECT ON :"schema".:"relation" TO suffice_rows;

SELECT has_table_privilege('public', format('%I.%I', :'schema', :'relation'), 'SELECT') AS open_to_all \gset
\if :open_to_all
\warn 'every login may read' :schema.:relation ': REVOKE SELECT ON it FROM PUBLIC, and grant it to those who need it'
\endif

COMMIT;
