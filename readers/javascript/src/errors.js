/** What a release, a prior or a question breaks: `code` for programs, `message` for people. */
export class ReleaseError extends Error {
  /**
   * @param {string} code One of `manifest`, `file`, `signature`, `withdrawn`, `about`, `statistic`, `cell`, `prior`, `method`,
   *   `clipping`, `resolution`, `usage`.
   * @param {string} message Which rule, at which place, and what to do; at most 500 characters.
   */
  constructor(code, message) {
    super(message.length > 500 ? `${message.slice(0, 497)}...` : message);
    this.name = "ReleaseError";
    this.code = code;
  }
}

/** A name from someone else's spec, as it may be shown: one line, cut, without control characters. */
export function shown(text) {
  const plain = String(text).replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g, "?");
  return plain.length > 80 ? `${plain.slice(0, 77)}...` : plain;
}
