-- What the statements of this folder share.

-- Where a row of results is, and a line of the file.
CREATE OR REPLACE MACRO locate_row(row_number) AS format('results.csv, row {}', row_number);
CREATE OR REPLACE MACRO locate_line(line) AS format('results.csv, line {}', line);

-- The first significant digits of a figure, rounded, without its power of ten.
CREATE OR REPLACE MACRO first_digits(x, digits) AS
    split_part(format('{:.{}e}', x, (digits - 1)::INTEGER), 'e', 1);

-- Half a unit of the last significant digit of a figure.
CREATE OR REPLACE MACRO half_unit(x) AS
    0.5 * pow(10, floor(log10(nullif(abs(x), 0))) - count_digits(x) + 1);

-- Whether a factor is about 1000, 1,000,000 or such a part: `off` powers of ten from it at most.
CREATE OR REPLACE MACRO is_thousandfold(factor, off) AS
    round(log10(factor) / 3) <> 0 AND abs(log10(factor) - 3 * round(log10(factor) / 3)) <= off;

-- The value of a pair of conditions, such as `data = synthetic; seed = 7`, '' without one.
CREATE OR REPLACE MACRO get_condition(conditions, name) AS
    regexp_extract('; ' || conditions, '; ' || name || ' = ([^;]*)', 1);

-- The numbers of a version, in the order in which versions are compared.
CREATE OR REPLACE MACRO split_version(version) AS
    list_transform(string_split(version, '.'), lambda part: try_cast(part AS BIGINT));

-- What a text says of an emulator. A network may simulate: of it, less counts.
CREATE OR REPLACE MACRO find_emulator(text) AS
    regexp_extract(text, '(?i)\b(?:emulat|simulat)\w*|\bpredicted\b|\bIPU_?Model\b');
