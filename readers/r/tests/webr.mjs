// Rscript for machines without R: `node tests/webr.mjs SCRIPT ARGUMENT...` runs a script in R compiled to WebAssembly.
// WEBR names a folder with the npm packages webr and ws; nothing is fetched. The disk is mounted at /host.
import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const { WebR } = await import(pathToFileURL(join(resolve(process.env.WEBR ?? "node_modules"), "webr/dist/webr.mjs")));
const mounted = (word) => (existsSync(word) ? `/host${resolve(word)}` : word);
// An R that is given --file reads it before the disk is there.
const [script, ...words] = process.argv.slice(2).map(mounted);

const webR = new WebR({ RArgs: ["--no-save", "--no-restore", "--args", ...words, `--file=${script}`], interactive: false });
await webR.init();
await webR.FS.mkdir("/host");
await webR.FS.mount("NODEFS", { root: "/" }, "/host");
const shelter = await new webR.Shelter();
// `quit` would end the process without a word.
const program = `quit <- function(save, status = 0, ...) stop(structure(class = c("ended", "condition"), list(message = "", call = NULL, status = status)))
  tryCatch({ source("${script}", echo = FALSE); 0 }, ended = function(end) end$status, error = function(error) { cat(conditionMessage(error), "\n"); 1 })`;
const { result, output } = await shelter.captureR(program, { captureStreams: true });
for (const { data } of output) if (typeof data === "string") console.log(data);
process.exit(await result.toNumber());
