/** What a manifest of format 1 must be: its form, its checksum, and what follows from its plan. */

import { encodeText, sha256 } from "./bytes.js";
import { encode } from "./canonical_json.js";
import { ReleaseError, shown } from "./errors.js";
import { fileSizes } from "./parquet.js";
import { groupsOf } from "./release.js";

const LARGEST = 24 * 2 ** 20;
const MOST_CELLS = 1e7;

/** Refuse a manifest that is damaged, or contradicts itself. */
export function checkManifest(manifest) {
  if (manifest?.format_version !== 1) throw corrupt("it is of another format than 1, which this reader reads");
  const blank = encodeText(encode({ ...manifest, checksum: null, signature: null }));
  if (blank.length > LARGEST) throw corrupt(`it has more than ${LARGEST} bytes`);
  if (manifest.checksum !== sha256(blank)) throw corrupt("its checksum does not fit");
  if (manifest.plan_hash !== sha256(encodeText(encode(manifest.plan)))) throw corrupt("plan_hash: it contradicts the plan");
}

/** Refuse files that are not those of the manifest; nothing of them is parsed before its hash is right. */
export function checkFiles(manifest, files, wanted) {
  const groups = groupsOf(manifest);
  manifest.files.forEach((file, i) => {
    if (!wanted.has(manifest.statistics[i].name)) return;
    const data = files.get(file.path);
    const name = shown(file.path);
    if (!(data instanceof Uint8Array)) throw new ReleaseError("file", `the file ${name} is missing`);
    if (data.length !== file.size) throw new ReleaseError("file", `the file ${name} has another size than the manifest states`);
    if (sha256(data) !== file.sha256) throw new ReleaseError("file", `the file ${name} is not the one of the manifest: its SHA-256 differs`);
    const [least, greatest] = fileSizes(manifest.statistics[i], groups);
    if (file.size < least || file.size > greatest) throw corrupt(`files.${i}.size: no file of this plan has that size`);
  });
  if (manifest.cells > MOST_CELLS) throw corrupt("cells: there are too many");
}

function corrupt(rule) {
  return new ReleaseError("manifest", `the manifest is corrupt: ${rule}`);
}
