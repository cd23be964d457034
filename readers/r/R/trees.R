# What a reader asks of a tree of counts, or of totals.

.POPULATIONS <- c("contaminated", .ZERO_INFLATED, "negative-binomial", .RECIPROCAL)
.ROUNDED <- 1e-11
# Weights of the laws that are drawn from at a time.
.LAWS <- 2^21
# Chances may be off by so much before it is said.
.WORTH_SAYING <- 0.01

# The joint posterior of a tree: marginals mixed over points, and what draws need.
.tree_posterior <- function(tree, population) {
  passer <- .passer(tree, population)
  points <- .weighed_points(passer)
  marginals <- NULL
  for (at in seq_along(points$weights)) {
    here <- .down(passer, .up(passer, points$points[at, ]))
    marginals <- if (at == 1) .mixed_first(here, points$weights[1]) else Map(function(own, other) Map(.mixed, own, other, points$weights[at]), marginals, here)
  }
  list(passer = passer, points = points, marginals = marginals, log_evidence = points$log_evidence, error = points$error)
}

.mixed_first <- function(marginals, weight) {
  lapply(marginals, lapply, function(law) list(low = law$low, weights = weight * law$weights))
}

.mixed <- function(own, other, weight) {
  low <- min(own$low, other$low)
  width <- max(own$low + length(own$weights), other$low + length(other$weights)) - low
  list(low = low, weights = .placed(own$low, own$weights, low, width) + weight * .placed(other$low, other$weights, low, width))
}

.law_summary <- function(law, mass) {
  counts <- law$low + seq_along(law$weights) - 1
  mean <- sum(counts * law$weights)
  outside <- 0.5 * (1 - mass) + .ROUNDED
  c(
    mean = mean, sd = sqrt(sum((counts - mean)^2 * law$weights)),
    lower = law$low + sum(cumsum(law$weights) <= outside),
    upper = law$low + length(law$weights) - 1 - sum(cumsum(rev(law$weights)) <= outside)
  )
}

#' The joint posterior of the counts at all nodes of a tree, or of totals in the column's unit: from 0 on, and they add up.
#'
#' @param release What [read_release()] gave.
#' @param name As the spec called the statistic that has a hierarchy.
#' @param where A list with a key of every group beside the tree's.
#' @param population What leaves are drawn from: `"contaminated"`, `"zero-inflated"`, `"negative-binomial"` or
#'   `"reciprocal"`.
#' @return An object of class `suffice_tree`; `as.data.frame()` has a row for each node.
release_tree <- function(release, name, where = list(), population = "contaminated") {
  levels <- unlist(release$manifest$plan$hierarchies[[name]])
  if (is.null(levels)) {
    known <- names(release$manifest$plan$hierarchies)
    .usage("the release has no tree of that name: ", if (length(known)) paste("there are", paste(.shown(known), collapse = ", ")) else "it has none")
  }
  if (!population %in% .POPULATIONS) .usage("a population of leaves is one of ", paste(.POPULATIONS, collapse = ", "))
  statistics <- paste(name, levels, sep = ".")
  entries <- lapply(statistics, function(statistic) .entry(release, statistic))
  .check_adding(entries)
  unit <- .tree_unit(entries)
  components <- if (is.null(unit$upper)) unlist(entries[[1]]$components) else "total"
  columns <- lapply(statistics, function(statistic) names(release$keys[[statistic]]))
  beside <- Reduce(intersect, columns)
  beside <- setdiff(beside, levels[length(levels)])
  open <- setdiff(beside, names(where))
  if (length(open)) .usage("there is a tree for each key of ", .shown(open[1]), ": name one in where")
  if (length(setdiff(names(where), beside))) .usage("a tree has all of its nodes: where names keys of other groups alone")
  cells <- Map(function(statistic, column) .tree_cells(release, statistic, where, setdiff(column, beside)), statistics, columns)
  keys <- lapply(cells, `[[`, "keys")
  parents <- .key_parents(release$manifest$plan, levels, entries, keys)
  scales <- lapply(entries, function(entry) as_double(entry$scale) / unit$steps)
  trees <- lapply(seq_along(components), function(component) {
    values <- lapply(seq_along(levels), function(level) {
      released <- as.numeric(release$values[[statistics[level]]][cells[[level]]$rows, component])
      if (any(abs(released) >= 2^63)) .usage("a value of the tree is at an end of its type: there were more records than could be counted")
      round(released / unit$steps)
    })
    .tree_posterior(list(parents = parents, values = values, scales = scales, sizes = NULL), population)
  })
  structure(
    list(
      name = name, levels = levels, keys = keys, parents = parents, posteriors = stats::setNames(trees, components),
      population = population, where = where, unit = unit
    ),
    class = "suffice_tree"
  )
}

