-- Each published row with its public configuration, where the match is exact or likely: a weak match, the nearest known
-- one, proves nothing. `command` names it for messages.
SELECT
    p.*, c.repository, c.tag, c.path, c.benchmark, c.latency_definition, c.match_confidence, c.note,
    c.data_fed, c.dataset_agrees, c.precision_flags, c.global_batch_from_config, c.replicas,
    c.micro_batch_size AS script_micro_batch, c.gradient_accumulation,
    format('{} of {}, {} {} ({} match)', c.benchmark, c.path, c.repository, c.tag, c.match_confidence)
        AS command
FROM rules.published p
JOIN detail.configurations c ON c.result_id = p.result_id
WHERE c.match_confidence IN ('exact', 'likely')
-- a result that its document prints twice may have two
QUALIFY row_number() OVER (
        PARTITION BY p.result_id ORDER BY c.result_document, c.result_table, c.result_row
    ) = 1
