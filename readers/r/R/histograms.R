# What a histogram says of its column, as in the package: from draws of its bins' weights.

# Of the mean of a bin's values, in widths of the bin; and how far its density may rise inside, as a logarithm.
.PLACE_SD <- 0.1
.STEEPEST <- 6

# The posterior of one cell: grid, walks, and atoms, which are apart.
.histogram_posterior <- function(values, scale, bins, steps = .STEPS) {
  widths <- bins$upper - bins$lower
  is_atom <- widths == 0
  widths[is_atom] <- if (all(is_atom)) 1 else max(widths)
  grid <- .bin_grid(values, scale, widths)
  emissions <- lapply(grid$bins[!is_atom], `[[`, "emission")
  points <- length(grid$positions)
  kernels <- .kernels(steps)
  matrices <- lapply(kernels, function(kernel) .transition(kernel$step, grid$spacing, points, kernel$stay, kernel$jumps))
  logs <- vapply(matrices, function(matrix) .forward(emissions, matrix)$log, 0)
  atoms <- lapply(grid$bins[is_atom], function(bin) bin$emission * .first_state(points + 1))
  list(
    values = values, scale = scale, bins = bins, is_atom = is_atom, grid = grid, emissions = emissions, matrices = matrices,
    weights = exp(logs - max(logs)) / sum(exp(logs - max(logs))), atoms = atoms,
    log_evidence = max(logs) + log(mean(exp(logs - max(logs)))) + sum(vapply(grid$bins, `[[`, 0, "largest")) +
      sum(log(vapply(atoms, sum, 0)))
  )
}

# Draws of expected counts, or of counts of rows: a row for each draw.
.histogram_draws <- function(posterior, draws, of) {
  times <- as.vector(stats::rmultinom(1, draws, posterior$weights))
  states <- matrix(0L, draws, length(posterior$values))
  begin <- 0
  for (kernel in which(times > 0)) {
    matrix <- posterior$matrices[[kernel]]
    alphas <- .forward(posterior$emissions, matrix)$alphas
    rows <- begin + seq_len(times[kernel])
    states[rows, !posterior$is_atom] <- .backward(alphas, matrix, times[kernel])
    begin <- begin + times[kernel]
  }
  for (at in seq_along(posterior$atoms)) {
    weights <- posterior$atoms[[at]]
    states[, which(posterior$is_atom)[at]] <- findInterval(stats::runif(draws) * sum(weights), cumsum(weights)) + 1L
  }
  weights <- vapply(seq_along(posterior$values), function(bin) {
    means <- .means_of(posterior$grid, bin, states[, bin])
    if (of == "rows") .counts_of(means, posterior$values[bin], 1 / posterior$scale) else means
  }, numeric(draws))
  weights
}

#' The column behind a histogram, in one cell: quantiles, shares and the mean, from draws by R's own generator.
#'
#' @param release What [read_release()] gave.
#' @param statistic Its name.
#' @param where A list with the key of every group.
#' @param of `"law"`, what records come from, or `"rows"`, those that were counted.
#' @param draws How many.
#' @param steps Standard deviations of the walk's steps, in logarithms.
#' @return An object of class `suffice_column`; ask `column_quantile()` and its like.
release_column <- function(release, statistic, where = list(), of = c("law", "rows"), draws = 4000,
                           steps = c(0.05, 0.1, 0.2, 0.4, 0.8)) {
  of <- match.arg(of)
  entry <- .entry(release, statistic)
  if (.is_sampled(entry) || entry$family != "histogram") .usage(.shown(statistic), " is no histogram with noisy counts")
  if (!is.numeric(steps) || !length(steps) || any(!is.finite(steps) | steps <= 0)) .usage("steps of a walk are numbers above 0")
  cell <- .cell(release$keys[[statistic]], where)
  bins <- .bin_ends(entry$parameters$bins)
  values <- as.numeric(release$values[[statistic]][cell, ])
  if (length(values) != length(bins$lower)) refuse("shape", "a histogram has a count for each bin")
  posterior <- .histogram_posterior(values, as_double(entry$scale), bins, steps)
  .column(posterior, draws, of)
}

