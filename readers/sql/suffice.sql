-- Read releases of the open format 1 in DuckDB 1.3 or later: .read suffice.sql, then
--
--     FROM suffice_table('releases/flights/all/0123456789abcdef', 'cancelled');
--     FROM suffice_intervals('releases/flights/all/0123456789abcdef', 'cancelled', 0.95);
--     FROM suffice_samples('releases/flights/all/0123456789abcdef', 'cancelled_drawn');
--
-- A statistic that a release does not have ends in "No files found": FROM suffice_statistics('...') lists them.
-- These macros compare format version, size and SHA-256 of the data file, and little else: verify a release by
-- `suffice verify`, or by another reader, first.

-- An exact number of a manifest as a double: a decimal, or p/q.
CREATE OR REPLACE MACRO suffice_number(exact) AS
    CAST(split_part(exact, '/', 1) AS DOUBLE) / coalesce(CAST(nullif(split_part(exact, '/', 2), '') AS DOUBLE), 1);

-- The standard deviation of discrete Laplace noise of a scale.
CREATE OR REPLACE MACRO suffice_noise_sd(scale) AS
    CASE WHEN 0.5 / scale < 700 THEN 1 / (sqrt(2.0) * sinh(0.5 / scale)) ELSE 0 END;

-- The manifest; an error where there is no release of format 1.
CREATE OR REPLACE MACRO suffice_manifest(directory) AS TABLE
SELECT json AS manifest
FROM read_json_objects(directory || '/manifest.json', format = 'unstructured', maximum_object_size = 25165824)
WHERE CASE
    WHEN json_extract_string(json, '$.format_version') IS DISTINCT FROM '1'
        THEN error('the manifest has another format than 1, which these macros read')
    WHEN json_exists(json, '$.rehearsal') OR json_exists(json, '$.tombstone')
        THEN error('there is no release: it is a tombstone, or of a rehearsal')
    WHEN (SELECT count(*) FROM glob(directory || '/withdrawn.json')) > 0
        THEN error('the release was withdrawn: its withdrawn.json says why')
    ELSE TRUE
END;

-- One row for each statistic, with its noise, where it has noise and is no sample, and where its file should be.
CREATE OR REPLACE MACRO suffice_statistics(directory) AS TABLE
SELECT
    json_extract_string(entry, '$.name') AS statistic,
    json_extract_string(entry, '$.family') AS family,
    json_extract_string(entry, '$.epsilon') AS epsilon,
    json_extract_string(entry, '$.rho') AS rho,
    json_extract_string(entry, '$.mechanism') AS mechanism,
    CASE json_extract_string(entry, '$.mechanism') WHEN 'discrete_laplace'
        THEN CAST(json_extract_string(entry, '$.scale') AS DOUBLE) END AS scale,
    json_array_length(entry, '$.components') AS n_components,
    coalesce(CAST(json_extract_string(manifest, '$.n') AS DOUBLE), 0) AS public_n,
    json_extract(entry, '$.quantities') AS quantities,
    json_extract_string(file, '$.sha256') AS sha256,
    CAST(json_extract_string(file, '$.size') AS BIGINT) AS size
FROM (
    SELECT
        manifest,
        unnest(json_extract(manifest, '$.statistics[*]')) AS entry,
        unnest(json_extract(manifest, '$.files[*]')) AS file
    FROM suffice_manifest(directory)
);

-- Noisy components as they stand in the file, with the number of their cell from 0.
CREATE OR REPLACE MACRO suffice_values(directory, of_statistic) AS TABLE
SELECT held.* EXCLUDE (file_row_number), held.file_row_number // stated.n_components AS cell
FROM read_parquet(directory || '/' || of_statistic || '.parquet', file_row_number = TRUE) AS held
CROSS JOIN (
    SELECT n_components
    FROM suffice_statistics(directory) AS entry
    CROSS JOIN read_blob(directory || '/' || of_statistic || '.parquet') AS file
    WHERE entry.statistic = of_statistic
    AND CASE WHEN entry.mechanism = 'cone_noise'
            THEN error('its noise is on a cone, whose law these macros do not know: take another reader')
        WHEN entry.mechanism IS DISTINCT FROM 'discrete_laplace'
            THEN error('it is a posterior sample, there are no statistics in it: FROM suffice_samples')
        WHEN entry.sha256 = sha256(file.content) AND entry.size = file.size THEN TRUE
        ELSE error('the data file has another size or SHA-256 than the manifest states') END
) AS stated;

