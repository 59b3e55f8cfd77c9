-- The table `configurations`.
FROM configured