.tree_cells <- function(release, statistic, where, column) {
  keys <- release$keys[[statistic]]
  fits <- rep(TRUE, nrow(keys))
  for (group in names(where)) {
    is_key <- as.character(keys[[group]]) == as.character(where[[group]])
    if (!any(is_key)) .usage(.shown(group), " has no key ", .shown(as.character(where[[group]])))
    fits <- fits & is_key
  }
  list(rows = which(fits), keys = as.character(keys[[column]])[fits])
}

# Refuse what is neither a count of records nor a total, with discrete Laplace noise of one scale.
.check_adding <- function(entries) {
  first <- entries[[1]]
  for (entry in entries) {
    is_count <- entry$family %in% .COUNTED && is.null(entry$count_clipped)
    is_sum <- is_count || !is.null(.total_step(entry))
    if (.is_sampled(entry) || !is.null(entry$within_unit) || !is_sum) {
      .usage(.shown(entry$name), " neither counts records nor has totals from 0 on: a tree is of one of ", paste(c(.COUNTED, .SUMMED), collapse = ", "))
    }
    if (entry$family != first$family || !identical(entry$components, first$components) || !identical(entry$parameters, first$parameters)) {
      .usage(.shown(entry$name), " does not have what the other levels have: a tree is of the same counts, or totals, at all levels")
    }
  }
}

# Where the parent of every key stands, by maps of the plan and the calendar.
.key_parents <- function(plan, levels, entries, keys) {
  parents <- list()
  for (level in rev(seq_along(levels)[-1])) {
    above <- level - 1
    every <- .period_of(entries[[above]], levels[above])
    derived <- plan$derived[[levels[above]]]
    targets <- if (!is.null(every)) {
      .period_above(keys[[level]], every)
    } else if (!is.null(derived$map)) {
      .mapped_keys(derived, levels, keys, parents, level)
    } else {
      rep(keys[[above]][1], length(keys[[level]]))
    }
    found <- match(targets, keys[[above]])
    if (anyNA(found) || length(unique(found)) != length(keys[[above]])) refuse("plan", "keys of a tree do not nest")
    parents <- c(list(found), parents)
  }
  if (length(keys[[1]]) != 1) refuse("plan", "a tree has one root")
  parents
}

# The period of a level that follows from the calendar.
.period_of <- function(entry, level) {
  periods <- Filter(function(group) identical(group$kind, "period") && identical(group$every, level), entry$groups)
  if (length(periods)) level else NULL
}

.period_above <- function(keys, every) {
  switch(every, year = substr(keys, 1, 4), month = substr(keys, 1, 7), week = format(as.Date(keys), "%G-W%V"))
}

.mapped_keys <- function(derived, levels, keys, parents, level) {
  source <- match(derived$column, levels)
  if (is.na(source) || source < level) refuse("plan", "keys of a tree do not nest")
  node <- seq_along(keys[[source]])
  # `parents` begins at the level below this one.
  for (at in seq_len(source - level)) node <- parents[[source - level + 1 - at]][node]
  targets <- vapply(keys[[source]], function(key) if (is.null(derived$map[[key]])) NA_character_ else as.character(derived$map[[key]]), "")
  above <- targets[match(seq_along(keys[[level]]), node)]
  if (anyNA(above) || any(targets != above[node])) refuse("plan", "keys of a tree do not nest")
  unname(above)
}

#' A row for each node of a tree: mean, standard deviation and the central interval, beside what was released.
as.data.frame.suffice_tree <- function(x, row.names = NULL, optional = FALSE, mass = 0.95, ...) {
  .check_shares(mass, "a mass")
  rows <- list()
  for (component in names(x$posteriors)) {
    posterior <- x$posteriors[[component]]
    for (level in seq_along(x$levels)) {
      numbers <- vapply(posterior$marginals[[level]], .law_summary, numeric(4), mass)
      values <- posterior$passer$tree$values
      below <- if (level < length(x$levels)) as.vector(rowsum(values[[level + 1]], x$parents[[level]])) else NA
      rows[[length(rows) + 1]] <- data.frame(
        component = component, level = x$levels[level], key = x$keys[[level]], mean = numbers["mean", ] * x$unit$size,
        sd = numbers["sd", ] * x$unit$size, .unit_ends(x$unit, numbers["lower", ], numbers["upper", ]),
        released = values[[level]] * x$unit$size, below = below * x$unit$size, stringsAsFactors = FALSE
      )
    }
  }
  table <- do.call(rbind, rows)
  # Names of rows that `numbers` has would tell nothing.
  rownames(table) <- row.names
  table
}

