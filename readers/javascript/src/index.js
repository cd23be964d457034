export { ReleaseError } from "./errors.js";
export { readRelease, verifyRelease } from "./reading.js";
export { readPublication } from "./publication.js";
