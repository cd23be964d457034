/** What a release, a prior or a question breaks. */
export declare class ReleaseError extends Error {
  readonly code:
    | "manifest" | "file" | "signature" | "withdrawn" | "about" | "statistic" | "cell" | "prior" | "method" | "clipping"
    | "resolution" | "usage";
}

export type Files = Record<string, Uint8Array> | Map<string, Uint8Array>;
export type Keys = Record<string, string | number>;

export interface ReadOptions {
  /** Public keys, PEM or 32 bytes in base64, one of which must have signed. */
  publicKeys?: string[];
  /** Whether a release is read that was withdrawn. */
  withdrawn?: boolean;
  /** The statistics whose files are read and checked; by default all. */
  statistics?: string[];
}

export interface Words {
  label?: string;
  unit?: string;
  digits?: number;
  description?: string;
}

export interface About {
  title?: string;
  description?: string;
  licence?: string;
  contact?: string;
  source?: string;
  statistics?: Record<string, Words & { values?: Record<string, string>; parameters?: Record<string, Words> }>;
  keys?: Record<string, { label?: string; unit?: string; description?: string; values?: Record<string, string> }>;
}

export interface Statistic {
  name: string;
  family: string;
  columns: string[];
  components: string[];
  /** Exact, as text: a decimal or a fraction. Of a release in rho it is not there. */
  epsilon?: string;
  /** The same of a release in rho. */
  rho?: string;
  /** Whether there are noisy components, or draws of a posterior sample. */
  mechanism: "discrete_laplace" | "cone_noise" | "exponential";
  /** Exact, as text: of discrete Laplace noise in lattice units; of a sample in 2^-20 nats; of cone noise none. */
  scale: string;
  /** Which rows or units parameters are of; null where every row counts. */
  rowsOf: string | null;
  /** Whether all that is stated of it was computed again from the plan; else its price, and its noise by the stated sensitivity. */
  isComputedAgain: boolean;
  /** Whether this reader has a posterior of it. */
  hasPosterior: boolean;
}

export interface TableRow {
  cell: Keys;
  quantity: string;
  category: string | null;
  component: string | null;
  labels: [string, string][];
  /** In the column's unit. */
  estimate: number;
  /** Standard deviation of its noise, in the column's unit. */
  noiseSd: number;
}

export interface SampleRow {
  cell: Keys;
  parameter: string;
  /** From 0 on in each cell. */
  draw: number;
  /** In the parameter's unit. */
  value: number;
}

export interface PosteriorOptions {
  prior?: string;
  nPrior?: string | number;
  where?: Keys;
  method?: "noise-aware" | "plug-in";
  /**
   * Whether parameters are of counts before clipping, modelled where that matters, or, by default, of records as the
   * bounds leave them: `by-evidence` and `ignored` are the same here.
   */
  clipping?: "by-evidence" | "modelled" | "ignored";
}

/** What is known of the parameters of one cell. A parameter may be left out where there is one. */
export interface Posterior {
  readonly parameters: string[];
  /** Canonical text. */
  readonly prior: string;
  readonly nPrior: string | null;
  readonly method: string;
  /** How records beyond the bounds were treated; null where there are none. */
  readonly clipping: "modelled" | "negligible" | "ignored" | null;
  /**
   * Whether the prior of the parameters and what was released disagree, as Python judges it; null where that is not
   * judged here (of Bernoulli, Poisson and categorical statistics it is). The prior of N is never judged.
   */
  readonly conflict: { quantities: string[]; tails: number[]; isSaid: boolean[]; lines: string[] } | null;
  mean(parameter?: string): number;
  sd(parameter?: string): number;
  quantile(p: number, parameter?: string): number;
  /** The kind of its intervals where none is asked for. */
  readonly defaultInterval: "central" | "highest-density";
  interval(mass: number, parameter?: string, kind?: "central" | "highest-density"): [number, number];
  probabilityBelow(value: number, parameter?: string): number;
  density(parameter: string | undefined, xs: ArrayLike<number>): Float64Array;
  priorDensity(parameter: string | undefined, xs: ArrayLike<number>): Float64Array;
}

/** Moments and the central interval of a count, or of a share of counts. */
export interface NodeRow {
  component: string;
  level: string;
  key: string;
  mean: number;
  sd: number;
  lower: number;
  upper: number;
  /** What was released of the node, and what was released right below it, added up: of rows of `table` alone. */
  released?: number;
  below?: number | null;
}

/** A seed, or a function that gives numbers from 0 to 1, below 1, as `Math.random`. */
export type Rng = string | number | (() => number);

export interface DrawOptions {
  mass?: number;
  draws?: number;
  rng?: Rng;
}

