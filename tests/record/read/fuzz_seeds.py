"""What the fuzzer starts from: small sound documents of each format, and the tokens of their
languages.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from reportlab import rl_config

from benchmarks.documents.recipes import Recipe, build_document

ROOT = Path(__file__).resolve().parents[3]
HTML_DIALECTS = (
    "plain",
    "word",
    "excel",
    "optional ends",
    "newsletter",
    "div grid",
)
PDF_DIALECTS = ("ruled", "booktabs", "unruled", "turned page", "cropped", "truetype")
MUTATIONS = ("footnote raised", "merged figures", "decimal comma")

LOG = "".join(
    f':::MLLOG {{"namespace": "", "time_ms": {time}, "event_type": "POINT", "key": "{key}",'
    f' "value": {value}, "metadata": {{"file": "a.py", "lineno": 7{more}}}}}\n'
    for time, key, value, more in (
        (1000, "init_start", "null", ""),
        (2000, "init_stop", "null", ""),
        (2000, "run_start", "null", ""),
        (2000, "global_batch_size", "256", ""),
        (3000, "eval_accuracy", "0.7591", ', "epoch_num": 3'),
        (602_000, "run_stop", "null", ', "status": "success"'),
    )
).encode()
PAGE_TEXT = """\
Model | Variant | Platform | SDK Version | Framework | Dataset | Batch Size | Precision | Throughput (items/sec)
BERT-Large | SL128 | Bow Pod16 | SDK 3.3 | PyTorch | Wikipedia | 8,192 | 16.16 | 44,059
GPT2 | | Bow-2000 | SDK 3.0 | PopART | | 4 | 16.32 | 1,920.5
"""
PAPER_TEXT = """Platform: C2
SDK version: 1.0.49
Table 1. Latency (milliseconds per batch)
Batch size
2
4
Words between.
Latency
1.36
1.94

