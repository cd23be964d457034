-- Read releases of the open format 1 in DuckDB: .read suffice.sql, then
--
--     FROM suffice_table('releases/flights/all/0123456789abcdef', 'cancelled');
--
-- Macros compare hashes and check little else: verify a release by `suffice verify`, or another reader, first.

-- One row for each statistic: its scale, epsilon, and what its file should be.
CREATE OR REPLACE MACRO suffice_statistics(directory) AS TABLE
WITH manifest AS (
    SELECT * FROM read_json_objects(directory || '/manifest.json', format = 'unstructured', maximum_object_size = 25165824)
), document AS (
    SELECT json FROM manifest
    WHERE json ->> '$.format_version' = '1' AND json -> '$.rehearsal' IS NULL AND json -> '$.tombstone' IS NULL
), entries AS (
    SELECT json, unnest(json_extract(json, '$.statistics[*]')) AS entry FROM document
)
SELECT
    entry ->> '$.name' AS statistic,
    entry ->> '$.family' AS family,
    json ->> '$.name' AS release,
    json ->> '$.window' AS release_window,
    entry ->> '$.epsilon' AS epsilon,
    CAST(entry ->> '$.scale' AS DOUBLE) AS scale,
    coalesce(CAST(json ->> '$.n' AS DOUBLE), 0) AS public_n,
    entry -> '$.quantities' AS quantities,
    directory || '/' || (entry ->> '$.name') || '.parquet' AS path
FROM entries;

-- The standard deviation of discrete Laplace noise of a scale.
CREATE OR REPLACE MACRO suffice_noise_sd(scale) AS
    CASE WHEN 0.5 / scale < 700
    THEN 2 / (sqrt(2.0) * (exp(0.5 / scale) - exp(-0.5 / scale))) ELSE 0 END;

-- Exact numbers of a manifest as doubles: decimals, or p/q.
CREATE OR REPLACE MACRO suffice_number(text) AS
    CAST(split_part(text, '/', 1) AS DOUBLE) / coalesce(CAST(nullif(split_part(text, '/', 2), '') AS DOUBLE), 1);

-- The released components: keys, component, value in lattice units. The file has to have the SHA-256 stated.
CREATE OR REPLACE MACRO suffice_values(directory, statistic) AS TABLE
SELECT * FROM read_parquet(directory || '/' || statistic || '.parquet')
WHERE EXISTS (
    SELECT 1
    FROM read_json_objects(directory || '/manifest.json', format = 'unstructured', maximum_object_size = 25165824) AS manifest
    CROSS JOIN read_blob(directory || '/' || statistic || '.parquet') AS file
    CROSS JOIN unnest(json_extract(manifest.json, '$.files[*]')) AS listed(entry)
    WHERE entry ->> '$.statistic' = statistic
    AND CASE WHEN entry ->> '$.sha256' = sha256(file.content) THEN TRUE
        ELSE error('the data file has another SHA-256 than the manifest states') END
);
