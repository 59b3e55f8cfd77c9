// A static server as any other: files of a folder, nothing else.
import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import { createServer } from "node:http";
import { extname, join, normalize } from "node:path";
import { fileURLToPath } from "node:url";

export const DIST = fileURLToPath(new URL("../dist", import.meta.url));
const TYPES = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
  ".wasm": "application/wasm",
};

/** Serves a folder on a free port; `instead` gives other content for some paths. */
export async function serve(folder = DIST, instead = {}) {
  const server = createServer(async (request, response) => {
    const path = normalize(decodeURIComponent(new URL(request.url, "http://x").pathname));
    if (instead[path] !== undefined) {
      response.writeHead(200, { "content-type": TYPES[extname(path)] ?? "application/octet-stream" });
      return response.end(instead[path]);
    }
    const file = join(folder, path.endsWith("/") ? `${path}index.html` : path);
    const found = await stat(file).catch(() => null);
    if (!found?.isFile()) return response.writeHead(404).end();
    response.writeHead(200, { "content-type": TYPES[extname(file)] ?? "application/octet-stream", "content-length": found.size });
    createReadStream(file).pipe(response);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = `http://127.0.0.1:${server.address().port}/`;
  return { address, close: () => new Promise((resolve) => server.close(resolve)) };
}
