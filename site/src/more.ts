// Views that are loaded when they are opened. They share Preact with the page (`shared.ts`).
export { Charts } from "./charts";
export { Cite } from "./cite";
export { Claims } from "./claims";
export { Emulator } from "./emulator";
export { Microbenchmarks } from "./microbenchmarks";
export { OwnRun } from "./run";
export { Sql } from "./sql";
