# The distribution of one parameter from its log density along a line, by panels of Gauss and Legendre.

.NODES <- 16
.LEFT_OUT <- 28
.TOLERANCE <- 1e-8
.MOST_PANELS <- 3000
# What may lie outside of limits, on either side, without being cut off: as in Python.
.NEGLIGIBLE_OUTSIDE <- 1e-4
.LEAST_WITHIN <- 1e-6

# Nodes and weights of a rule from the off-diagonal of its Jacobi matrix; weights add up to 1.
.rule <- function(off_diagonal) {
  size <- length(off_diagonal) + 1
  jacobi <- matrix(0, size, size)
  jacobi[cbind(seq_len(size - 1), 2:size)] <- off_diagonal
  parts <- eigen(jacobi + t(jacobi), symmetric = TRUE)
  list(nodes = rev(parts$values), weights = rev(parts$vectors[1, ]^2))
}
.legendre_rule <- function(size) .rule(seq_len(size - 1) / sqrt(4 * seq_len(size - 1)^2 - 1))

# Legendre polynomials of orders 0 to `most` at x: a column each.
.legendre <- function(x, most) {
  columns <- matrix(1, length(x), most + 1)
  columns[, 2] <- x
  for (order in 2:most) {
    columns[, order + 1] <- ((2 * order - 1) * x * columns[, order] - (order - 1) * columns[, order - 1]) / order
  }
  columns
}
.GAUSS <- .legendre_rule(.NODES)
# Coefficients of the expansion, by values at the nodes.
.EXPANSION <- t(.legendre(.GAUSS$nodes, .NODES - 1) * .GAUSS$weights) * (2 * seq_len(.NODES) - 1)

.LINES <- list(
  probability = list(
    value = function(t) stats::plogis(t), position = function(value) stats::qlogis(value),
    log_slope = function(t) .log_logistic(t) + .log_logistic(-t), ends = c(0, 1), growth = 0
  ),
  positive = list(value = exp, position = log, log_slope = function(t) t, ends = c(0, Inf), growth = 2)
)

.too_far <- function() .usage("prior and released values are too far apart to be resolved")

# `starts`: a row for each mode that there may be, `at` and `width`.
.distribution <- function(line, log_density, starts, ends = line$ends) {
  offsets <- sinh(seq(-5, 5, by = 0.5))
  grid <- sort(unique(as.vector(starts[, "at"] + outer(starts[, "width"], offsets))))
  values <- log_density(grid)
  add <- function(more) {
    more <- setdiff(more, grid)
    all <- c(grid, more)
    values <<- c(values, log_density(more))[order(all)]
    grid <<- sort(all)
  }
  for (round in 1:60) {
    highest <- which.max(values)
    top <- values[highest]
    if (!is.finite(top)) .too_far()
    # A mean and a variance weigh the upper tail of a rate by the rate and by its square.
    weighed <- values + line$growth * pmax(grid - grid[highest], 0)
    kept <- range(which(weighed >= top - .LEFT_OUT))
    size <- length(grid)
    if (kept[1] == 1) {
      add(grid[1] - (grid[size] - grid[1]) / 2^(2:0))
    } else if (kept[2] == size) {
      add(grid[size] + (grid[size] - grid[1]) / 2^(2:0))
    } else if (kept[2] - kept[1] < 6) {
      add(seq(grid[kept[1] - 1], grid[kept[2] + 1], length.out = 17))
    } else {
      break
    }
  }
  breaks <- grid[(kept[1] - 1):(kept[2] + 1)]
  .with_moments(line, log_density, top, breaks, ends)
}

.with_moments <- function(line, log_density, top, breaks, ends) {
  panels <- .resolve(log_density, breaks, top)
  panels$total <- sum(panels$mass)
  shares <- panels$values * outer(.GAUSS$weights, panels$length) / panels$total
  positions <- line$value(outer((.GAUSS$nodes + 1) / 2, panels$length) + rep(panels$start, each = .NODES))
  mean <- sum(shares * positions)
  list(
    line = line, log_density = log_density, top = top, panels = panels, ends = ends, mean = mean,
    sd = sqrt(sum(shares * (positions - mean)^2)), average = function(of) sum(shares * of(positions)),
    cumulative = c(0, cumsum(panels$mass)) / panels$total
  )
}

# Panels in which expansions of the density, over its top, are accurate.
.resolve <- function(log_density, breaks, top) {
  panel <- function(start, length) {
    at <- outer((.GAUSS$nodes + 1) / 2, length) + rep(start, each = .NODES)
    values <- matrix(exp(log_density(as.vector(at)) - top), nrow = .NODES)
    expansion <- .EXPANSION %*% values
    list(
      start = start, length = length, values = values, expansion = expansion, mass = length * expansion[1, ],
      error = length * (abs(expansion[.NODES, ]) + abs(expansion[.NODES - 1, ]))
    )
  }
  panels <- panel(breaks[-length(breaks)], diff(breaks))
  for (round in 1:60) {
    rough <- panels$error > .TOLERANCE * sum(panels$mass)
    if (!any(rough)) return(panels)
    if (length(rough) > .MOST_PANELS) break
    half <- panels$length[rough] / 2
    halves <- panel(c(panels$start[rough], panels$start[rough] + half), c(half, half))
    all <- Map(
      function(old, new) if (is.matrix(old)) cbind(old[, !rough, drop = FALSE], new) else c(old[!rough], new),
      panels, halves
    )
    order <- order(all$start)
    panels <- lapply(all, function(part) if (is.matrix(part)) part[, order, drop = FALSE] else part[order])
  }
  .usage("the posterior could not be resolved to eight digits")
}

