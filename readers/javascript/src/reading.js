/** From bytes to a checked release. */

import { readAbout } from "./about.js";
import { sha256 } from "./bytes.js";
import { decode } from "./canonical_json.js";
import { ReleaseError, shown } from "./errors.js";
import { LARGEST_MANIFEST, checkFiles, checkManifest } from "./manifest.js";
import { Release } from "./release.js";
import { checkSignature } from "./signature.js";

const LARGEST_WITHDRAWAL = 8 * 2 ** 10;

/**
 * Read a release, and check all that can be checked of it.
 *
 * @param {Uint8Array} manifestBytes
 * @param {Record<string, Uint8Array> | Map<string, Uint8Array>} files By the path that the manifest gives them.
 * @param {{publicKeys?: string[], statistics?: string[], withdrawn?: boolean}} [options] Public keys in PEM or
 *   base64 of 32 bytes, one of which must have signed; the statistics whose files are read and checked, by default
 *   all; whether a release is read that was withdrawn.
 * @returns {Promise<Release>}
 * @throws {ReleaseError}
 */
export async function readRelease(manifestBytes, files, { publicKeys, statistics, withdrawn } = {}) {
  if (!(manifestBytes instanceof Uint8Array) || manifestBytes.length > LARGEST_MANIFEST) {
    throw new ReleaseError("manifest", `the manifest is corrupt: it has more than ${LARGEST_MANIFEST} bytes, or is none`);
  }
  const manifest = decode(manifestBytes);
  if (manifest === null) throw new ReleaseError("manifest", "the manifest is corrupt: it is not in canonical form");
  checkManifest(manifest);
  const status = await checkSignature(manifest, publicKeys);
  const given = files instanceof Map ? files : new Map(Object.entries(files));
  const withdrawal = readWithdrawal(given.get("withdrawn.json"), manifest, manifestBytes);
  if (withdrawal !== null && withdrawn !== true) {
    throw new ReleaseError("withdrawn", `the release was withdrawn: ${shown(withdrawal.reason)}; withdrawn: true reads it all the same`);
  }
  const about = await readAbout(given, manifest, manifestBytes, publicKeys);
  const wanted = new Set(statistics ?? manifest.statistics.map(({ name }) => name));
  checkFiles(manifest, given, wanted);
  return new Release(manifest, given, status, wanted, withdrawal, about);
}

/** What stands beside a manifest whose release is faulty; null where nothing does. */
function readWithdrawal(bytes, manifest, manifestBytes) {
  if (bytes === undefined) return null;
  const found = bytes instanceof Uint8Array && bytes.length <= LARGEST_WITHDRAWAL ? decode(bytes) : null;
  const fits =
    found?.format_version === 1 &&
    found.release_id === manifest.release_id &&
    found.manifest_sha256 === sha256(manifestBytes) &&
    typeof found.reason === "string";
  if (!fits) throw new ReleaseError("withdrawn", "withdrawn.json stands beside the manifest, and is no withdrawal of this release");
  return { reason: found.reason, created: found.created };
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
