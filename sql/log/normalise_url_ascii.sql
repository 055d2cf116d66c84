-- A url of pure ASCII, normalised: scheme and host in lower case, white space around it and slashes at its end removed.
-- Equal to normalise_url on such strings. The first pattern passes the urls that are so already, nearly all of a log.
CREATE OR REPLACE TEMP MACRO normalise_url_ascii(raw) AS
CASE
    WHEN regexp_full_match(raw, '[!-@\[-~]*[!-.0-@\[-~]') THEN raw
    ELSE lower(
        regexp_extract(
            regexp_replace(raw, '^[\t-\r\x1c-\x20]+|[\t-\r\x1c-\x20/]+$', '', 'g'), '^(?:[^/?#]*://)?[^/?#]*'
        )
    ) || regexp_extract(
        regexp_replace(raw, '^[\t-\r\x1c-\x20]+|[\t-\r\x1c-\x20/]+$', '', 'g'), '(?s)^(?:[^/?#]*://)?[^/?#]*(.*)', 1
    )
END
