-- A query of pure ASCII, normalised: lower case, single spaces. Equal to normalise_text on such strings.
-- The first pattern finds the few rows with anything to collapse or strip; the others only need lower().
CREATE OR REPLACE TEMP MACRO normalise_ascii(raw) AS
CASE
    WHEN regexp_matches(raw, '[\t-\r\x1c-\x1f]|  |^ | $')
        THEN trim(regexp_replace(lower(raw), '[\t-\r\x1c-\x20]+', ' ', 'g'))
    ELSE lower(raw)
END
