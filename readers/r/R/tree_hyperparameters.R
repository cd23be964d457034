# Points of the mean and the spread of leaves, weighed by the evidence of the tree; as in the package.

.MANY_LEAVES <- 2000
.LEAST <- 3e-3

.weighed_points <- function(passer) {
  if (passer$population == .RECIPROCAL) {
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
  if (is_released && passer$n_leaves > .MANY_LEAVES) .few_points(passer, of_leaves, mode) else .lattice(passer, of_tree, mode)
}

# The log mean, a spread of 1, and of a population with empty leaves the logit of a fifth of them.
.start <- function(passer) {
  released <- Filter(Negate(is.null), passer$tree$values)
  size <- if (is.null(passer$tree$sizes)) passer$n_leaves else sum(passer$tree$sizes)
  c(log(max(sum(released[[length(released)]]), 1) / size), 0, if (passer$population == .ZERO_INFLATED) -1.4)
}

# Of a rule of degree three.
.few_points <- function(passer, of_leaves, mode) {
  d <- length(mode$middle)
  away <- sqrt(d) * .axes(d)
  points <- sweep(away %*% t(mode$factor), 2, mode$middle, `+`)
  rows <- seq_len(nrow(points))
  logs <- vapply(rows, function(at) of_leaves(points[at, ]), 0) + d / 2
  weights <- exp(logs - max(logs))
  volume <- max(logs) + log(mean(weights) * (2 * pi)^(d / 2) * abs(det(mode$factor)))
  weights <- weights / sum(weights)
  above <- vapply(rows, function(at) .up(passer, points[at, ])$log_evidence - .log_evidence_of_leaves(passer, points[at, ]), 0)
  list(
    points = points, weights = weights, log_evidence = volume + max(above) + log(sum(weights * exp(above - max(above)))),
    error = (2 * d * sum(weights^2) - 1) * sqrt(max(rowSums(mode$factor^2)))
  )
}

# A step along every axis, up and then down.
.axes <- function(d) rbind(diag(d), -diag(d))

.lattice <- function(passer, of_tree, mode) {
  step <- if (passer$n_leaves <= 50) 1 else 1.5
  middle <- mode$middle
  factor <- mode$factor
  for (round in 1:4) {
    lattice <- step * factor
    found <- .flooded(function(place) of_tree(middle + as.vector(lattice %*% place)), length(middle))
    weights <- exp(found$logs - max(found$logs))
    weights <- weights / sum(weights)
    points <- sweep(found$places %*% t(lattice), 2, middle, `+`)
    effective <- 1 / sum(weights^2)
    ideal <- (4 * pi / step^2)^(length(middle) / 2)
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
  d <- length(middle)
  factor <- diag(0.3, d)
  height <- log_density(middle)
  for (round in 1:25) {
    known <- .differences(function(step) log_density(middle + as.vector(factor %*% step)), height, d)
    bent <- eigen(known$curvature, symmetric = TRUE)
    values <- pmax(bent$values, 0.05)
    move <- as.vector(bent$vectors %*% (as.vector(t(bent$vectors) %*% known$gradient) / values))
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

# The gradient and the negative Hessian, in units of the factor.
.differences <- function(at, height, d) {
  h <- 0.3
  axes <- h * diag(d)
  up <- apply(axes, 1, at)
  down <- apply(-axes, 1, at)
  curvature <- diag(-(up + down - 2 * height) / h^2, d)
  for (i in seq_len(d)) {
    for (j in seq_len(i - 1)) {
      both <- axes[i, ] + axes[j, ]
      mixed <- at(both) + at(-both) - up[i] - down[i] - up[j] - down[j] + 2 * height
      curvature[i, j] <- curvature[j, i] <- -mixed / (2 * h^2)
    }
  }
  list(gradient = (up - down) / (2 * h), curvature = curvature)
}

# Evaluate places of a lattice next to all that are not far below the highest.
.flooded <- function(log_density, d) {
  most <- if (d == 2) 400 else 1500
  places <- matrix(0, 1, d)
  names <- paste(rep(0, d), collapse = " ")
  logs <- log_density(numeric(d))
  fresh <- 1
  while (length(fresh) && length(logs) < most) {
    at <- fresh[which.max(logs[fresh])]
    fresh <- setdiff(fresh, at)
    if (logs[at] < max(logs) + log(.LEAST)) next
    for (axis in seq_len(2 * d)) {
      place <- places[at, ] + .axes(d)[axis, ]
      name <- paste(place, collapse = " ")
      if (name %in% names) next
      places <- rbind(places, place)
      names <- c(names, name)
      logs <- c(logs, log_density(place))
      fresh <- c(fresh, length(logs))
    }
  }
  list(places = unname(places), logs = logs)
}
