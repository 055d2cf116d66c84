-- Contributions with the weight that their user gives to each. Who holds known items alone gives none.
SELECT
    contributions.*,
    coalesce(degree_weights.user_weight, 0) AS user_weight
FROM contributions
LEFT JOIN user_degrees ON contributions."user" = user_degrees."user"
LEFT JOIN degree_weights ON user_degrees.degree = degree_weights.degree
