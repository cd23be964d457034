# Points of the mean and the spread of leaves, weighed by the evidence of the tree; as in the package.

.MANY_LEAVES <- 2000
.LEAST <- 3e-3

.weighed_points <- function(passer) {
  if (passer$population == "reciprocal") {
    return(list(points = matrix(0, 1, 2), weights = 1, log_evidence = .up(passer, c(0, 0))$log_evidence, error = 0))
  }
  of <- function(evidence) function(point) {
    prior <- .log_hyperprior(point)
    if (prior == -Inf) -Inf else prior + evidence(point)
  }
  of_tree <- of(function(point) .up(passer, point)$log_evidence)
  of_leaves <- of(function(point) .log_evidence_of_leaves(passer, point))
  is_released <- !is.null(passer$scale)
  mode <- .climbed(if (is_released) of_leaves else of_tree, .start(passer))
  if (is_released && passer$n_leaves > .MANY_LEAVES) .four_points(passer, of_leaves, mode) else .lattice(passer, of_tree, mode)
}

.start <- function(passer) {
  released <- Filter(Negate(is.null), passer$tree$values)
  size <- if (is.null(passer$tree$sizes)) passer$n_leaves else sum(passer$tree$sizes)
  c(log(max(sum(released[[length(released)]]), 1) / size), 0)
}

.four_points <- function(passer, of_leaves, mode) {
  away <- sqrt(2) * rbind(c(1, 0), c(-1, 0), c(0, 1), c(0, -1))
  points <- sweep(away %*% t(mode$factor), 2, mode$middle, `+`)
  rows <- seq_len(4)
  logs <- vapply(rows, function(at) of_leaves(points[at, ]), 0) + 1
  weights <- exp(logs - max(logs))
  volume <- max(logs) + log(mean(weights) * 2 * pi * abs(det(mode$factor)))
  weights <- weights / sum(weights)
  above <- vapply(rows, function(at) .up(passer, points[at, ])$log_evidence - .log_evidence_of_leaves(passer, points[at, ]), 0)
  list(
    points = points, weights = weights, log_evidence = volume + max(above) + log(sum(weights * exp(above - max(above)))),
    error = (4 * sum(weights^2) - 1) * sqrt(max(rowSums(mode$factor^2)))
  )
}

.lattice <- function(passer, of_tree, mode) {
  step <- if (passer$n_leaves <= 50) 1 else 1.5
  middle <- mode$middle
  factor <- mode$factor
  for (round in 1:4) {
    lattice <- step * factor
    found <- .flooded(function(place) of_tree(middle + as.vector(lattice %*% place)))
    weights <- exp(found$logs - max(found$logs))
    weights <- weights / sum(weights)
    points <- sweep(found$places %*% t(lattice), 2, middle, `+`)
    effective <- 1 / sum(weights^2)
    ideal <- 4 * pi / step^2
    if (0.5 * ideal < effective && effective < 2.5 * ideal) break
    middle <- as.vector(weights %*% points)
    centred <- sweep(points, 2, middle)
    factor <- t(chol(t(centred) %*% (weights * centred) + 0.09 * lattice %*% t(lattice)))
  }
  kept <- weights >= .LEAST * max(weights)
  is_black <- rowSums(found$places) %% 2 == 0
  list(
    points = points[kept, , drop = FALSE], weights = weights[kept] / sum(weights[kept]),
    log_evidence = max(found$logs) + log(sum(exp(found$logs - max(found$logs))) * abs(det(lattice))),
    error = (sum(weights[is_black]) - sum(weights[!is_black]))^2 + sum(weights[!kept])
  )
}

# Climb to a mode: it, and a factor of the inverse of the negative Hessian there.
.climbed <- function(log_density, middle) {
  factor <- diag(0.3, 2)
  height <- log_density(middle)
  h <- 0.3
  for (round in 1:25) {
    at <- function(i, j) log_density(middle + as.vector(factor %*% (h * c(i, j))))
    ends <- c(at(1, 0), at(-1, 0), at(0, 1), at(0, -1))
    mixed <- (at(1, 1) + at(-1, -1) - sum(ends) + 2 * height) / (2 * h^2)
    gradient <- c(ends[1] - ends[2], ends[3] - ends[4]) / (2 * h)
    curvature <- -matrix(c((ends[1] + ends[2] - 2 * height) / h^2, mixed, mixed, (ends[3] + ends[4] - 2 * height) / h^2), 2)
    bent <- eigen(curvature, symmetric = TRUE)
    values <- pmax(bent$values, 0.05)
    move <- as.vector(bent$vectors %*% (as.vector(t(bent$vectors) %*% gradient) / values))
    length <- sqrt(sum(move^2))
    move <- move * min(1, 4 / max(length, 1e-300))
    repeat {
      proposed <- middle + as.vector(factor %*% move)
      higher <- log_density(proposed)
      if (higher >= height || sqrt(sum(move^2)) < 1e-3) break
      move <- move / 2
    }
    wide <- factor %*% bent$vectors %*% diag(1 / sqrt(values))
    if (higher >= height) {
      middle <- proposed
      height <- higher
    }
    factor <- t(chol(wide %*% t(wide)))
    if (length < 0.3 && max(values) < 4 && min(values) > 0.25) break
  }
  list(middle = middle, factor = factor)
}

# Evaluate places of a lattice next to all that are not far below the highest.
.flooded <- function(log_density) {
  places <- matrix(0, 1, 2)
  logs <- log_density(c(0, 0))
  fresh <- 1
  while (length(fresh) && length(logs) < 400) {
    at <- fresh[which.max(logs[fresh])]
    fresh <- setdiff(fresh, at)
    if (logs[at] < max(logs) + log(.LEAST)) next
    for (step in list(c(1, 0), c(-1, 0), c(0, 1), c(0, -1))) {
      place <- places[at, ] + step
      if (any(places[, 1] == place[1] & places[, 2] == place[2])) next
      places <- rbind(places, place)
      logs <- c(logs, log_density(place))
      fresh <- c(fresh, length(logs))
    }
  }
  list(places = unname(places), logs = logs)
}
