// `build.mjs` replaces the import by the content of the file.
declare module "*/palette.toml" {
  const palette: Record<"validation_sets" | "ink" | "dark" | "dark_theme", Record<string, string>> & { series: string[] };
  export default palette;
}

declare module "*/comparison.toml" {
  const comparison: {
    measures: { column: string; title: string; unit: string; higher_is_better: boolean; test: string[]; excluded?: Record<string, string> }[];
    excluded: { blank: string[]; values: Record<string, string> };
    conditions: Record<string, string>;
    run: import("./nearest").Rules;
  };
  export default comparison;
}
