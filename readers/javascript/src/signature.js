/** Ed25519 signatures of manifests, by WebCrypto: where a browser has none, nothing passes for checked. */

import { decodeBase64, encodeText, sha256 } from "./bytes.js";
import { encode } from "./canonical_json.js";
import { ReleaseError } from "./errors.js";

const PEM = /^-----BEGIN PUBLIC KEY-----\s+([A-Za-z0-9+/=\s]+?)\s+-----END PUBLIC KEY-----\s*$/;
const PREFIX = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];

/** What is signed: its name for messages, and what stands before its canonical bytes, so that kinds never mix. */
export const RELEASE = { name: "release", prefix: "" };
export const PUBLICATION = { name: "publication", prefix: "suffice publication 1\n" };

/**
 * Refuse a manifest that none of the pinned keys signed.
 *
 * @param {object} manifest
 * @param {string[]} [publicKeys] PEM, or 32 bytes in base64; none: nothing is demanded.
 * @param {{name: string, prefix: string}} [kind]
 * @returns {Promise<"checked" | "not_checked" | "unsigned">}
 */
export async function checkSignature(manifest, publicKeys, kind = RELEASE) {
  const { signature } = manifest;
  if (publicKeys === undefined || publicKeys === null) return signature === null ? "unsigned" : "not_checked";
  const keys = publicKeys.map(rawKey);
  if (keys.length === 0 || keys.includes(null)) throw refused("a pinned public key is no Ed25519 key in PEM or base64");
  if (signature === null) throw refused(`the ${kind.name} is not signed, and a signature is demanded`);
  const candidates = keys.filter((key) => keyId(key) === signature.key_id);
  if (candidates.length === 0) throw refused(`the ${kind.name} is signed with the key ${signature.key_id}, which is not pinned`);
  const value = decodeBase64(signature.value);
  const message = encodeText(kind.prefix + encode({ ...manifest, signature: null }));
  for (const key of candidates) if (await fits(key, value, message)) return "checked";
  throw refused(`the ${kind.name}'s signature is wrong: ${signature.key_id} did not sign this manifest`);
}

/** The id of a public key: the first 16 hex digits of the SHA-256 of its 32 bytes. */
export function keyId(raw) {
  return sha256(raw).slice(0, 16);
}

function rawKey(text) {
  if (typeof text !== "string") return null;
  const pem = PEM.exec(text.trim());
  const bytes = decodeBase64(pem ? pem[1].replace(/\s/g, "") : text.trim());
  if (bytes === null) return null;
  if (!pem) return bytes.length === 32 ? bytes : null;
  return bytes.length === 44 && PREFIX.every((byte, i) => bytes[i] === byte) ? bytes.subarray(12) : null;
}

async function fits(key, value, message) {
  const subtle = globalThis.crypto?.subtle;
  try {
    const imported = await subtle.importKey("raw", key, { name: "Ed25519" }, false, ["verify"]);
    return await subtle.verify({ name: "Ed25519" }, imported, value, message);
  } catch {
    throw refused("cannot check signatures here: this browser has no Ed25519 in WebCrypto");
  }
}

function refused(message) {
  return new ReleaseError("signature", message);
}
