# What joint draws of a tree answer: roll-ups, shares, ratios and ranks. `rng` gives so many numbers between 0 and 1.

#' What any nodes hold together, each leaf below them once.
#'
#' @param tree What [release_tree()] gave.
#' @param nodes A list of keys by level.
#' @param mass Of intervals.
#' @param draws How many.
#' @param rng A function that gives so many numbers between 0 and 1.
tree_roll_up <- function(tree, nodes, mass = 0.95, draws = 2000, rng = stats::runif) {
  leaves <- .leaves_below(tree, nodes)
  rows <- lapply(names(tree$posteriors), function(component) {
    drawn <- .whole_draws(tree, draws, component, rng, least = 2)[[length(tree$levels)]]
    data.frame(component = component, .draws_summary(rowSums(drawn[, leaves, drop = FALSE]) * tree$unit$size, mass))
  })
  do.call(rbind, rows)
}

#' Each node's share of the node that it is below, of a level above it.
tree_share <- function(tree, level, above = NULL, mass = 0.95, draws = 2000, component = NULL, rng = stats::runif) {
  place <- .tree_place(tree, level)
  of <- if (is.null(above)) place - 1 else .tree_place(tree, above)
  if (of < 1 || of >= place) .usage("a share is of a level above ", .shown(level))
  ancestors <- .ancestors(tree, place, of)
  wanted <- if (is.null(component)) names(tree$posteriors) else .tree_component(tree, component)
  rows <- lapply(wanted, function(name) {
    drawn <- .whole_draws(tree, draws, name, rng, least = 2)
    .node_summaries(tree, name, place, drawn[[place]] / drawn[[of]][, ancestors, drop = FALSE], mass)
  })
  do.call(rbind, rows)
}

#' The part that a component has in several, by default in all.
tree_ratio <- function(tree, component, level, of = names(tree$posteriors), mass = 0.95, draws = 2000, rng = stats::runif) {
  place <- .tree_place(tree, level)
  if (!length(of)) .usage("a ratio is of components, one at least")
  names <- unique(c(.tree_component(tree, component), vapply(of, function(name) .tree_component(tree, name), "")))
  drawn <- lapply(stats::setNames(names, names), function(name) .whole_draws(tree, draws, name, rng, least = 2)[[place]])
  .node_summaries(tree, component, place, drawn[[component]] / Reduce(`+`, drawn[of]), mass)
}

#' How probably each of a level's counts is among the highest; of equal counts one is as probably the higher as the other.
tree_rank_probabilities <- function(tree, level, within = 1, component = NULL, draws = 2000, rng = stats::runif) {
  place <- .tree_place(tree, level)
  number <- length(tree$keys[[place]])
  if (!within %in% seq_len(number)) .usage("within is from 1 to the ", number, " nodes of ", .shown(level))
  drawn <- .whole_draws(tree, draws, .tree_component(tree, component), rng)[[place]]
  highest <- apply(drawn, 1, function(counts) order(-counts, rng(number))[seq_len(within)])
  data.frame(level = level, key = tree$keys[[place]], probability = tabulate(highest, number) / draws, stringsAsFactors = FALSE)
}

.tree_place <- function(tree, level) {
  if (!inherits(tree, "suffice_tree")) .usage("ask a tree: what release_tree() gave")
  place <- match(level, tree$levels)
  if (length(place) != 1 || is.na(place)) .usage("the tree has the levels ", paste(.shown(tree$levels), collapse = ", "))
  place
}

.tree_component <- function(tree, component) {
  known <- names(tree$posteriors)
  if (is.null(component) && length(known) == 1) return(known)
  if (!isTRUE(component %in% known)) .usage("name one component: there are ", paste(.shown(known), collapse = ", "))
  component
}

# Of every node of a level the node of another one that it is below.
.ancestors <- function(tree, place, of) {
  above <- seq_along(tree$keys[[place]])
  for (at in seq_len(place - of)) above <- tree$parents[[place - at]][above]
  above
}

.leaves_below <- function(tree, nodes) {
  last <- length(tree$levels)
  is_below <- logical(length(tree$keys[[last]]))
  for (level in names(nodes)) {
    place <- .tree_place(tree, level)
    wanted <- match(as.character(nodes[[level]]), tree$keys[[place]])
    if (anyNA(wanted)) .usage("the level ", .shown(level), " has no such key: ", .shown(as.character(nodes[[level]])[is.na(wanted)][1]))
    is_below[.ancestors(tree, last, place) %in% wanted] <- TRUE
  }
  if (!any(is_below)) .usage("a roll-up is of one node at least: name a level and its keys")
  which(is_below)
}

.node_summaries <- function(tree, component, place, drawn, mass) {
  numbers <- do.call(rbind, lapply(seq_len(ncol(drawn)), function(node) .draws_summary(drawn[, node], mass)))
  data.frame(component = component, level = tree$levels[place], key = tree$keys[[place]], numbers, stringsAsFactors = FALSE)
}

# Of nothing there are no shares: such draws are left out.
.draws_summary <- function(drawn, mass) {
  .check_shares(mass, "a mass")
  known <- sort(drawn)
  at <- function(share) if (length(known)) known[max(ceiling(share * length(known) - 1e-9), 1)] else NaN
  data.frame(mean = mean(known), sd = sqrt(mean((known - mean(known))^2)), lower = at((1 - mass) / 2), upper = at((1 + mass) / 2))
}
