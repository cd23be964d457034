// Bundles the explorer into the one script that a release's page carries: `npm run build`.

import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = resolve(dirname(fileURLToPath(import.meta.url)), "..");
const target = resolve(here, process.argv[2] ?? "../../src/suffice/pages/assets/explorer.js");

const made = await build({
  absWorkingDir: here,
  entryPoints: ["explorer/main.js"],
  bundle: true,
  write: false,
  metafile: true,
  format: "iife",
  target: "es2022",
  charset: "ascii",
  legalComments: "none",
});

const sources = Object.keys(made.metafile.inputs).sort();
const text = made.outputFiles[0].text.replace(/[ \t]+$/gm, "");
mkdirSync(dirname(target), { recursive: true });
writeFileSync(target, `${header(sources)}${text}`);
console.log(`${relative(process.cwd(), target)}: ${text.length} characters of ${sources.length} sources`);

/** Name the sources and their hash, by which a bundle that is older than they are can be told without Node. */
function header(sources) {
  const hash = createHash("sha256");
  for (const source of sources) {
    const content = readFileSync(join(here, source));
    hash.update(`${source}\n${createHash("sha256").update(content).digest("hex")}\n`);
  }
  return [
    "// The explorer of a release's page. Made by `npm run build` in readers/javascript: change the sources, not this.",
    `// sources: ${sources.join(" ")}`,
    `// sha256: ${hash.digest("hex")}`,
    "",
  ].join("\n");
}
