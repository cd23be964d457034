# A walk over the ordered bins of a histogram with a state of no records, on a grid of log intensities; as in the package.

.STEPS <- c(0.05, 0.1, 0.2, 0.4, 0.8)

# The log chance of a released value given the mean of the Poisson count below the noise, r = 1 / scale.
.log_emission <- function(mean, y, r) {
  constant <- log(tanh(r / 2))
  # A law of which next to nothing is at y and below, or above, has a log of that chance.
  below <- if (y < 0) -Inf else constant - r * y + mean * expm1(r) + stats::ppois(y, mean * exp(r), log.p = TRUE)
  above <- constant + r * y + mean * expm1(-r) + stats::ppois(max(y, -1), mean * exp(-r), lower.tail = FALSE, log.p = TRUE)
  .log_add(below, above)
}

# Points, and emissions of a bin: averaged over places in the interval of each point; divided by the largest.
.bin_emission <- function(positions, spacing, width, y, r) {
  b <- 1 / r
  mean <- width * exp(positions)
  logs <- .log_emission(mean, y, r)
  wide <- sqrt(mean + 2 * b^2) / mean
  reach <- 9 * sqrt(mean + max(y, 0)) + 40 * b + 1
  half <- exp(spacing / 2)
  wanted <- ifelse(mean * half > y - reach & mean / half < y + reach, spacing / (0.4 * wide), 0)
  places <- vector("list", length(mean))
  few <- c(4, 16, 64, 256, 1024)
  for (at in which(wanted > 1)) {
    number <- few[min(sum(few < wanted[at]) + 1, length(few))]
    inner <- .log_emission(mean[at] * exp(((seq_len(number) - 0.5) / number - 0.5) * spacing), y, r)
    ends <- cumsum(exp(inner - max(inner)))
    logs[at] <- max(inner) + log(ends[number] / number)
    places[[at]] <- ends / ends[number]
  }
  logs <- c(logs, log(tanh(r / 2)) - r * abs(y))
  list(emission = exp(logs - max(logs)), largest = max(logs), places = places)
}

.bin_grid <- function(values, scale, widths) {
  most <- 8 * scale + pmax(values, 0)
  highest <- max(1 / max(widths), (most + 8 * sqrt(most) + 8) / widths)
  points <- ceiling(log(highest * max(widths) / 0.05) / 0.1 / 16) * 16
  spacing <- 0.1 * max(points / 320, 1)
  positions <- log(0.05 / max(widths)) + spacing * (seq_len(min(points, 320)) - 1)
  names <- paste(format(widths, digits = 17), values)
  first <- which(!duplicated(names))
  bins <- lapply(first, function(bin) .bin_emission(positions, spacing, widths[bin], values[bin], 1 / scale))
  list(positions = positions, spacing = spacing, widths = widths, bins = bins[match(names, names[first])])
}

.transition <- function(step, spacing, points, stay, jumps) {
  gap <- abs(outer(seq_len(points), seq_len(points), `-`))
  ratio <- step / spacing
  normal <- if (ratio < 0.75) ifelse(gap == 0, 1 - ratio^2, ifelse(gap == 1, 0.5 * ratio^2, 0)) else exp(-0.5 * (gap / ratio)^2)
  jump <- exp(-gap * spacing / 1.5)
  inner <- stay * ((1 - jumps) * normal / rowSums(normal) + jumps * jump / rowSums(jump))
  rbind(cbind(inner, 1 - stay), c(rep((1 - stay) / points, points), stay))
}

.kernels <- function(steps) {
  # Of columns: the share of steps that are jumps, and the chance that the state of no records is kept.
  kinds <- data.frame(jumps = c(0.05, 0.05, 0.2, 0.2, 0.5), stay = c(0.98, 0.998, 0.98, 0.998, 0.5))
  every <- merge(data.frame(step = steps), kinds)
  lapply(seq_len(nrow(every)), function(at) as.list(every[at, ]))
}

.first_state <- function(states) c(rep(0.5 / (states - 1), states - 1), 0.5)

.forward <- function(emissions, matrix) {
  expected <- .first_state(nrow(matrix))
  alphas <- vector("list", length(emissions))
  log <- 0
  for (bin in seq_along(emissions)) {
    alpha <- expected * emissions[[bin]]
    mass <- max(sum(alpha), 1e-300)
    alphas[[bin]] <- alpha / mass
    log <- log + base::log(mass)
    expected <- as.vector(alphas[[bin]] %*% matrix)
  }
  list(alphas = alphas, log = log)
}

# States of all bins, a row for each draw.
.backward <- function(alphas, matrix, count) {
  last <- length(alphas)
  paths <- matrix(0L, count, last)
  states <- function(weights, n) findInterval(stats::runif(n) * sum(weights), cumsum(weights)) + 1L
  paths[, last] <- states(alphas[[last]], count)
  for (bin in rev(seq_len(last - 1))) {
    for (after in unique(paths[, bin + 1])) {
      rows <- which(paths[, bin + 1] == after)
      paths[rows, bin] <- states(alphas[[bin]] * matrix[, after], length(rows))
    }
  }
  paths
}

# Expected counts of a bin, in the intervals of their states.
.means_of <- function(grid, bin, states) {
  share <- stats::runif(length(states))
  places <- grid$bins[[bin]]$places
  for (state in unique(states[states <= length(places)])) {
    ends <- places[[state]]
    if (is.null(ends)) next
    rows <- which(states == state)
    share[rows] <- (findInterval(stats::runif(length(rows)), ends) + share[rows]) / length(ends)
  }
  ifelse(states > length(places), 0, grid$widths[bin] * exp(grid$positions[pmin(states, length(places))] + (share - 0.5) * grid$spacing))
}

# Counts below the noise given their means: of one of two Poisson laws, up to the released value or beyond.
.counts_of <- function(means, y, r) {
  counts <- numeric(length(means))
  rows <- which(means > 0)
  mean <- means[rows]
  below <- if (y < 0) rep(-Inf, length(mean)) else -r * y + mean * expm1(r) + stats::ppois(y, mean * exp(r), log.p = TRUE)
  above <- r * y + mean * expm1(-r) + stats::ppois(max(y, -1), mean * exp(-r), lower.tail = FALSE, log.p = TRUE)
  is_below <- log(stats::runif(length(mean))) < below - .log_add(below, above)
  log_share <- log(stats::runif(length(mean)))
  low <- mean[is_below] * exp(r)
  high <- mean[!is_below] * exp(-r)
  counts[rows[is_below]] <- stats::qpois(log_share[is_below] + stats::ppois(y, low, log.p = TRUE), low, log.p = TRUE)
  counts[rows[!is_below]] <- stats::qpois(
    log_share[!is_below] + stats::ppois(max(y, -1), high, lower.tail = FALSE, log.p = TRUE), high,
    lower.tail = FALSE, log.p = TRUE
  )
  counts
}
