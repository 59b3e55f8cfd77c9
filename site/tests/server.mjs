// A static server of a folder.
import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import { createServer } from "node:http";
import { createGzip } from "node:zlib";
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

/** Serves a folder on a free port; `replaced` is other content by path; `packed` as most hosts do. */
export async function serve(folder = DIST, replaced = {}, packed = false) {
  const server = createServer(async (request, response) => {
    const path = normalize(decodeURIComponent(new URL(request.url, "http://x").pathname));
    const type = { "content-type": TYPES[extname(path) || ".html"] ?? "application/octet-stream" };
    if (replaced[path] !== undefined) return response.writeHead(200, type).end(replaced[path]);
    const file = join(folder, path.endsWith("/") ? `${path}index.html` : path);
    const status = await stat(file).catch(() => null);
    if (!status?.isFile()) return response.writeHead(404).end();
    if (packed) {
      response.writeHead(200, { ...type, "content-encoding": "gzip", "cache-control": "max-age=31536000" });
      return createReadStream(file).pipe(createGzip()).pipe(response);
    }
    response.writeHead(200, { ...type, "content-length": status.size, "cache-control": "max-age=3600" });
    createReadStream(file).pipe(response);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = `http://127.0.0.1:${server.address().port}/`;
  return { address, close: () => new Promise((resolve) => server.close(resolve)) };
}
