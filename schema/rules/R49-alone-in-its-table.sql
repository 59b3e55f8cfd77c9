-- scope: document
-- Flag a condition that one row alone of its table has: another task, another generation of the IPU, or what no other row
-- of its network (of its maker and dataset, for the framework) has. Every other value is that of two rows or more, of four
-- or more in all.
SELECT DISTINCT ON (result_id, column_name)
    result_id, column_name, 'warn' AS severity,
    format(
        '{} in this row alone; the {} others of its table{} have {}', value, other_rows,
        if(shared = '', '', ' with ' || shared), others
    ) AS message
FROM rules.alone
WHERE printed_table IS NOT NULL
ORDER BY other_rows DESC, shared
