// Views that are loaded when they are opened. They share Preact with the page (`shared.ts`).
export { Cite } from "./cite";
export { Microbenchmarks } from "./microbenchmarks";
export { OwnRun } from "./run";
