# Posteriors of the probabilities of categories: all counts behind noise are latent, and so is N.
#
# Given the probability of one category, the other counts matter through their sum alone. The weight of that sum is a
# convolution of the others' noise, each count weighted as its Dirichlet prior has it: terms are positive, so that
# nothing cancels. What remains is a sum over one count and the sum of the others.

.COUNT_WINDOW <- 27
.LEAST_EDGE <- 1e-11
# Pairs of a count and a sum of the others; and products of all convolutions.
.MOST_PAIRS <- 6e6
.MOST_PRODUCTS <- 4e9

# Log of Gamma(a + c) / (Gamma(a) c!), without the difference of two large numbers.
.log_rising <- function(a, count) if (a == 1) 0 * count else -lbeta(a, count + 1) - log(a + count)

.scaled <- function(logs) exp(logs - max(logs))

# Of every row the convolution of all others: lists of `start` and `values`.
.others <- function(rows, name) {
  products <- 0
  joined <- function(a, b) {
    products <<- products + as.numeric(length(a$values)) * length(b$values)
    if (products > .MOST_PRODUCTS) .unresolved(name)
    if (length(a$values) < length(b$values)) return(joined(b, a))
    padded <- c(a$values, numeric(length(b$values) - 1))
    values <- stats::filter(c(numeric(length(b$values) - 1), padded), b$values, sides = 1)
    values <- as.vector(values)[-seq_len(length(b$values) - 1)]
    if (length(b$values) == 1) values <- a$values * b$values
    list(start = a$start + b$start, values = values / max(values))
  }
  none <- list(start = 0, values = 1)
  before <- Reduce(joined, rows[-length(rows)], none, accumulate = TRUE)
  after <- Reduce(joined, rev(rows[-1]), none, accumulate = TRUE)
  Map(joined, before, rev(after))
}

.unresolved <- function(name) {
  .usage(.shown(name), ": noise hides too many counts for this reader; a published posterior can be read")
}

# Weights of latent counts within windows that hold all but nothing of the posterior.
.latent_counts <- function(counts, scale, alpha, n_prior, name) {
  # Log of prior(N) N! / Gamma(sum of concentrations + N).
  log_of_n <- function(n) {
    result <- rep(-Inf, length(n))
    at <- n >= n_prior$low & n <= n_prior$high
    result[at] <- n_prior$log(n[at]) - .log_rising(sum(alpha), n[at])
    result
  }
  reach <- .COUNT_WINDOW * scale + 8
  repeat {
    rows <- Map(function(count, a) {
      start <- max(0, floor(count - reach))
      at <- start:max(ceiling(count + reach), ceiling(reach))
      list(start = start, values = .scaled(.log_rising(a, at) - abs(count - at) / scale))
    }, counts, alpha)
    rest <- .others(rows, name)
    latent <- list(rows = rows, rest = rest, log_of_n = log_of_n)
    if (all(unlist(Map(.holds_all, rows, rest, counts, list(log_of_n))))) return(latent)
    reach <- 2 * reach
  }
}

# Whether hardly any of the posterior lies at the ends of a row: some of its positions tell, as the weight is smooth.
.holds_all <- function(row, rest, count, log_of_n) {
  last <- length(row$values)
  kink <- min(max(round(count) - row$start + 1, 1), last)
  at <- c(1, kink, round(seq_len(16) * last / 16))
  logs <- outer(row$start + at - 1, rest$start + seq_along(rest$values) - 1, function(count, sum) log_of_n(count + sum))
  logs <- logs + log(row$values[at]) + rep(log(rest$values), each = length(at))
  weights <- rowSums(exp(logs - max(logs)))
  first <- if (row$start == 0) 0 else weights[1]
  first <= .LEAST_EDGE * max(weights) && weights[length(weights)] <= .LEAST_EDGE * max(weights)
}

# The log likelihood of one probability by its logit, the others integrated out under their prior.
.count_likelihood <- function(latent, counts, scale, alpha, n_prior, k, name) {
  row <- latent$rows[[k]]
  rest <- latent$rest[[k]]
  count <- row$start + seq_along(row$values) - 1
  others <- rest$start + seq_along(rest$values) - 1
  if (as.numeric(length(count)) * length(others) > .MOST_PAIRS) .unresolved(name)
  of_rest <- sum(alpha) - alpha[k]
  # The weights of pairs of a count and a sum of the others at one probability; at others they are worth powers of it.
  p <- (max(counts[k], 0) + 1) / (sum(pmax(counts, 0)) + 2)
  of_n <- outer(count, others, "+")
  logs <- matrix(stats::dbinom(count, of_n, p, log = TRUE), nrow = length(count))
  is_possible <- of_n >= n_prior$low & of_n <= n_prior$high
  logs[is_possible] <- logs[is_possible] + n_prior$log(of_n[is_possible])
  logs[!is_possible] <- -Inf
  logs <- logs - abs(counts[k] - count) / scale + rep(log(rest$values) - .log_rising(of_rest, others), each = length(count))
  steps_up <- function(t) stats::plogis(t, log.p = TRUE) - log(p)
  steps_down <- function(t) stats::plogis(-t, log.p = TRUE) - log1p(-p)
  at_once <- function(t) {
    centre <- stats::median(t)
    up <- steps_up(t) - steps_up(centre)
    down <- steps_down(t) - steps_down(centre)
    # Neighbouring positions share the exponentials of their pairs, as far as their powers are no infinite numbers.
    if (length(t) > 1 && max(abs(up)) * length(count) + max(abs(down)) * length(others) > 500) {
      half <- seq_len(length(t) %/% 2)
      return(c(at_once(t[half]), at_once(t[-half])))
    }
    shifted <- logs + (count - count[1]) * steps_up(centre) + rep((others - others[1]) * steps_down(centre), each = length(count))
    top <- max(shifted)
    weights <- exp(shifted - top)
    powers <- exp(outer(count - count[1], up))
    sums <- colSums(powers * (weights %*% exp(outer(others - others[1], down))))
    top + count[1] * steps_up(t) + others[1] * steps_down(t) + log(sums)
  }
  function(t) {
    if (length(t) == 0) return(numeric(0))
    unlist(lapply(split(t, (seq_along(t) - 1) %/% .NODES), at_once), use.names = FALSE)
  }
}

# The nearest counts, none below 0, with a known sum.
.on_simplex <- function(counts, n) {
  sorted <- sort(counts, decreasing = TRUE)
  shifts <- (cumsum(sorted) - n) / seq_along(sorted)
  pmax(counts - shifts[max(which(sorted > shifts))], 0)
}
