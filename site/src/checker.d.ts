// The checker that each release has, of which the page uses what follows one figure.
declare module "*/checker.mjs" {
  export function readSource(file: string, sha256: string, bytes: Uint8Array): Promise<Map<string, string>>;
  export function follow(line: object, cells: Map<string, string>): void;
}
