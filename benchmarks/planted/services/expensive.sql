SELECT sum(abalance * 1.5 + x), max(CASE WHEN abalance > 0 THEN upper(filler) ELSE 'c' END), min(aid * y)
FROM pgbench_accounts, generate_series(1, (SELECT 1)) AS x, generate_series(1, (SELECT 1)) AS y,
     generate_series(1, (SELECT 1)) AS z
WHERE aid = 1 + x * 7 AND abalance * 2 + y + z > -1000000;
