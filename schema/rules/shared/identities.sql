-- Which network ran where a printed name stands for several: vocabulary `identities`.
FROM (VALUES
    {identities.identity: model_printed, platform, framework, model, parameters, severity, source}
) AS identity (model_printed, platform, framework, model, parameters, severity, source)
