# Whether released quantities are where the prior of the parameters expects them, given the released n.
#
# As Python's `Posterior.conflict`: with m, v and w the mean, the variance and the third central moment of one
# record's part under a parameter, what is released of a quantity minus m times the released n is a sum of the
# records' deviations and of Laplace noise. Its tail is averaged over the prior. The prior of N is not judged.

# A tail below this, over the number of quantities, is a conflict.
.CONFLICT <- 1e-4

# Parameters of a prior, evenly spaced in the logit of its distribution function, with what each stands for.
.worlds_of <- function(distribution, moments) {
  logits <- seq(-26, 25.5, by = 0.5)
  weights <- stats::plogis(logits + 0.5) - stats::plogis(logits)
  c(moments(.quantiles(distribution, stats::plogis(logits + 0.25))), list(weight = weights / sum(weights)))
}

.moments_of_bernoulli <- function(p) list(mean = p, variance = p * (1 - p), third = p * (1 - p) * (1 - 2 * p))
.moments_of_poisson <- function(rate) list(mean = rate, variance = rate, third = rate)

# The two-sided tail of one quantity: `of_quantity` and `of_n` are the coefficients of the released components.
.conflict_tail <- function(worlds, of_quantity, of_n, scale, estimate, n) {
  noisy <- of_quantity != 0 | of_n != 0
  records <- max(n, 0) + scale * sqrt(2 * sum(of_n[noisy]^2))
  gaps <- estimate - worlds$mean * n
  direction <- if (sum(worlds$weight[gaps <= 0]) <= sum(worlds$weight[gaps >= 0])) 1 else -1
  tails <- vapply(seq_along(gaps), function(at) {
    coefficients <- abs(of_quantity[noisy] - worlds$mean[at] * of_n[noisy])
    # Laplace noise half a lattice step nearer makes tails of the discrete noise no smaller.
    .sum_tail(
      direction * gaps[at] - sum(coefficients) / 2, coefficients * scale, records * worlds$variance[at],
      direction * records * worlds$third[at]
    )
  }, 0)
  min(1, 2 * sum(worlds$weight * tails))
}

# The chance that Laplace numbers of these scales, and records of this variance and third moment, add to x or more: the
# inverse of their moments, integrated along a parabola through the saddle point.
.sum_tail <- function(x, scales, variance, third) {
  if (x < 0) return(1 - .sum_tail(-x, scales, variance, -third))
  unit <- max(scales, 1e-300)
  scales <- scales / unit
  x <- x / unit
  step <- if (variance > 0) max(third, 0) / variance / unit / 2 else 0
  variance <- variance / unit^2
  last <- 1 / max(step, 1)
  slope <- function(s) sum(2 * scales^2 * s / (1 - (scales * s)^2)) + variance * s / (1 - step * s)
  low <- -45
  high <- 33
  for (halving in 1:24) {
    saddle <- last * stats::plogis((low + high) / 2)
    if (slope(saddle) - x - 1 / saddle > 0) high <- (low + high) / 2 else low <- (low + high) / 2
  }
  saddle <- last * stats::plogis((low + high) / 2)
  curvature <- sum(2 * scales^2 * (1 + (scales * saddle)^2) / (1 - (scales * saddle)^2)^2) + variance / (1 - step * saddle)^2
  width <- 1 / sqrt(curvature + 1 / saddle^2)
  angles <- 0.15 + 0.3 * (0:36)
  line <- complex(real = saddle + width * 0.5 * (cosh(angles) - 1), imaginary = width * sinh(angles))
  along <- complex(real = width * 0.5 * sinh(angles), imaginary = width * cosh(angles))
  # The records: a gamma distribution of the same skewness, or a normal one.
  half <- variance / 2 * line^2
  turned <- step * line
  skewed <- if (step == 0) 1 else ifelse(Mod(turned) < 1e-3, 1 + 2 * turned * (1 / 3 + turned / 4), -2 * (log(1 - turned) + turned) / turned^2)
  value <- exp(half * skewed - line * x) / line * along
  for (scale in scales) value <- value / (1 - (line * scale)^2)
  min(max(sum(Im(value)) * 0.3 / pi, 0), 1)
}

# `worlds` by the place of a quantity. A list: quantities, tails, is_said, and lines to show.
.judged <- function(entry, values, public_n, worlds, prior) {
  components <- unlist(entry$components)
  coefficients <- function(quantity) {
    result <- stats::setNames(numeric(length(components)), components)
    result[names(quantity$coefficients)] <- vapply(quantity$coefficients, as_double, 0)
    unname(result)
  }
  names <- vapply(entry$quantities, `[[`, "", "name")
  share <- if (is.null(entry$partition_total)) 0 else 1 / as.numeric(entry$partition_total)
  of_n <- if (!is.null(public_n)) 0 * values else if ("n" %in% names) coefficients(entry$quantities[[match("n", names)]]) else share + 0 * values
  n <- if (is.null(public_n)) sum(of_n * values) else public_n
  others <- entry$quantities[names != "n"]
  tails <- vapply(seq_along(others), function(place) {
    of_quantity <- coefficients(others[[place]])
    estimate <- sum(of_quantity * values) +
      if (is.null(public_n)) 0 else as_double(others[[place]]$public_n_coefficient) * public_n
    .conflict_tail(worlds(place), of_quantity, of_n, as_double(entry$scale), estimate, n)
  }, 0)
  # Python judges n as well, and divides the threshold by all quantities.
  is_said <- tails * (length(tails) + is.null(public_n)) < .CONFLICT
  quantities <- vapply(others, function(quantity) {
    if (is.null(quantity$category)) quantity$name else sprintf("%s[%s]", quantity$name, quantity$category)
  }, "")
  list(quantities = quantities, tails = tails, is_said = is_said, lines = .conflict_lines(quantities, tails, is_said, prior))
}

.conflict_lines <- function(quantities, tails, is_said, prior) {
  names <- .shown(quantities[is_said])
  if (!length(names)) return(character(0))
  listed <- paste(names[seq_len(min(4, length(names)))], collapse = ", ")
  if (length(names) > 4) listed <- paste(listed, "and", length(names) - 4, "more")
  if (nchar(prior) > 160) prior <- paste0(substr(prior, 1, 160), "...")
  least <- min(tails[is_said])
  paste0(
    "conflict: the prior of the parameters, ", prior, ", and the released ", listed, " disagree: under that prior the ",
    "chance of values as far out is ", if (least < 1e-300) "below 1e-300" else formatC(least, digits = 2, format = "g"),
    " where it is least; the intervals rest on both, and one of the two is wrong"
  )
}
