-- The numbers of some texts among session_queries, NULL where no kept session has the text.
SELECT session_queries.query_id
FROM wanted_texts
LEFT JOIN session_queries ON wanted_texts.query = session_queries.query
ORDER BY wanted_texts.place
