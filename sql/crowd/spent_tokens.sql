-- The serial of the token of every accepted report, with the application of its job: what limits are counted on.
SELECT
    application,
    lower(hex(serial)) AS serial
FROM accepted
