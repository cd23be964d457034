/** From bytes to a checked release. */

import { decode } from "./canonical_json.js";
import { ReleaseError } from "./errors.js";
import { LARGEST_MANIFEST, checkFiles, checkManifest } from "./manifest.js";
import { Release } from "./release.js";
import { checkSignature } from "./signature.js";

/**
 * Read a release, and check all that can be checked of it.
 *
 * @param {Uint8Array} manifestBytes
 * @param {Record<string, Uint8Array> | Map<string, Uint8Array>} files By the path that the manifest gives them.
 * @param {{publicKeys?: string[], statistics?: string[]}} [options] Public keys in PEM or base64 of 32 bytes, one
 *   of which must have signed; the statistics whose files are read and checked, by default all.
 * @returns {Promise<Release>}
 * @throws {ReleaseError}
 */
export async function readRelease(manifestBytes, files, { publicKeys, statistics } = {}) {
  if (!(manifestBytes instanceof Uint8Array) || manifestBytes.length > LARGEST_MANIFEST) {
    throw new ReleaseError("manifest", `the manifest is corrupt: it has more than ${LARGEST_MANIFEST} bytes, or is none`);
  }
  const manifest = decode(manifestBytes);
  if (manifest === null) throw new ReleaseError("manifest", "the manifest is corrupt: it is not in canonical form");
  checkManifest(manifest);
  const status = await checkSignature(manifest, publicKeys);
  const given = files instanceof Map ? files : new Map(Object.entries(files));
  const wanted = new Set(statistics ?? manifest.statistics.map(({ name }) => name));
  checkFiles(manifest, given, wanted);
  return new Release(manifest, given, status, wanted);
}

/**
 * Say what is wrong with a release, without throwing.
 *
 * @returns {Promise<{ok: boolean, problems: {code: string, message: string}[]}>}
 */
export async function verifyRelease(manifestBytes, files, options = {}) {
  try {
    await readRelease(manifestBytes, files, options);
    return { ok: true, problems: [] };
  } catch (error) {
    if (!(error instanceof ReleaseError)) throw error;
    return { ok: false, problems: [{ code: error.code, message: error.message }] };
  }
}