# What has to be said beside the numbers.
.tree_notes <- function(tree) {
  error <- max(vapply(tree$posteriors, `[[`, 0, "error"))
  off <- "Chances may be off by up to %s: the population's mean and spread are summed over points. Compare the population reciprocal, which has neither."
  c(.unit_notes(tree$unit), if (error > .WORTH_SAYING) sprintf(off, format(min(error, 1), digits = 1)))
}

print.suffice_tree <- function(x, ...) {
  what <- if (is.null(x$unit$upper)) "counts" else "totals"
  cat(what, " of ", paste(x$levels, collapse = ", "), "; leaves: ", x$population, "\n", sep = "")
  writeLines(.tree_notes(x))
  shown <- as.data.frame(x)
  print(utils::head(shown, 20), row.names = FALSE, digits = 3)
  if (nrow(shown) > 20) cat("... and", nrow(shown) - 20, "more: as.data.frame()\n")
  invisible(x)
}

#' Joint draws of all counts of a tree, or totals: by level a matrix with a row for each draw.
#'
#' @param rng A function that gives so many numbers between 0 and 1; R's own by default, so `set.seed()` first.
tree_draws <- function(tree, n, component = NULL, rng = stats::runif) {
  lapply(.whole_draws(tree, n, .tree_component(tree, component), rng), `*`, tree$unit$size)
}

.whole_draws <- function(tree, n, component, rng, least = 1) {
  if (!is.numeric(n) || length(n) != 1 || is.na(n) || n < least || n != round(n)) .usage("draws: a whole number from ", least, " on")
  if (!is.function(rng)) .usage("rng: a function that gives so many numbers between 0 and 1")
  posterior <- tree$posteriors[[component]]
  drawn <- lapply(tree$keys, function(keys) matrix(0, n, length(keys), dimnames = list(NULL, keys)))
  # A draw has a point of its own.
  which <- .drawn_place(posterior$points$weights, rng(n))
  for (point in unique(which)) {
    upward <- .up(posterior$passer, posterior$points$points[point, ])
    draws <- base::which(which == point)
    counts <- .draw_counts(posterior$passer, upward, length(draws), rng)
    for (level in seq_along(counts)) drawn[[level]][draws, ] <- counts[[level]]
  }
  stats::setNames(drawn, tree$levels)
}

# So many draws at a point: of every level a row for each draw.
.draw_counts <- function(passer, upward, n, rng) {
  counts <- lapply(passer$nodes, function(nodes) matrix(0, n, nodes))
  counts[[1]][, 1] <- upward$root$low + .drawn_place(upward$root$weights, rng(n)) - 1
  for (level in seq_len(passer$depth)) {
    for (node in seq_len(passer$nodes[level])) {
      waiting <- list(list(upward$levels[[level]]$sums[[node]], counts[[level]][, node]))
      while (length(waiting)) {
        part <- waiting[[length(waiting)]][[1]]
        totals <- waiting[[length(waiting)]][[2]]
        waiting[[length(waiting)]] <- NULL
        if (is.null(part$left)) {
          counts[[level + 1]][, part$node] <- totals
        } else {
          first <- .first_part(part$left, part$right, totals, rng(n))
          waiting <- c(waiting, list(list(part$left, first), list(part$right, totals - first)))
        }
      }
    }
  }
  counts
}

# Of two parts with totals the first is l with chance in proportion to L(l) R(total - l).
.first_part <- function(left, right, totals, uniform) {
  width <- length(left$weights)
  padded <- c(0, right$weights, 0)
  first <- numeric(length(totals))
  # Draws with one total have one law; so many laws are worked out at a time.
  different <- unique(totals)
  for (some in split(different, (seq_along(different) - 1) %/% max(1, .LAWS %/% width))) {
    at <- outer(left$low + seq_len(width) - 1, some, function(l, total) total - l) - right$low + 1
    at <- pmin(pmax(at, 0), length(padded) - 1) + 1
    # All laws one after the other, each of sum 1: where one ends, the sum is that of those before it, and its own.
    weights <- matrix(left$weights * padded[at], width)
    cumulated <- cumsum(weights / rep(colSums(weights), each = width))
    ends <- cumulated[width * seq_along(some)]
    begins <- c(0, ends[-length(ends)])
    law <- match(totals, some)
    draws <- which(!is.na(law))
    law <- law[draws]
    found <- findInterval(begins[law] + uniform[draws] * (ends[law] - begins[law]), cumulated)
    first[draws] <- left$low + found - width * (law - 1)
  }
  first
}

# The first place whose cumulated weight is above a share of all.
.drawn_place <- function(weights, uniform) findInterval(uniform * sum(weights), cumsum(weights)) + 1
