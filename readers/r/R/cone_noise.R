# Noise on a cone of moments: what a manifest may state of it, and its variance.

.is_on_cone <- function(entry) identical(entry$mechanism, "cone_noise")

# Rows and columns of the matrix whose entries the components are, in order.
.cone_pairs <- function(noise) {
  size <- noise$columns + 1
  pairs <- cbind(rep(seq_len(size), size:1), unlist(lapply(seq_len(size), function(i) i:size))) - 1
  if (noise$linear) pairs else pairs[pairs[, 1] > 0 | pairs[, 2] == 0, , drop = FALSE]
}

# One record changed by a unit asks for a rate of epsilon, a replaced one for half of it; more records for less.
.check_cone <- function(entry, replaces) {
  noise <- entry$cone_noise
  if (.measure(entry) != "epsilon") refuse("noise", "noise on a cone is of epsilon")
  right <- is.list(noise) && setequal(names(noise), c("rate", "columns", "linear", "steps")) &&
    .matches(.EXACT, noise$rate) && .is_count(noise$columns, 1) && is.logical(noise$linear) &&
    length(noise$linear) == 1 && .matches("^[1-9][0-9]*$", noise$steps)
  if (!right || !is.null(entry$scale) || !is.null(entry$l1_sensitivity)) refuse("noise", "it is no noise on a cone")
  if (nrow(.cone_pairs(noise)) != length(entry$components)) refuse("shape", "the cone has another number of components")
  rate <- exact(noise$rate)
  records <- exact(if (replaces) "2" else "1")
  if (!is_positive(rate) || !at_most(exact_product(records, rate), exact(entry$epsilon))) {
    refuse("noise", "there is less noise than epsilon asks for")
  }
}

.cone_variance <- function(noise, weights, columns) {
  if (!length(weights)) return(0)
  pairs <- .cone_pairs(noise)
  t <- nrow(pairs)
  m <- noise$columns + if (noise$linear) 2 else 1
  in_ball <- m / (m + 2)
  mean_of <- ifelse(pairs[, 1] == 0, 1, in_ball)
  fourth <- ifelse(pairs[, 1] == 0, 1, m / (m + 4))
  is_diagonal <- pairs[, 1] == pairs[, 2]
  variance <- ifelse(is_diagonal, t * (t + 1) * fourth - (t * mean_of)^2, t * (t + 1) * mean_of * in_ball / m)
  a <- numeric(t)
  a[columns] <- weights
  on_diagonal <- (a * mean_of)[is_diagonal]
  together <- t * (sum(on_diagonal)^2 - sum(on_diagonal^2))
  2 * (as_double(noise$steps)^2 / as_double(noise$rate))^2 * (sum(a^2 * variance) + together)
}