export interface DrawnNumbers {
  component: string;
  mean: number;
  sd: number;
  lower: number;
  upper: number;
}

/**
 * Counts at all nodes of a tree, or totals in the column's unit, inferred together: from 0 on, and they add up in every draw.
 */
export interface CountTree {
  readonly levels: string[];
  readonly keys: string[][];
  /** Of all levels but the first: where each node's parent stands in the level above. */
  readonly parents: number[][];
  /** What is counted: a tree of each, independent given what was released; of totals `total` alone. */
  readonly components: string[];
  readonly population: string;
  /** `steps` of the released lattice are one of the tree's, `size` in the column's unit; values were clipped at `upper`. */
  readonly unit: { steps: number; size: number; isTotal: boolean; upper: string | null };
  readonly logEvidence: number;
  /** What a chance may be off by, about: rounding, cut tails, and the rule over hyperparameters. */
  readonly error: number;
  readonly notes: string[];
  table(mass?: number, options?: { level?: string; component?: string }): NodeRow[];
  /** Chances of `low`, `low + step` and on. */
  counts(level: string, key: string, component?: string): { low: number; step: number; chances: Float64Array };
  draws(number: number, options?: { component?: string; rng?: Rng }): Record<string, Float64Array>[];
  /** What nodes hold together, by level their keys: each leaf below them once. */
  rollUp(nodes: Record<string, string[]>, options?: DrawOptions): DrawnNumbers[];
  share(level: string, options?: DrawOptions & { above?: string; component?: string }): NodeRow[];
  ratio(component: string, level: string, options?: DrawOptions & { of?: string[] }): NodeRow[];
  /** How probably each is among the `within` highest; of equal ones one is as probably the higher as the other. */
  rankProbabilities(
    level: string, options?: { within?: number; component?: string; draws?: number; rng?: Rng },
  ): { level: string; key: string; probability: number }[];
}

export interface TreeOptions {
  /** A key of every group beside the tree's. */
  where?: Keys;
  population?: "contaminated" | "zero-inflated" | "negative-binomial" | "reciprocal";
  /** Known sizes of the leaves. */
  sizes?: number[];
  /** Multiplications, above which a tree is refused with the code `resolution`; by default some seconds of them. */
  most?: number;
}

/** The interval holds the number with the probability `mass` or more, wherever in their bins values are. */
export interface Estimate {
  /** Not a number where it is refused. */
  mean: number;
  median: number;
  lower: number;
  upper: number;
  mass: number;
  /** Whether the interval spans half of what the number can be. */
  isRefused: boolean;
}

/** The column behind a histogram, in one cell. */
export interface Column {
  readonly of: "law" | "rows";
  readonly bins: { lower: Float64Array; upper: Float64Array; isAtom: boolean[] };
  readonly logEvidence: number;
  quantile(q: number, mass?: number): Estimate;
  median(mass?: number): Estimate;
  interquantileRange(a?: number, b?: number, mass?: number): Estimate;
  cdf(x: number, mass?: number): Estimate;
  tailShare(x: number, mass?: number): Estimate;
  mean(mass?: number, options?: { isEven?: boolean }): Estimate;
  gini(mass?: number): Estimate;
  n(mass?: number): Estimate;
  /** Of every bin. */
  density(mass?: number): Estimate[];
  distributionFunction(mass?: number): Estimate[];
  /** Of every bin, without draws. */
  expectedCounts(): { mean: number; sd: number }[];
}

export interface ColumnOptions {
  where?: Keys;
  of?: "law" | "rows";
  /** As `BinWalk(0.1, 0.4)`. */
  prior?: string;
  draws?: number;
  /** A seed, or a function that gives numbers from 0 to 1, below 1. */
  rng?: Rng;
  most?: number;
}

export interface Group {
  column: string;
  kind: string;
  keys: (string | number)[];
}

