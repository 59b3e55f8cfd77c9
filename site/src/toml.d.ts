// `build.mjs` replaces an import by the content of the file, a constant for each of its tables.
declare module "*/palette.toml" {
  type Colors = Record<string, string>;
  export const dark: Colors, dark_theme: Colors;
}
declare module "*/menu.toml" {
  export const views: Record<string, string>;
}