.column <- function(posterior, draws, of) {
  weights <- .histogram_draws(posterior, draws, of)
  totals <- rowSums(weights)
  widths <- pmax(posterior$bins$upper - posterior$bins$lower, 1e-300)
  shares <- weights / ifelse(totals > 0, totals, 1)
  # Of nothing nothing is known: as wide as bins are.
  shares[totals == 0, ] <- rep(widths / sum(widths), each = sum(totals == 0))
  # Drawn with the column: every question of it has the same places in bins.
  normal <- matrix(stats::rnorm(length(shares)), nrow(shares))
  structure(
    list(shares = shares, totals = totals, bins = posterior$bins, posterior = posterior, of = of, normal = normal),
    class = "suffice_column"
  )
}

# Draws and what they lie between, in a range `span` wide; what is not known within half of it has no estimate.
.estimated <- function(drawn, low, high, mass, span) {
  .check_shares(mass, "a mass")
  last <- length(drawn) - 1
  lower <- sort(low)[floor(last * (1 - mass) / 2) + 1]
  upper <- sort(high)[ceiling(last * (1 + mass) / 2) + 1]
  is_refused <- upper - lower > 0.5 * span
  data.frame(
    mean = if (is_refused) NA_real_ else mean(drawn), median = if (is_refused) NA_real_ else stats::median(drawn),
    lower = lower, upper = upper, refused = is_refused
  )
}

.span <- function(column) max(column$bins$upper) - column$bins$lower[1]

.column_quantiles <- function(column, q) {
  .check_shares(q, "a quantile's level")
  up_to <- t(apply(column$shares, 1, cumsum))
  n_bins <- ncol(up_to)
  bin <- pmin(rowSums(up_to < q) + 1, n_bins)
  at <- cbind(seq_along(bin), bin)
  lower <- column$bins$lower[bin]
  upper <- column$bins$upper[bin]
  inside <- pmin(pmax(1 - (up_to[at] - q) / pmax(column$shares[at], 1e-300), 0), 1)
  is_empty <- column$totals == 0
  list(
    drawn = lower + inside * (upper - lower), low = ifelse(is_empty, column$bins$lower[1], lower),
    high = ifelse(is_empty, column$bins$upper[n_bins], upper)
  )
}

#' The value below which, or at which, a share q of a column lies.
column_quantile <- function(column, q, mass = 0.95) {
  found <- .column_quantiles(column, q)
  .estimated(found$drawn, found$low, found$high, mass, .span(column))
}

#' The share of a column's values of x or more.
column_tail_share <- function(column, x, mass = 0.95) {
  parts <- .column_parts(column, x, FALSE)
  .column_shares(column, !(parts$below | parts$about), parts$about, parts$about - parts$part, mass)
}

#' The share of a column's values up to x.
column_cdf <- function(column, x, mass = 0.95) {
  parts <- .column_parts(column, x, TRUE)
  .column_shares(column, parts$below, parts$about, parts$part, mass)
}

# Which bins are below x, or up to it where atoms count; which hold it; what part of these is below.
.column_parts <- function(column, x, with_atom) {
  if (!is.numeric(x) || length(x) != 1 || !is.finite(x)) .usage("x is a finite number")
  bins <- column$bins
  width <- bins$upper - bins$lower
  holds_upper <- width == 0 | seq_along(width) == length(width)
  below <- bins$upper < x | (bins$upper == x & (with_atom | !holds_upper))
  about <- bins$lower < x & x <= bins$upper & !below
  list(below = below, about = about, part = ifelse(about, (x - bins$lower) / ifelse(width > 0, width, 1), 0))
}

.column_shares <- function(column, bins, about, part, mass) {
  low <- as.vector(column$shares %*% bins)
  drawn <- low + as.vector(column$shares %*% part)
  high <- low + as.vector(column$shares %*% about)
  .estimated(pmin(drawn, 1), pmin(low, 1), pmin(high, 1), mass, 1)
}