-- Draws of a posterior sample, in the parameter's unit. Computed in doubles.
CREATE OR REPLACE MACRO suffice_samples(directory, of_statistic) AS TABLE
SELECT
    held.* EXCLUDE (value, file_row_number),
    json_extract_string(stated.entry, '$.parameter') AS parameter,
    suffice_number(json_extract_string(stated.entry, '$.within[0]'))
        + held.value * (
            suffice_number(json_extract_string(stated.entry, '$.within[1]'))
            - suffice_number(json_extract_string(stated.entry, '$.within[0]'))
        ) / (CAST(json_extract_string(stated.entry, '$.grid') AS BIGINT) - 1) AS value
FROM read_parquet(directory || '/' || of_statistic || '.parquet', file_row_number = TRUE) AS held
CROSS JOIN (
    SELECT one.entry
    FROM (
        SELECT unnest(json_extract(manifest, '$.statistics[*]')) AS entry FROM suffice_manifest(directory)
    ) AS one
    JOIN suffice_statistics(directory) AS listed
        ON listed.statistic = json_extract_string(one.entry, '$.name')
    CROSS JOIN read_blob(directory || '/' || of_statistic || '.parquet') AS file
    WHERE listed.statistic = of_statistic
    AND CASE WHEN listed.mechanism IS DISTINCT FROM 'exponential'
            THEN error('it was released as noisy statistics: FROM suffice_table')
        WHEN json_extract_string(one.entry, '$.quantile') IS NOT NULL
            THEN error('it is a drawn quantile: its file has the bins, from 0 on, and its manifest their ends')
        WHEN listed.sha256 = sha256(file.content) AND listed.size = file.size THEN TRUE
        ELSE error('the data file has another size or SHA-256 than the manifest states') END
) AS stated
ORDER BY held.file_row_number;

-- Unbiased estimates of every quantity in every cell, with the standard deviation of their noise. Computed in doubles.
CREATE OR REPLACE MACRO suffice_table(directory, of_statistic) AS TABLE
WITH entry AS (
    SELECT * FROM suffice_statistics(directory) WHERE statistic = of_statistic
), quantities AS (
    SELECT scale, public_n, unnest(json_extract(quantities, '$[*]')) AS quantity FROM entry
), numbered AS (
    SELECT *, row_number() OVER () AS position FROM quantities
), weights AS (
    SELECT position, component, suffice_number(json_extract_string(map, '$."' || replace(component, '"', '\"') || '"')) AS weight
    FROM (
        SELECT position, json_extract(quantity, '$.coefficients') AS map,
            unnest(json_keys(quantity, '$.coefficients')) AS component
        FROM numbered
    )
), held AS (
    -- A sample's file has neither components nor estimates: with them here, suffice_values says that it is one.
    SELECT * FROM suffice_values(directory, of_statistic)
    UNION ALL BY NAME SELECT '' AS component, CAST(0 AS BIGINT) AS value, CAST(0 AS DOUBLE) AS estimate WHERE FALSE
), cells AS (
    SELECT * EXCLUDE (component, value, estimate) FROM held
    QUALIFY row_number() OVER (PARTITION BY cell) = 1
), sums AS (
    SELECT position, cell, sum(weight * CAST(value AS DOUBLE)) AS total
    FROM weights JOIN held USING (component) GROUP BY position, cell
), squares AS (
    SELECT position, sqrt(sum(weight * weight)) AS root FROM weights GROUP BY position
)
SELECT
    cells.* EXCLUDE (cell),
    json_extract_string(quantity, '$.name') AS quantity,
    json_extract_string(quantity, '$.category') AS category,
    json_extract_string(quantity, '$.component') AS component,
    json_extract(quantity, '$.labels') AS labels,
    coalesce(total, 0) + public_n * suffice_number(json_extract_string(quantity, '$.public_n_coefficient')) AS estimate,
    suffice_noise_sd(scale) * coalesce(root, 0) AS noise_sd
FROM cells CROSS JOIN numbered
LEFT JOIN sums USING (position, cell) LEFT JOIN squares USING (position)
ORDER BY cell, position;

-- Intervals that hold the exact quantity of the data with at least this chance, whatever the data are: by the inequality of
-- Chebyshev, so wider than need be. They cover the noise alone: how the quantity itself would differ in other
-- data of the same kind is in posteriors.
CREATE OR REPLACE MACRO suffice_intervals(directory, of_statistic, mass) AS TABLE
SELECT
    *,
    estimate - noise_sd / sqrt(1 - mass) AS lower,
    estimate + noise_sd / sqrt(1 - mass) AS upper
FROM suffice_table(directory, of_statistic);
