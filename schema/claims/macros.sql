-- What recomputations of claims share.
-- Conditions are parted by semicolons; those of the machine compared with bear its name: 16.16;
-- mixed (A100).

-- The conditions of one side: of the machine that is named, or with '' of the claim's own.
CREATE OR REPLACE MACRO list_conditions(printed, side) AS [
    part FOR part IN string_split(printed, '; ')
    IF CASE side WHEN '' THEN NOT contains(part, '(') ELSE contains(part, '(' || side || ')') END
];

-- Whether a word is among the conditions of a side, or there are none.
CREATE OR REPLACE MACRO meets_condition(printed, side, word) AS
    coalesce(len(list_conditions(printed, side)), 0) = 0
    OR list_bool_or([starts_with(part, word) FOR part IN list_conditions(printed, side)]);

-- A framework without its version: TensorFlow of TensorFlow2.
CREATE OR REPLACE MACRO family(framework) AS regexp_replace(framework, '\d$', '');