#' How far the quantile b is above the quantile a.
column_interquantile_range <- function(column, a = 0.25, b = 0.75, mass = 0.95) {
  first <- .column_quantiles(column, a)
  second <- .column_quantiles(column, b)
  if (a >= b) .usage("the first level is below the second")
  .estimated(second$drawn - first$drawn, pmax(second$low - first$high, 0), second$high - first$low, mass, .span(column))
}

#' The mean of a column as its bounds leave it, wherever in their bins values are; with `is_even` by a model of where.
column_mean <- function(column, mass = 0.95, is_even = FALSE) {
  bins <- column$bins
  is_empty <- column$totals == 0
  drawn <- rowSums(column$shares * .bin_places(column))
  low <- if (is_even) drawn else as.vector(column$shares %*% bins$lower)
  high <- if (is_even) drawn else as.vector(column$shares %*% bins$upper)
  .estimated(drawn, ifelse(is_empty, bins$lower[1], low), ifelse(is_empty, max(bins$upper), high), mass, .span(column))
}

#' Gini's index of a column as its bounds leave it; where in bins values are is modelled.
column_gini <- function(column, mass = 0.95) {
  bins <- column$bins
  if (bins$lower[1] < 0) .usage("Gini's index is of values of 0 or more")
  part <- column$shares * .bin_places(column)
  up_to <- t(apply(part, 1, cumsum))
  total <- pmax(up_to[, ncol(up_to)], 1e-300)
  between <- rowSums(column$shares * (2 * up_to - part))
  # Of values that are even in a bin.
  within <- as.vector(column$shares^2 %*% (bins$upper - bins$lower))
  drawn <- 1 - between / total + within / (6 * total)
  .estimated(drawn, drawn, drawn, mass, 1)
}

# Draws of the mean of every bin's values: where a density that rises or falls evenly between bins has it.
.bin_places <- function(column) {
  bins <- column$bins
  inner <- which(bins$upper > bins$lower)
  found <- matrix(bins$lower, nrow(column$shares), length(bins$lower), byrow = TRUE)
  if (!length(inner)) return(found)
  width <- (bins$upper - bins$lower)[inner]
  middles <- ((bins$lower + bins$upper) / 2)[inner]
  logs <- log(sweep(column$shares[, inner, drop = FALSE], 2, width, `/`))
  rises <- sweep(logs[, -1, drop = FALSE] - logs[, -length(inner), drop = FALSE], 2, diff(middles), `/`)
  rises[!is.finite(rises)] <- 0
  none <- matrix(0, nrow(logs), 1)
  before <- cbind(none, rises)
  after <- cbind(rises, none)
  slope <- (before + after) / pmax((before != 0) + (after != 0), 1)
  t <- pmin(pmax(sweep(slope, 2, width, `*`), -.STEEPEST), .STEEPEST)
  # The mean of exp(t u) on 0..1.
  place <- ifelse(abs(t) < 1e-3, 0.5, 1 / -expm1(-t) - 1 / t)
  inside <- pmin(pmax(place + .PLACE_SD * column$normal[, inner, drop = FALSE], 0), 1)
  found[, inner] <- sweep(sweep(inside, 2, width, `*`), 2, bins$lower[inner], `+`)
  found
}

#' The share up to the upper end of every bin, with a band.
column_distribution <- function(column, mass = 0.95) {
  up_to <- t(apply(column$shares, 1, cumsum))
  rows <- lapply(seq_len(ncol(up_to)), function(bin) .estimated(up_to[, bin], up_to[, bin], up_to[, bin], mass, Inf))
  cbind(data.frame(begins = column$bins$lower, ends = column$bins$upper), do.call(rbind, rows)[c("mean", "median", "lower", "upper")])
}

print.suffice_column <- function(x, ...) {
  cat("a column behind a histogram of ", length(x$bins$lower), " bins, of the ", x$of, "\n", sep = "")
  levels <- c(0.1, 0.5, 0.9)
  print(cbind(quantile = levels, do.call(rbind, lapply(levels, function(level) column_quantile(x, level)))), row.names = FALSE)
  invisible(x)
}
