// How results of a search are ordered: pages that say how to do something first, the records of the project last.
// Numbers are Sphinx's own but for `score`; a result is [page, title, anchor, description, score, file].
var Scorer = {
  score: ([page, , , , points]) => {
    if (/^(CHANGELOG|benchmarks\/|docs\/contributing\/)/.test(page)) return points - 12;
    if (/^docs\/(tutorial|how-to)\//.test(page)) return points + 4;
    return points;
  },
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
