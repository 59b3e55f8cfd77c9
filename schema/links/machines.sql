-- The virtual machines that records of local runs describe.
SELECT run_id, unnest(parse_machine(environment))
FROM read.runs
WHERE parse_machine(environment) IS NOT NULL
