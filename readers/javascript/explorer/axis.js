// Which part of the axis a picture shows.

/** Where the posteriors of a picture lie, with some room beside them. */
export function aroundPosteriors(laws, support) {
  const low = Math.min(...laws.map((law) => law.quantile(0.001)));
  const high = Math.max(...laws.map((law) => law.quantile(0.999)));
  return within([low - (high - low) * 0.3, high + (high - low) * 0.3], support);
}

/** A range in which a prior is seen as a whole, posteriors included. */
export function aroundPrior(priorDensity, laws, support) {
  const narrow = aroundPosteriors(laws, support);
  if (support[0] === 0 && support[1] === 1) return support;
  const centre = laws[0].mean;
  const scale = laws[0].sd || 1;
  const nodes = Array.from({ length: 3001 }, (_, index) => centre + scale * Math.sinh((index - 1500) / 60));
  const possible = nodes.filter((node) => node > support[0] && node < support[1]);
  const densities = priorDensity(possible);
  const masses = possible.map((node, index) => (index === 0 ? 0 : (node - possible[index - 1]) * densities[index]));
  const total = masses.reduce((sum, mass) => sum + (Number.isFinite(mass) ? mass : 0), 0);
  if (!(total > 0)) return narrow;
  const [low, high] = [0.01, 0.98].map((share) => {
    let sum = 0;
    return possible.find((_, index) => (sum += Number.isFinite(masses[index]) ? masses[index] : 0) >= share * total);
  });
  return within([Math.min(low, narrow[0]), Math.max(high, narrow[1])], support);
}

/** The same range, or as much more as shows an interval with some room beside it. */
export function reaching([low, high], [first, last], support) {
  const room = (last - first) * 0.2;
  return within([Math.min(low, first - room), Math.max(high, last + room)], support);
}

/** Keep a range while what is wanted still fits well: curves shall move, not the axis below them. */
export function settled(shown, wanted) {
  if (shown === null) return wanted;
  const fits = wanted[0] >= shown[0] && wanted[1] <= shown[1];
  return fits && wanted[1] - wanted[0] > (shown[1] - shown[0]) / 3 ? shown : wanted;
}

/** Points at which curves are drawn. */
export function pointsOf([low, high], size = 600) {
  return Array.from({ length: size + 1 }, (_, index) => low + ((high - low) * index) / size);
}

/** The same points, moved off the ends of a support, where no density need be. */
export function inside(points, support) {
  const least = (points.at(-1) - points[0]) * 1e-6;
  return points.map((point) => Math.min(Math.max(point, support[0] + least), support[1] - least));
}

function within([low, high], support) {
  return [Math.max(low, support[0]), Math.min(high, support[1])];
}
