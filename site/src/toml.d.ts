// `build.mjs` replaces the import by the content of the file.
declare module "*/palette.toml" {
  const palette: Record<"validation_sets" | "ink" | "dark" | "dark_theme", Record<string, string>> & { series: string[] };
  export default palette;
}
