# The likelihood of a parameter given one sum behind noise: sums over N and the total A.
#
#     L = sum over N of prior(N) sum over A of p(A | N, t) exp(-|y1 - A| / b - |y2 - (R N - A)| / b)
#
# Between the kinks of the noise its weight is exponential in A, and a binomial or Poisson probability times e^(s A)
# is one of the parameter t + s on its line: the sums over A are tails, which R has for counts that are not whole too.
# Over N they are summed by rules that are exact for polynomials, in panels as long as the terms are smooth.

.WINDOW_LEFT_OUT <- 27
.MOST_N_PANELS <- 4000

# R warns where a probability is too small for a double. Its logarithm is then -Inf, which is what is meant here.
.log_beta_tail <- function(x, a, b, lower.tail = TRUE) {
  withCallingHandlers(stats::pbeta(x, a, b, lower.tail = lower.tail, log.p = TRUE), warning = function(warning) {
    if (grepl("underflow to -Inf", conditionMessage(warning), fixed = TRUE)) tryInvokeRestart("muffleWarning")
  })
}

# Successes among N trials: logs of P(A = k), P(A <= k), P(A >= k) by the logit t.
.BINOMIAL <- list(
  per_row = function(t) stats::plogis(t), variance_per_row = function(t) stats::plogis(t) * stats::plogis(-t),
  most = function(n) n,
  point = function(k, n, t) {
    # The smaller of p and 1 - p is what keeps its digits.
    .by_sign(t, function(p, at) stats::dbeta(p, k[at] + 1, n[at] - k[at] + 1, log = TRUE), function(q, at) {
      stats::dbeta(q, n[at] - k[at] + 1, k[at] + 1, log = TRUE)
    }) - log1p(n)
  },
  at_most = function(k, n, t) {
    .by_sign(t, function(p, at) .log_beta_tail(p, k[at] + 1, n[at] - k[at], lower.tail = FALSE), function(q, at) {
      .log_beta_tail(q, n[at] - k[at], k[at] + 1)
    })
  },
  at_least = function(k, n, t) {
    .by_sign(t, function(p, at) .log_beta_tail(p, k[at], n[at] - k[at] + 1), function(q, at) {
      .log_beta_tail(q, n[at] - k[at] + 1, k[at], lower.tail = FALSE)
    })
  }
)

.by_sign <- function(t, of_p, of_q) {
  result <- numeric(length(t))
  low <- t <= 0
  if (any(low)) result[low] <- of_p(stats::plogis(t[low]), low)
  if (!all(low)) result[!low] <- of_q(stats::plogis(-t[!low]), !low)
  result
}

# The sum of N Poisson counts, by the logarithm t of their rate.
.POISSON <- list(
  per_row = exp, variance_per_row = exp, most = function(n) rep(Inf, length(n)),
  point = function(k, n, t) stats::dgamma(n * exp(t), k + 1, log = TRUE),
  at_most = function(k, n, t) stats::pgamma(n * exp(t), k + 1, lower.tail = FALSE, log.p = TRUE),
  at_least = function(k, n, t) stats::pgamma(n * exp(t), k, log.p = TRUE)
)

# Log of the sum over A, of vectors of N >= 1, which need not be whole, and of t.
.sum_over_totals <- function(total, noisy, n, t) {
  has_two <- length(noisy$values) == 2
  first <- rep(noisy$values[1], length(n))
  other <- if (has_two) noisy$reach * n - noisy$values[2] else first
  tilt <- length(noisy$values) / noisy$scale
  most <- total$most(n)
  low <- pmin(first, other)
  high <- pmax(first, other)
  noise <- function(k, at) -(abs(first[at] - k) + if (has_two) abs(other[at] - k) else 0) / noisy$scale
  where <- function(is_there, of) {
    result <- rep(-Inf, length(n))
    at <- which(is_there)
    if (length(at)) result[at] <- of(at)
    result
  }
  # Outside of the kinks: the weight at the nearest total, and how much more the others add, as a tilted tail has it.
  below <- where(low > -1, function(at) {
    k <- pmin(low, most)[at]
    .outwards(total, total$at_most, k, n[at], t[at], tilt) + noise(k, at)
  })
  above <- where(high < most, function(at) {
    k <- pmax(high + 1, 0)[at]
    .outwards(total, total$at_least, k, n[at], t[at], -tilt) + noise(k, at)
  })
  if (!has_two) return(.log_add(below, above))
  between <- where(low < high & high > -1 & low < most, function(at) {
    from <- pmax(low, -1)[at]
    to <- pmin(high, most)[at]
    n <- n[at]
    t <- t[at]
    mean <- n * total$per_row(t)
    # Of two tails the smaller ones are subtracted.
    chance <- numeric(length(at))
    left <- to < mean
    right <- from > mean & !left
    middle <- !left & !right
    chance[left] <- .log_less(total$at_most(to[left], n[left], t[left]), total$at_most(from[left], n[left], t[left]))
    chance[right] <- .log_less(
      total$at_least(from[right] + 1, n[right], t[right]),
      .upper_tail(total, to[right] + 1, most[at][right], n[right], t[right])
    )
    rest <- exp(total$at_most(from[middle], n[middle], t[middle])) +
      exp(.upper_tail(total, to[middle] + 1, most[at][middle], n[middle], t[middle]))
    chance[middle] <- log1p(-pmin(rest, 1))
    chance + noise(to, at)
  })
  .log_add(.log_add(below, above), between)
}

.outwards <- function(total, tail, k, n, t, tilt) {
  total$point(k, n, t) + tail(k, n, t + tilt) - total$point(k, n, t + tilt)
}

