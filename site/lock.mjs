// Leaves versions, hashes and licences in the lock file, and no address: any package index serves it. `npm run lock`.
import { readFile, writeFile } from "node:fs/promises";

const path = new URL("package-lock.json", import.meta.url);
const lock = JSON.parse(await readFile(path, "utf8"));
for (const entry of Object.values(lock.packages)) {
  delete entry.resolved;
  delete entry.funding;
}
await writeFile(path, `${JSON.stringify(lock, null, 2)}\n`);
