// `build.mjs` replaces the import by the content of the file, a constant for each of its tables.
declare module "*/palette.toml" {
  type Colors = Record<string, string>;
  export const dark: Colors, dark_theme: Colors;
}

declare module "*/comparison.toml" {
  export const measures: { column: string; title: string; higher_is_better: boolean; test: string[]; excluded?: Record<string, string> }[];
  export const conditions: Record<string, string>;
  export const run: import("./nearest").Rules;
}