export interface Release {
  readonly name: string;
  readonly releaseId: string;
  readonly manifest: any;
  readonly signatureStatus: "checked" | "not_checked" | "unsigned";
  /** Why it was withdrawn; null where it was not. */
  readonly withdrawal: { reason: string; created: string } | null;
  /** What its owner calls things; empty where there are no words. Their text is others': escape it. */
  readonly about: About;
  readonly statistics: Statistic[];
  /** Of statistics that state no groups of their own, as `nCells` is. */
  readonly groups: Group[];
  readonly nCells: number;
  groupsOf(statistic?: string): Group[];
  cells(statistic?: string): Keys[];
  table(statistic: string, where?: Keys): TableRow[];
  /** The draws of a posterior sample; `table` and `posterior` refuse one, as there are no statistics in it. */
  samples(statistic: string, where?: Keys): SampleRow[];
  posterior(statistic: string, options?: PosteriorOptions): Posterior;
  /** Trees of counts or totals: `beside` are groups of which there is a tree for each key. */
  readonly trees: { name: string; levels: string[]; beside: string[] }[];
  tree(name: string, options?: TreeOptions): CountTree;
  treeInSlices(name: string, options?: TreeOptions, pause?: () => Promise<void>): Promise<CountTree>;
  column(statistic: string, options?: ColumnOptions): Column;
  columnInSlices(statistic: string, options?: ColumnOptions, pause?: () => Promise<void>): Promise<Column>;
  /** Whether all cells together contradict a prior that no cell alone may contradict; null where that is not judged. */
  conflict(statistic: string, options?: { prior?: string; nPrior?: string | number; most?: number }): {
    alternative: string; logBayesFactor: number; compared: number; isAgainst: boolean; lines: string[];
  } | null;
  conflictInSlices(
    statistic: string, options?: { prior?: string; nPrior?: string | number; most?: number }, pause?: () => Promise<void>,
  ): Promise<ReturnType<Release["conflict"]>>;
  /**
   * The same in slices of some milliseconds; `pause` is awaited between them, and what it throws ends the work.
   * `parameters` are worked out, all by default; others are when they are asked for, in one go.
   */
  posteriorInSlices(statistic: string, options?: PosteriorOptions & { parameters?: string[] }, pause?: () => Promise<void>): Promise<Posterior>;
}

export declare function readRelease(manifest: Uint8Array, files: Files, options?: ReadOptions): Promise<Release>;
export declare function verifyRelease(
  manifest: Uint8Array, files: Files, options?: ReadOptions,
): Promise<{ ok: boolean; problems: { code: string; message: string }[] }>;

export interface PublicationOptions {
  /** Public keys of publications, PEM or 32 bytes in base64, one of which must have signed. */
  publicKeys?: string[];
  /** The id that was asked for, as the folder is called; another is refused. */
  publicationId?: string;
  /** The names of the files that are read and checked; by default all. */
  names?: string[];
}

export interface PublishedFile {
  /** As `cancelled-draws.parquet`. */
  name: string;
  /** In the publication's folder. */
  path: string;
  role: "summaries" | "draws" | "card" | "part" | "likelihood";
  format: string;
  size: number;
  sha256: string;
  /** Null where it is no table. */
  rows: number | null;
}

/** A whole number beyond 2^53 is a `bigint`; null is what is missing. */
export type Value = string | number | bigint | boolean | null;
/** Numbers are a `Float64Array` where none is missing and all whole ones are below 2^53. */
export type Columns = Record<string, Float64Array | Value[]>;

export interface Publication {
  /** The hash of the request. */
  readonly publicationId: string;
  readonly title: string;
  readonly request: any;
  readonly manifest: any;
  readonly signatureStatus: "checked" | "not_checked" | "unsigned";
  readonly files: PublishedFile[];
  /** What summaries and draws are of: statistics, or a model of one. */
  readonly names: string[];
  /** The bytes of a file, by its name. */
  read(name: string): Uint8Array;
  /** A row for each cell, parameter and entry of it. The name may be left out where there is one. */
  summaries(name?: string): Record<string, Value>[];
  /** Columns, of one row for each draw, cell, parameter and entry of it. */
  draws(name?: string): Columns;
  /** Cells that borrow strength, each beside itself alone, their populations, and covariates where there are any. */
  pooled(name?: string): {
    cells: PooledCell[];
    populations: Record<string, Value>[];
    coefficients: Record<string, Value>[];
  };
  /** The likelihood of one parameter. */
  likelihood(name?: string): PublishedLikelihood;
}

export interface PooledNumbers {
  mean: number;
  sd: number;
  lower: number;
  upper: number;
}

export interface PooledCell extends PooledNumbers {
  keys: Record<string, Value>;
  parameter: string;
  /** The same cell, answered alone. */
  alone: PooledNumbers;
  /** How much of the answer is the cell's own, 0 to 1. */
  ownShare: number;
  /** How probable it is that the population does not fit the cell. */
  outside: number;
}

export interface PublishedLikelihood {
  readonly length: number;
  /** `error` is what values miss by, in nats, as far below the highest as `depth`. */
  readonly cells: { keys: Record<string, Value>; error: number; depth: number }[];
  /** The number of the cell with some keys. */
  cell(where?: Keys): number;
  /** But for a constant of the release. */
  logProb(cell: number, value: number): number;
  /** Under a conjugate prior, or a `Mixture` of such; of records as the bounds leave them. */
  posterior(cell: number | Keys, prior: string): Posterior;
}

export declare function readPublication(
  manifest: Uint8Array, files: Files, options?: PublicationOptions,
): Promise<Publication>;
