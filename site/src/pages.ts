// Pages of the documentation that the site shows, as Markdown.
import cite from "../../docs/how-to/cite.md?raw";
import findings from "../../docs/explanation/findings.md?raw";
import glossary from "../../docs/explanation/glossary.md?raw";
import methodology from "../../docs/explanation/methodology.md?raw";
import mlperf from "../../docs/explanation/mlperf.md?raw";

window.__data = { ...window.__data, pages: { methodology, glossary, findings, mlperf, cite } };
