export { ReleaseError } from "./errors.js";
export { readPublication } from "./publication.js";
export { readRelease, verifyRelease } from "./reading.js";