Table 2. Throughput (images/second)
Batch size | Throughput
2 | 1474.16
4 | 2063.03
"""
CSV = """model,variant,platform,sdk_version,framework,dataset,batch_size,precision,throughput
BERT-Large,SL128,Bow Pod16,SDK 3.3,PyTorch,Wikipedia,"8,192",16.16,"44,059"
GPT2,"a ""b"", c",Bow-2000,SDK 3.0,PopART,,4,16.32,1920.5
"""
RECORD = """{
"run_id": "20261121T120000-abc", "backend": "null", "device": "cpu", "command_line": "ipu-results sweep",
"started_at": "2026-11-21T12:00:00+00:00", "finished_at": "2026-11-21T12:05:00+00:00",
"environment": {"cpu": "a", "cores": 2}, "versions": {"numpy": "2.0"}, "setup": {},
"plan": {"batches": [1, 2.5, 1e3, null, true]}, "model": {}, "images": {}, "notes": ["a", "b"]
}"""


def _make_html() -> list[bytes]:
    recipes = [
        Recipe(f"html: {name}", index % 2 == 0, 2, (), index)
        for index, name in enumerate(HTML_DIALECTS)
    ]
    recipes += [
        Recipe("html: plain", paper=True, rows=2, mutations=(name,), seed=1) for name in MUTATIONS
    ]
    return [build_document(recipe)[0] for recipe in recipes]


def _make_pdf() -> list[bytes]:
    """Make PDF files with and without compression: edits of bytes reach the text of the latter
    only.
    """
    seeds = []
    before = rl_config.pageCompression
    try:
        for compression in (0, 1):
            rl_config.pageCompression = compression
            recipes = [
                Recipe(f"pdf: {name}", True, 2, (), index)
                for index, name in enumerate(PDF_DIALECTS)
            ]
            seeds += [build_document(recipe)[0] for recipe in recipes[: 3 if compression else None]]
    finally:
        rl_config.pageCompression = before
    return seeds


def _make_text(*texts: str) -> Callable[[], list[bytes]]:
    return lambda: (
        [text.encode() for text in texts]
        + [texts[0].encode("utf-16"), texts[0].replace("\n", "\r\n").encode()]
    )


SEEDS: dict[str, Callable[[], list[bytes]]] = {
    "html": _make_html,
    "pdf": _make_pdf,
    "page-text": _make_text(
        PAGE_TEXT, PAGE_TEXT.replace(" | ", "\n"), PAGE_TEXT.replace(" | ", "\t")
    ),
    "paper-text": _make_text(PAPER_TEXT),
    "csv": _make_text(CSV),
    "sweep-record": _make_text(RECORD),
    "mlperf-log": lambda: [LOG, LOG.replace(b"\n", b"\r"), b"noise \xff\n" + LOG],
}


def make_seeds(name: str) -> list[bytes]:
    """Return sound documents of one reader, or of all of them for the one that chooses the reader."""
    if name == "dispatch":
        return [seed for other in SEEDS for seed in SEEDS[other]()]
    return SEEDS[name]()


WORDS = (
    "Model Variant Platform Batch\u00a0size Throughput Latency (ms) 10⁶ 1,234 0,5 ± * ² \u202e"
    " \ufeff \0 \x1b[2J é"
)
COMMON = [word.encode() for word in WORDS.split(" ")] + [
    b"\xff\xfe",
    b"\x80",
    *(bytes([byte]) for byte in b'\n\r\t ",|'),
]
TOKENS: dict[str, list[bytes]] = {
    "html": [
        *COMMON,
        b"<meta charset=utf-7>",
        *b"""
        <table> </table> <tr> </tr> <td> </td> <th> <thead> <tbody> <tfoot> <caption> <sup> <sub> <div> <p> <br> <!--
        --> <![CDATA[ ]]> <script> </script> <style> <template> <svg> <math> <select> <textarea> <plaintext> colspan=2
        rowspan=0 rowspan=999999999 colspan=-1 hidden style=display:none &nbsp; &#0; &#x110000; &amp <html> </html>
        <body> <base> <frameset> <xmp> <noscript> <ruby> <wbr> <input>
        """.split(),
    ],
    "pdf": [
        *COMMON,
        *b"""
        obj endobj stream endstream xref trailer startxref %%EOF << >> [ ] /Type /Page /Pages /Kids /Count /Length
        /Filter /FlateDecode /LZWDecode /ASCII85Decode /ASCIIHexDecode /RunLengthDecode /DecodeParms /Predictor /Columns
        /MediaBox /CropBox /Rotate /Font /ToUnicode /Encoding /Widths /Encrypt /Root /Prev BT ET Tj TJ Tf Tm Td q Q cm
        re f Do BI ID EI W n rg Tr Tc Tz 0 R null true -1 99999999999 1e38
        """.split(),
    ],
    "page-text": [*COMMON, b"|---|---|", b"```", b" | ", b"Platform", b"Bow Pod16"],
    "paper-text": [
        *COMMON,
        b"Table 2.",
        b"Batch size",
        b"Energy efficiency",
        b"Chips: 2",
        b"\x0c",
        b"2063.03",
        b"-\n",
    ],
    "csv": [*COMMON, b'""', b"'", b";", b"model,", b"\r\n", b"\0"],
    "sweep-record": [
        *COMMON,
        *b"""{ } [ ] : null true NaN Infinity 1e400 -0 "\\ud800" "\\u0000" "run_id" "notes" {"a":{"a": [[[[""".split(),
    ],
    "mlperf-log": [
        *COMMON,
        *b""":::MLLOG :::MLPv0.5 :::MLL "key": "time_ms": "value": run_start run_stop "metadata": {} null 1e308 -1
        "status": "aborted" "epoch_num": "samples_count": NaN Infinity "\\ud800" [[[[
        """.split(),
    ],
}
TOKENS["dispatch"] = [token for tokens in TOKENS.values() for token in tokens]
