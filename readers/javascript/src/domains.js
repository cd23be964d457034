/** The keys of groups and categories: listed, of a range, or of consecutive periods. */

import { shown } from "./errors.js";
import { integer, refused } from "./plan_values.js";

const MOST_CELLS = 1e7;
const MOST_LISTED = 100000;
const DAY = 86400000;

export function group(column, domain) {
  const head = { column };
  if (Array.isArray(domain)) {
    const keys = keysOf(domain, column);
    return { size: keys.length, stated: { ...head, kind: "list", every: null, keys } };
  }
  if (domain?.range) {
    const [first, last] = domain.range.map((end) => integer(end, `groups.${shown(column)}`));
    const size = Number(last - first + 1n);
    if (!(size >= 1 && size <= MOST_CELLS)) throw refused(`groups.${shown(column)}`, "it is no range");
    return { size, stated: { ...head, kind: "range", first: String(first), last: String(last) } };
  }
  const keys = keysOf(domain, column);
  return { size: keys.length, stated: { ...head, kind: "period", every: domain.every, keys } };
}

/** The keys of a domain: as listed, of a range, or of consecutive periods. */
export function keysOf(domain, place) {
  const wrong = () => refused(shown(place), "it is no domain");
  if (Array.isArray(domain)) {
    if (domain.length === 0 || !domain.every((key) => typeof key === "string") || new Set(domain).size !== domain.length) {
      throw wrong();
    }
    return domain;
  }
  if (domain?.range) {
    const [first, last] = domain.range.map((end) => Number(integer(end, place)));
    if (!(last >= first && last - first < MOST_LISTED)) throw wrong();
    return Array.from({ length: last - first + 1 }, (_, i) => String(first + i));
  }
  if (typeof domain?.from !== "string" || typeof domain?.to !== "string") throw wrong();
  const keys = [];
  let start = periodStart(domain.from, domain.every);
  for (let key = domain.from; keys.length < MOST_LISTED; key = label(start, domain.every)) {
    if (start === null || label(start, domain.every) !== key) throw wrong();
    keys.push(key);
    if (key === domain.to) return keys;
    if (start > periodStart(domain.to, domain.every)) throw wrong();
    start = following(start, domain.every);
  }
  throw wrong();
}

/** The first day of a period, in milliseconds; null where a label is no period's. */
export function periodStart(text, every) {
  const parts = { year: /^(\d{4})$/, month: /^(\d{4})-(\d{2})$/, day: /^(\d{4})-(\d{2})-(\d{2})$/, week: /^(\d{4})-W(\d{2})$/ }[every];
  const found = parts?.exec(text);
  if (!found) return null;
  const [year, second = 1, third = 1] = found.slice(1).map(Number);
  if (every === "week") {
    const first = utc(year, 0, 4); // the fourth of January lies in the first week
    return first - ((new Date(first).getUTCDay() + 6) % 7) * DAY + (second - 1) * 7 * DAY;
  }
  return utc(year, second - 1, third);
}

/** The label of the period that begins on a day. */
export function label(start, every) {
  if (every === "week") {
    const thursday = new Date(start + 3 * DAY);
    const year = thursday.getUTCFullYear();
    const week = Math.floor((thursday.getTime() - utc(year, 0, 1)) / DAY / 7) + 1;
    return `${String(year).padStart(4, "0")}-W${String(week).padStart(2, "0")}`;
  }
  return new Date(start).toISOString().slice(0, { year: 4, month: 7, day: 10 }[every]);
}

function following(start, every) {
  if (every === "day" || every === "week") return start + (every === "day" ? 1 : 7) * DAY;
  const date = new Date(start);
  return every === "month"
    ? utc(date.getUTCFullYear(), date.getUTCMonth() + 1, 1)
    : utc(date.getUTCFullYear() + 1, 0, 1);
}

function utc(year, month, day) {
  const date = new Date(0);
  date.setUTCFullYear(year, month, day);
  return date.getTime();
}
