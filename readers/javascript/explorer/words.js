// What the owner of a release calls things; what nobody named is called by its name.

const POWERS = { mean: "", scale: "", variance: "²" };

/**
 * Return how names are written for people, and nowhere else: lines of code and files have the names.
 *
 * @param {Object} about - as `about-N.json` has it, checked by whoever made the page
 */
export function wordsOf(about = {}) {
  const found = (map, name) => (map && Object.hasOwn(map, name) ? map[name] : undefined);
  const statistic = (name) => found(about.statistics, name) ?? {};
  const keys = (column) => found(about.keys, column) ?? {};
  const calledKey = (column, key) => found(keys(column).values, key) ?? key;
  return {
    statistic: (name) => statistic(name).label ?? name,
    column: (name) => (keys(name).label ?? name) + (keys(name).unit ? ` (${keys(name).unit})` : ""),
    key: calledKey,
    /** A key with the name of its column, where it would say nothing alone; null where nothing is named. */
    cell: (column, key) => {
      if (calledKey(column, key) !== key) return calledKey(column, key);
      return keys(column).label === undefined ? null : `${keys(column).label} ${key}`;
    },
    /** What a number of a statistic is called, and its unit; null where the statistic has no label. */
    number(name, parameter, category) {
      const words = statistic(name);
      const own = found(words.parameters, parameter) ?? {};
      if (words.label === undefined && own.label === undefined) return null;
      const value = category === null ? "" : `, ${found(words.values, category) ?? category}`;
      const power = found(POWERS, parameter);
      return {
        title: (own.label ?? `${words.label}, ${parameter.replaceAll("_", " ")}`) + value,
        unit: own.unit ?? (words.unit === undefined || power === undefined ? "" : words.unit + power),
      };
    },
    value: (name, category) => found(statistic(name).values, category) ?? category,
  };
}
