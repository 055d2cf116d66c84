-- The public url list in the order of its ids.
SELECT
    url_id,
    url
FROM url_list
ORDER BY url_id
