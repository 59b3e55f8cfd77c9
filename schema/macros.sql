-- What the statements of this folder share: how a figure is written.

-- A double with as few digits as identify it, at most 12, without an exponent: 1489341, 0.00012.
CREATE OR REPLACE MACRO format_figure(x) AS
    CASE
        WHEN contains(format('{:.12g}', x), 'e') THEN rtrim(rtrim(format('{:.17f}', x), '0'), '.')
        ELSE format('{:.12g}', x)
    END;

-- Three significant digits, for ratios and estimates.
CREATE OR REPLACE MACRO round_figure(x) AS CAST(format('{:.3g}', x) AS DOUBLE);
CREATE OR REPLACE MACRO format_rounded(x) AS format_figure(round_figure(x));
