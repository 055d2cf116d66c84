-- The mined artifacts that a report can hold: no field is empty or has a tab or a line's end, and all of them together,
-- with a tab in between, are short enough. A rule for each record by itself, and the same for everybody.
SELECT *
FROM mined
WHERE
    strlen(concat_ws(chr(9), *COLUMNS(* EXCLUDE ("user", place)))) <= $artifact_bytes
    AND COLUMNS(* EXCLUDE ("user", place)) <> ''
    AND NOT contains(COLUMNS(* EXCLUDE ("user", place)), chr(9))
    AND NOT contains(COLUMNS(* EXCLUDE ("user", place)), chr(10))
