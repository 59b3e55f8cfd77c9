-- Hours of the MCMC workload that the blog's own GPU hours and multiple give.
SELECT
    gpu.value / multiple.value AS value,
    printf('the document''s own %g hours and %gx', gpu.value, multiple.value) AS baseline,
    printf('%g h / %g = %.2f h', gpu.value, multiple.value, gpu.value / multiple.value) AS arithmetic,
    ['claims:' || gpu.claim_id, 'claims:' || multiple.claim_id] AS inputs
FROM printed AS gpu
CROSS JOIN printed AS multiple
WHERE gpu.claim_id = 'blog2020-mcmc-gpu-time' AND multiple.claim_id = 'blog2020-mcmc-speedup'
ORDER BY value
