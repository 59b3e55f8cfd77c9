// Removes download addresses from the lock file, so that any package index can serve it. Run by `npm run lock`.
import { readFile, writeFile } from "node:fs/promises";

const path = new URL("package-lock.json", import.meta.url);
const lock = JSON.parse(await readFile(path, "utf8"));
for (const entry of Object.values(lock.packages)) {
  delete entry.resolved;
  delete entry.funding;
}
await writeFile(path, `${JSON.stringify(lock, null, 2)}\n`);