# The mass of each panel up to y between -1 and 1.
.panel_mass <- function(panels, at, y) {
  polynomials <- .legendre(y, .NODES)
  orders <- seq_len(.NODES - 1)
  integrals <- cbind(y + 1, sweep(polynomials[, orders + 2, drop = FALSE] - polynomials[, orders, drop = FALSE], 2, 2 * orders + 1, "/"))
  panels$length[at] * rowSums(integrals * t(panels$expansion[, at, drop = FALSE])) / 2
}

.below <- function(distribution, values) {
  line <- distribution$line
  panels <- distribution$panels
  t <- line$position(pmin(pmax(values, line$ends[1]), line$ends[2]))
  at <- findInterval(t, panels$start)
  inside <- pmax(at, 1)
  y <- pmin(pmax(2 * (t - panels$start[inside]) / panels$length[inside] - 1, -1), 1)
  share <- distribution$cumulative[inside] + .panel_mass(panels, inside, y) / panels$total
  pmin(pmax(ifelse(at == 0, 0, share), 0), 1)
}

.quantiles <- function(distribution, shares) {
  panels <- distribution$panels
  at <- findInterval(shares, distribution$cumulative, all.inside = TRUE)
  wanted <- (shares - distribution$cumulative[at]) * panels$total
  low <- rep(-1, length(shares))
  high <- -low
  for (step in 1:52) {
    middle <- (low + high) / 2
    is_below <- .panel_mass(panels, at, middle) < wanted
    low <- ifelse(is_below, middle, low)
    high <- ifelse(is_below, high, middle)
  }
  distribution$line$value(panels$start[at] + panels$length[at] * (low + 1) / 2)
}

.densities <- function(distribution, values) {
  line <- distribution$line
  panels <- distribution$panels
  is_inside <- values > line$ends[1] & values < line$ends[2]
  t <- line$position(ifelse(is_inside, values, line$value(panels$start[1])))
  at <- pmax(findInterval(t, panels$start), 1)
  y <- 2 * (t - panels$start[at]) / panels$length[at] - 1
  is_inside <- is_inside & y >= -1 & y <= 1
  along <- rowSums(.legendre(ifelse(is_inside, y, 0), .NODES - 1) * t(panels$expansion[, at, drop = FALSE]))
  ifelse(is_inside, pmax(along, 0) / panels$total * exp(-line$log_slope(t)), 0)
}

# This distribution given that the parameter lies within limits; itself where next to nothing lies outside.
.within <- function(distribution, limits) {
  line <- distribution$line
  outside <- .below(distribution, limits)
  if (outside[1] <= .NEGLIGIBLE_OUTSIDE && 1 - outside[2] <= .NEGLIGIBLE_OUTSIDE) return(distribution)
  if (!(diff(outside) > .LEAST_WITHIN)) {
    .usage("prior and released values contradict what records within the bounds can have")
  }
  panels <- distribution$panels
  breaks <- c(panels$start, sum(panels$start[length(panels$start)], panels$length[length(panels$length)]))
  t <- line$position(pmax(limits, line$ends[1]))
  start <- max(t[1], breaks[1])
  end <- min(t[2], breaks[length(breaks)])
  breaks <- c(start, breaks[breaks > start & breaks < end], end)
  top <- max(distribution$log_density(breaks), distribution$top + log(.LEAST_WITHIN))
  .with_moments(line, distribution$log_density, top, breaks, c(max(limits[1], line$ends[1]), min(limits[2], line$ends[2])))
}

# Central intervals, and the shortest, as Python has them.
.interval <- function(distribution, mass, kind) {
  if (kind == "central") return(.quantiles(distribution, c((1 - mass) / 2, (1 + mass) / 2)))
  below <- (1 - mass) * sin((0:16) * pi / 32)^2
  low <- c(distribution$ends[1], .quantiles(distribution, below[-1]))
  high <- c(.quantiles(distribution, below[-17] + mass), distribution$ends[2])
  widths <- high - low
  # From an end of the range an interval may be longer by a hundredth than the shortest.
  is_near <- function(at) is.finite(widths[at]) && widths[at] <= 1.01 * min(widths)
  # What is flat all over has no shortest interval, and gets the central one.
  at <- if (is_near(1) && is_near(17) && is_near(9)) 9 else if (is_near(1)) 1 else if (is_near(17)) 17 else which.min(widths)
  c(low[at], high[at])
}