.upper_tail <- function(total, k, most, n, t) {
  result <- rep(-Inf, length(k))
  at <- which(k < most + 1)
  result[at] <- total$at_least(k[at], n[at], t[at])
  result
}

# log(e^a - e^b), of a >= b.
.log_less <- function(a, b) ifelse(b < a, a + log1p(-exp(pmin(b - a, 0))), -Inf)

# A function of t: its log likelihood, up to a constant.
.likelihood <- function(total, noisy, n_prior) {
  none <- if (n_prior$low > 0) -Inf else n_prior$log(0) - sum(abs(noisy$values)) / noisy$scale
  low <- max(n_prior$low, 1)
  if (n_prior$high < low) return(function(t) rep(none, length(t)))
  term <- function(n, t) n_prior$log(n) + .sum_over_totals(total, noisy, n, t)
  function(t) {
    of_some <- if (low == n_prior$high) term(rep(low, length(t)), t) else .sum_over_n(total, noisy, term, low, n_prior$high, t)
    .log_add(of_some, rep(none, length(t)))
  }
}

.sum_over_n <- function(total, noisy, term, low, high, t) {
  decay <- noisy$scale / noisy$reach
  kinks <- .kinks(total, noisy, t)
  window <- .window(term, kinks$at, decay, low, high, t)
  position <- window$from
  sums <- numeric(length(t))
  for (panel in seq_len(.MOST_N_PANELS)) {
    active <- which(position <= window$to)
    if (!length(active)) return(window$top + log(sums))
    start <- position[active]
    # As long as the noise decays, as kinks are smooth or far, and as the prior of N bends.
    longest <- pmin(8 * decay, 0.7 * (start + 1))
    for (kink in seq_along(kinks$at)) {
      ahead <- kinks$at[[kink]][active] - start
      longest <- pmin(longest, pmax(3 * kinks$width[[kink]][active], 0.7 * abs(ahead)))
    }
    rules <- .rules_of(pmin(longest, high - start + 1), high - start + 1)
    n <- rep(start, each = .NODES) + rules$nodes
    terms <- matrix(term(pmin(as.vector(n), high), rep(t[active], each = .NODES)), nrow = .NODES)
    sums[active] <- sums[active] + colSums(rules$weights * exp(terms - rep(window$top[active], each = .NODES)))
    position[active] <- start + rules$length
  }
  .too_far()
}

# Numbers of records at which the noise has a kink: where both sums agree, and where the mean total meets each.
.kinks <- function(total, noisy, t) {
  per_row <- total$per_row(t)
  variance <- total$variance_per_row(t)
  rest <- noisy$reach - per_row
  values <- noisy$values
  width <- function(value, slope) sqrt(pmax(value, 1) * variance) / pmax(slope, 1e-300)
  second <- ifelse(rest > 0, values[2] / rest, -Inf)
  list(
    at = list(rep(sum(values) / noisy$reach, length(t)), values[1] / per_row, second),
    width = list(numeric(length(t)), width(values[1], per_row), ifelse(rest > 0, width(values[2], rest), Inf))
  )
}

# Between which numbers of records all but e^-27 of the sum lies: the terms are nearly concave.
.window <- function(term, kinks, decay, low, high, t) {
  offsets <- decay * c(-rev(2^(-1:10)), 0, 2^(-1:10))
  crossing <- outer(offsets, kinks[[1]], "+")
  others <- do.call(rbind, lapply(kinks[-1], function(kink) outer(decay * c(-64, -16, -4, -1, 0, 1, 4, 16, 64), kink, "+")))
  grid <- round(pmin(pmax(rbind(low, crossing, others, pmin(high, 2 * kinks[[1]] + 1e5)), low), high))
  size <- nrow(grid)
  times <- rep(t, each = size)
  grid <- matrix(grid[order(rep(seq_along(t), each = size), grid)], nrow = size)
  values <- matrix(term(as.vector(grid), times), nrow = size)
  top <- apply(values, 2, max)
  if (any(!is.finite(top))) .too_far()
  is_kept <- values >= rep(top, each = size) - .WINDOW_LEFT_OUT
  first <- max.col(t(is_kept), "first")
  last <- max.col(t(is_kept), "last")
  columns <- seq_along(t)
  list(top = top, from = grid[cbind(pmax(first - 1, 1), columns)], to = grid[cbind(pmin(last + 1, size), columns)])
}

# Lengths of panels that have a rule of their own: the largest below what is wanted. Shorter ones are summed as they are.
.LENGTHS <- unique(floor(.NODES * 1.4^(0:120)))
.kept_rules <- new.env()

.rules_of <- function(wanted, left) {
  at <- findInterval(wanted, .LENGTHS)
  lengths <- .LENGTHS[pmax(at, 1)]
  nodes <- matrix(seq_len(.NODES) - 1, .NODES, length(wanted))
  weights <- 1 * (nodes < rep(left, each = .NODES))
  for (length in unique(lengths[at > 1])) {
    rule <- .discrete_rule(length)
    columns <- which(lengths == length)
    nodes[, columns] <- rule$nodes
    weights[, columns] <- rule$weights
  }
  list(nodes = nodes, weights = weights, length = lengths)
}

# The rule of Gauss for sums over 0, ..., length - 1.
.discrete_rule <- function(length) {
  key <- format(length, digits = 17)
  if (is.null(.kept_rules[[key]])) {
    order <- seq_len(.NODES - 1)
    rule <- .rule(order / 2 * sqrt(length^2 - order^2) / sqrt(4 * order^2 - 1))
    .kept_rules[[key]] <- list(nodes = rule$nodes + (length - 1) / 2, weights = length * rule$weights)
  }
  .kept_rules[[key]]
}
