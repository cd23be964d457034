# Messages up and down a tree of counts at a point of the law of its leaves, (log mean, log spread), and the logit of the
# share of empty ones where there is one; as in the package.
# A tree is a list: parents (of all levels but the first, from 1 on), values, scales, sizes.

.REACH <- 12 - log(.TAIL)
.OUTLIERS <- 0.05
.ZERO_INFLATED <- "zero-inflated"
.RECIPROCAL <- "reciprocal"

.log_population <- function(population, counts, point, sizes = 1) {
  if (population == .RECIPROCAL) return(-log1p(counts))
  mean <- exp(point[1]) * sizes
  a <- max(exp(point[2]), 1e-3)^-2
  usual <- lgamma(counts + a) - lgamma(a) - lgamma(counts + 1) - a * log1p(mean / a) - counts * log1p(a / mean)
  if (population == "negative-binomial") return(usual)
  contaminated <- .log_add(log1p(-.OUTLIERS) + usual, log(.OUTLIERS) + log(mean) - log(counts + mean) - log(counts + mean + 1))
  if (population != .ZERO_INFLATED) return(contaminated)
  others <- stats::plogis(-point[3], log.p = TRUE) + contaminated
  ifelse(counts == 0, .log_add(stats::plogis(point[3], log.p = TRUE), others), others)
}

.log_hyperprior <- function(point) {
  if (point[2] > 100) return(-Inf)
  spread <- exp(point[2])
  of_share <- if (length(point) > 2) stats::dlogis(point[3], log = TRUE) else 0
  stats::dlogis(point[1], log(30), 3, log = TRUE) + 0.5 * log(2 / pi) - log(2) - 0.5 * (spread / 2)^2 + point[2] + of_share
}

# What passes have in common: leaves that differ, each once.
.passer <- function(tree, population) {
  depth <- length(tree$parents)
  n_leaves <- length(tree$parents[[depth]])
  scale <- tree$scales[[depth + 1]]
  released <- tree$values[[depth + 1]]
  values <- if (is.null(released)) numeric(n_leaves) else released
  bounds <- if (is.null(scale)) .bounds_from_above(tree) else pmax(values, 0) + ceiling(.REACH * scale)
  sizes <- if (is.null(tree$sizes)) rep(1, n_leaves) else tree$sizes
  names <- paste(values, bounds, format(sizes, digits = 17))
  first <- which(!duplicated(names))
  list(
    tree = tree, population = population, depth = depth, n_leaves = n_leaves, scale = scale,
    nodes = c(1, lengths(tree$parents)), values = values[first], bounds = bounds[first], sizes = sizes[first],
    key = match(names, names[first]), number = tabulate(match(names, names[first])),
    families = lapply(seq_along(tree$parents), function(level) split(seq_along(tree$parents[[level]]), tree$parents[[level]]))
  )
}

# A count that each leaf exceeds only if a noise above it exceeds its reach.
.bounds_from_above <- function(tree) {
  bounds <- Inf
  for (level in seq_along(tree$scales)) {
    if (level > 1) bounds <- bounds[tree$parents[[level - 1]]]
    if (!is.null(tree$scales[[level]])) {
      bounds <- pmin(bounds, pmax(tree$values[[level]], 0) + ceiling(.REACH * tree$scales[[level]]))
    }
  }
  bounds
}

.leaf_messages <- function(passer, point) {
  reach <- if (is.null(passer$scale)) 0 else ceiling(.REACH * passer$scale)
  lapply(seq_along(passer$values), function(at) {
    low <- if (is.null(passer$scale)) 0 else max(min(passer$values[at], passer$bounds[at]) - reach, 0)
    counts <- low:passer$bounds[at]
    logs <- .log_population(passer$population, counts, point, passer$sizes[at])
    if (!is.null(passer$scale)) logs <- logs - abs(counts - passer$values[at]) / passer$scale + log(tanh(0.5 / passer$scale))
    message <- .normalised(low, exp(logs - max(logs)))
    message$log_sum <- message$log_sum + max(logs)
    message
  })
}

.log_evidence_of_leaves <- function(passer, point) {
  sum(vapply(.leaf_messages(passer, point), `[[`, 0, "log_sum") * passer$number)
}

.up <- function(passer, point) {
  leaves <- .leaf_messages(passer, point)
  log_evidence <- sum(vapply(leaves, `[[`, 0, "log_sum") * passer$number)
  parts <- Map(function(key, node) c(leaves[[key]], list(node = node)), passer$key, seq_along(passer$key))
  levels <- list()
  for (level in rev(seq_len(passer$depth))) {
    below <- parts
    value <- passer$tree$values[[level]]
    scale <- passer$tree$scales[[level]]
    sums <- list()
    parts <- list()
    for (node in seq_len(passer$nodes[level])) {
      added <- .added(below[passer$families[[level]][[node]]])
      log_evidence <- log_evidence + added$log_sum
      sums[[node]] <- added$part
      message <- added$part[c("low", "weights")]
      if (!is.null(scale)) {
        noisy <- .with_noise(message$low, message$weights, value[node], scale)
        message <- .normalised(message$low, noisy$weights)
        log_evidence <- log_evidence + message$log_sum + noisy$highest
      }
      parts[[node]] <- c(message[c("low", "weights")], list(node = node))
    }
    levels[[level]] <- list(nodes = below, sums = sums)
  }
  list(log_evidence = log_evidence, root = parts[[1]], levels = levels)
}

# The marginals of every level: chances on windows.
.down <- function(passer, upward) {
  outside <- list(rep(1, length(upward$root$weights)))
  messages <- list(upward$root)
  marginals <- list(list(.node_marginal(upward$root, outside[[1]])))
  for (level in seq_len(passer$depth)) {
    nodes <- upward$levels[[level]]$nodes
    below <- vector("list", length(nodes))
    scale <- passer$tree$scales[[level]]
    for (node in seq_along(upward$levels[[level]]$sums)) {
      sum <- upward$levels[[level]]$sums[[node]]
      said <- .placed(messages[[node]]$low, outside[[node]], sum$low, length(sum$weights))
      if (!is.null(scale)) said <- .with_noise(sum$low, said, passer$tree$values[[level]][node], scale)$weights
      waiting <- list(list(sum, .at_most_one(said)))
      while (length(waiting)) {
        part <- waiting[[length(waiting)]][[1]]
        weights <- waiting[[length(waiting)]][[2]]
        waiting[[length(waiting)]] <- NULL
        if (is.null(part$left)) {
          below[[part$node]] <- weights
        } else {
          both <- .divided(part, weights)
          waiting <- c(waiting, list(list(part$left, both[[1]]), list(part$right, both[[2]])))
        }
      }
    }
    marginals[[level + 1]] <- Map(.node_marginal, nodes, below)
    outside <- below
    messages <- nodes
  }
  marginals
}

.node_marginal <- function(message, outside) {
  joint <- message$weights * outside
  # So little is left of what either says that tails which were cut would be the answer.
  if (sum(joint) < 2e-10 * sqrt(sum(message$weights^2) * sum(outside^2))) {
    .usage("released levels of the tree contradict each other further than noise explains: no answer would be right")
  }
  list(low = message$low, weights = joint / sum(joint))
}
