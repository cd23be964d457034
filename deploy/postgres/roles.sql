-- Three roles for a ledger on PostgreSQL, each with no more than its work needs.
--
--   suffice_owner       the data owner: makes accounts, sets their totals, sources, stores, checksums,
--                       witness and contract; adopts and retires stores
--   suffice_publisher   the pipeline: charges accounts, moves its charges on
--   suffice_auditor     reads everything, writes nothing
--
-- Run it in the ledger's database, as the role that made the ledger (the first `suffice ledger grant
-- --create`) and may create roles; it may be run again. People and services log in as members:
--
--   CREATE ROLE nightly_release LOGIN PASSWORD '...' IN ROLE suffice_publisher;
--
-- The role that made the ledger owns its tables and can do everything to them: no service should hold it.

BEGIN;

DO $$
DECLARE role text;
BEGIN
    FOREACH role IN ARRAY ARRAY['suffice_owner', 'suffice_publisher', 'suffice_auditor'] LOOP
        IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = role) THEN
            EXECUTE format('CREATE ROLE %I NOLOGIN', role);
        END IF;
        -- No temporary tables either: they would come before the ledger's own.
        EXECUTE format('REVOKE ALL ON DATABASE %I FROM PUBLIC, %I', current_database(), role);
        EXECUTE format('GRANT CONNECT ON DATABASE %I TO %I', current_database(), role);
    END LOOP;
END
$$;

-- Nor large objects, which every login can make and fill unless the functions are taken from it. They belong to the
-- server's superuser: where another role runs this, he is asked to.
DO $$
DECLARE name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['lo_creat(integer)', 'lo_create(oid)', 'lo_from_bytea(oid, bytea)'] LOOP
        IF (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) THEN
            EXECUTE format('REVOKE EXECUTE ON FUNCTION pg_catalog.%s FROM PUBLIC', name);
        ELSIF has_function_privilege('suffice_auditor', 'pg_catalog.' || name, 'EXECUTE') THEN
            RAISE WARNING 'every login may fill the disk with large objects: as the superuser, in this database, '
                'REVOKE EXECUTE ON FUNCTION pg_catalog.% FROM PUBLIC', name;
        END IF;
    END LOOP;
END
$$;

REVOKE ALL ON SCHEMA public FROM PUBLIC, suffice_owner, suffice_publisher, suffice_auditor;
GRANT USAGE ON SCHEMA public TO suffice_owner, suffice_publisher, suffice_auditor;

REVOKE ALL ON alembic_version, ledger, entries, checkpoints, accounts, windows, names, stores, plans, charges,
    staged_manifests, staged_files, movements FROM PUBLIC, suffice_owner, suffice_publisher, suffice_auditor;
GRANT SELECT ON alembic_version, ledger, entries, checkpoints, accounts, windows, names, stores, plans, charges,
    staged_manifests, staged_files
    TO suffice_owner, suffice_publisher, suffice_auditor;

-- Both append to the chain; a trigger keeps grants for whoever may set totals, the rest for whoever charges.
GRANT INSERT ON entries TO suffice_owner, suffice_publisher;
GRANT UPDATE (head_sequence, head_hash) ON ledger TO suffice_owner, suffice_publisher;

GRANT INSERT ON accounts, checkpoints TO suffice_owner;
GRANT UPDATE (sequence, state) ON checkpoints TO suffice_owner;
GRANT UPDATE (granted, sources, stores, checksums, witness, contract, contract_sha256, audit_sha256,
    audit_plan_hash, failed_readings, max_windows)
    ON accounts TO suffice_owner;
GRANT UPDATE (uri, retired) ON stores TO suffice_owner;

GRANT UPDATE (spent, reserved) ON accounts TO suffice_publisher;
GRANT INSERT ON windows, names, stores, plans, charges TO suffice_publisher;
GRANT UPDATE (last_marker) ON stores TO suffice_publisher;
GRANT UPDATE (spent, reserved) ON windows TO suffice_publisher;
GRANT UPDATE (state, marked, drew, draw_returned, epoch, holder, lease_expires, holder_process, spool_id, spool_host,
    drawing_sequence, drawing_hash, drawing_epoch, manifest_sha256)
    ON charges TO suffice_publisher;
-- Triggers let the bytes to publish in and out with the charge's state, and those of a manifest with their hash.
GRANT INSERT, DELETE ON staged_manifests, staged_files TO suffice_publisher;

COMMIT;
