# Published likelihoods of one parameter: a log likelihood of each cell as polynomials on panels.

# At the position x of a parameter, on the last panel with left <= x, with u = (2 x - left - right) / (right - left) and
# v = u cut to -1..1: sum of a_k v^k, and min((a_1 + a_3 + a_5 + a_7) (u - v), 0).
.tabled <- function(panels, x) {
  at <- pmax(findInterval(x, panels$left), 1)
  place <- (2 * x - panels$left[at] - panels$right[at]) / (panels$right[at] - panels$left[at])
  within <- pmin(pmax(place, -1), 1)
  powers <- as.matrix(panels[paste0("a", 0:8)])[at, , drop = FALSE]
  rise <- rowSums(powers[, c(2, 4, 6, 8), drop = FALSE])
  beyond <- ifelse(place == within, 0, pmin(rise * (place - within), 0))
  as.vector(rowSums(powers * outer(within, 0:8, `^`)) + beyond)
}

#' The likelihood of one parameter in every cell, as it was published, of its CSV file.
published_likelihood <- function(directory, name = NULL) {
  manifest <- read_publication(directory)
  panels <- .published_table(directory, manifest, "likelihood", "-likelihood\\.csv$", name)
  columns <- c("cell", "left", "right", paste0("a", 0:8), "top", "error", "depth", "line")
  if (!all(columns %in% names(panels)) || !nrow(panels)) refuse("files", "it is no likelihood of one parameter")
  cells <- split(panels, factor(panels$cell, levels = unique(panels$cell)))
  groups <- grep("^group_", names(panels), value = TRUE)
  keys <- panels[!duplicated(panels$cell), groups, drop = FALSE]
  names(keys) <- sub("^group_", "", groups)
  rownames(keys) <- NULL
  structure(list(panels = cells, keys = keys, line = panels$line[1]), class = "suffice_likelihood")
}

#' Log likelihoods of a cell, by its number from 1, at values of the parameter; but for a constant of the release.
likelihood_log_prob <- function(likelihood, cell, values) {
  panels <- .panels_of(likelihood, cell)
  line <- .LIKELIHOOD_LINES[[likelihood$line]]
  is_inside <- values >= line$ends[1] & values <= line$ends[2]
  log_prob <- rep(-Inf, length(values))
  log_prob[is_inside] <- .tabled(panels, line$position(values[is_inside]))
  log_prob
}

#' The mean, the standard deviation and an interval of a cell under a prior.
likelihood_posterior <- function(likelihood, cell, prior, mass = 0.95, kind = c("central", "highest-density")) {
  kind <- match.arg(kind)
  .check_shares(mass, "a mass")
  panels <- .panels_of(likelihood, cell)
  name <- c(logit = "Beta", logarithm = "Gamma")[likelihood$line]
  if (is.na(name)) .usage("this reader puts priors to probabilities and rates alone: read the likelihood in Python")
  line <- .LIKELIHOOD_LINES[[likelihood$line]]
  parsed <- .parse_prior(prior, name)
  log_density <- function(t) parsed$log(t) + .tabled(panels, t)
  inner <- as.vector(panels$left + outer(panels$right - panels$left, seq(0, 1, length.out = 33)))
  highest <- inner[which.max(.tabled(panels, inner))]
  starts <- t(vapply(parsed$components, .KINDS[[name]]$start, c(at = 0, width = 0)))
  starts <- rbind(starts, c(at = highest, width = 0.05))
  distribution <- .distribution(line, log_density, starts)
  lowest <- panels$top[1] - panels$depth[1]
  unknown <- distribution$average(function(values) as.vector(.tabled(panels, as.vector(line$position(values))) < lowest))
  if (unknown > 1e-5) .usage("the prior puts the posterior where the table is not known: compute it in Python")
  ends <- .interval(distribution, mass, kind)
  data.frame(mean = distribution$mean, sd = distribution$sd, lower = ends[1], upper = ends[2])
}

.LIKELIHOOD_LINES <- list(
  logit = .LINES$probability, logarithm = .LINES$positive,
  identity = list(value = identity, position = identity, ends = c(-Inf, Inf))
)

.panels_of <- function(likelihood, cell) {
  if (!is.numeric(cell) || length(cell) != 1 || !cell %in% seq_along(likelihood$panels)) {
    .usage("a cell is a number from 1 to ", length(likelihood$panels), ", as in likelihood$keys")
  }
  likelihood$panels[[cell]]
}
