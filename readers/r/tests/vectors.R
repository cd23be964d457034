# Hold the reader against the test vectors: Rscript tests/vectors.R VECTORS. The exit status is 1 where it fails.

here <- dirname(sub("--file=", "", grep("^--file=", commandArgs(), value = TRUE)))
source(file.path(here, "support.R"))
vectors <- arguments[1]

wrong <- character(0)
complain <- function(...) wrong <<- c(wrong, paste0(...))
has_openssl <- requireNamespace("openssl", quietly = TRUE)
key <- file.path(vectors, "test-key.pem.pub")

# Known answers of FIPS 180-4, by the plain implementation too.
known <- c("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1")
messages <- c("abc", "", "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")
for (at in 1:3) {
  if (sha256_plain(charToRaw(messages[at])) != known[at]) complain("sha256 in plain R")
  if (sha256(charToRaw(messages[at])) != known[at]) complain("sha256")
}
if (arguments[2] %in% "plain") sha256 <- sha256_plain

index <- read_json(file.path(vectors, "index.json"))$valid
releases <- list()
n_rows <- 0
for (vector in index) {
  folder <- file.path(vectors, "valid", vector$name)
  keys <- if (isTRUE(vector$signed) && has_openssl) key
  release <- tryCatch(read_release(file.path(folder, "release"), public_keys = keys), error = function(error) error)
  if (inherits(release, "error")) {
    complain(vector$name, ": ", conditionMessage(release))
    next
  }
  releases[[vector$name]] <- release
  expected <- read_json(file.path(folder, "expected.json"))
  for (statistic in names(expected$tables)) {
    stated <- expected$tables[[statistic]]
    table <- release_table(release, statistic)
    if (nrow(table) != length(stated$rows)) {
      complain(vector$name, " ", statistic, ": rows")
      next
    }
    n_rows <- n_rows + nrow(table)
    estimates <- vapply(stated$rows, function(row) as.numeric(row$estimate), 0)
    sds <- vapply(stated$rows, function(row) as.numeric(row$noise_sd), 0)
    quantities <- vapply(stated$rows, `[[`, "", "quantity")
    largest <- max(abs(release$values[[statistic]]))
    # Doubles: right to the last digits of the largest term.
    room <- 1e-12 * pmax(abs(estimates), sds) + if (stated$saturated > 0) Inf else 0
    if (any(abs(table$estimate - estimates) > room)) complain(vector$name, " ", statistic, ": estimates")
    if (any(abs(table$noise_sd - sds) > 1e-12 * sds)) complain(vector$name, " ", statistic, ": noise_sd")
    if (!identical(table$quantity, quantities)) complain(vector$name, " ", statistic, ": quantities")
    for (column in names(release$keys[[statistic]])) {
      if (!identical(as.character(table[[column]]), vapply(stated$rows, function(row) as.character(row[[column]]), ""))) complain(vector$name, ": keys")
    }
  }
}

for (vector in index) {
  folder <- file.path(vectors, "valid", vector$name)
  expected <- read_json(file.path(folder, "expected.json"))
  release <- releases[[vector$name]]
  for (statistic in names(expected$samples)) {
    stated <- expected$samples[[statistic]]
    draws <- release_samples(release, statistic)
    # Of a drawn quantile there are the edges of a bin, of a posterior sample a value.
    for (column in intersect(c("value", "lower", "upper"), names(stated[[1]]))) {
      wanted <- vapply(stated, function(row) as.numeric(row[[column]]), 0)
      if (nrow(draws) != length(stated) || any(abs(draws[[column]] - wanted) > 1e-12 * abs(wanted))) complain(vector$name, " ", statistic, ": draws")
    }
    if (!identical(as.numeric(draws$draw), vapply(stated, function(row) as.numeric(row$draw), 0))) complain(vector$name, " ", statistic, ": numbers of draws")
    for (column in names(release$keys[[statistic]])) {
      if (!identical(as.character(draws[[column]]), vapply(stated, function(row) as.character(row[[column]]), ""))) complain(vector$name, ": keys of draws")
    }
    refused <- tryCatch({ release_table(release, statistic); FALSE }, error = function(error) grepl("posterior sample", conditionMessage(error)))
    if (!refused) complain(vector$name, " ", statistic, ": a table of a sample")
  }
}

# Posteriors: each to the tolerance that it states; of families that this reader cannot do, a refusal by name.
n_posteriors <- 0
slowest <- 0
refusal_of <- function(expression) tryCatch({ force(expression); "" }, suffice_usage = conditionMessage)
for (vector in index) {
  folder <- file.path(vectors, "valid", vector$name)
  release <- releases[[vector$name]]
  can_do <- summary(release)
  for (stated in read_json(file.path(folder, "expected.json"))$posteriors) {
    for (at in seq_along(stated$cells)) {
      cell <- stated$cells[[at]]
      where <- as.list(release$keys[[stated$statistic]][at, , drop = FALSE])
      options <- stated$arguments[names(stated$arguments) != "within_unit"]
      ask <- function() do.call(release_posterior, c(list(release, stated$statistic, where), options))
      about <- paste(vector$name, stated$statistic, paste(names(options), options, collapse = " "), "cell", at)
      if (!can_do$posterior[match(stated$statistic, can_do$statistic)]) {
        if (!grepl("no posterior of it", refusal_of(ask()))) complain(about, ": is not refused by name")
        break
      }
      begin <- proc.time()[["elapsed"]]
      posterior <- ask()
      if (posterior$prior != stated$prior || !identical(posterior$n_prior, stated$n_prior)) complain(about, ": priors")
      levels <- unlist(stated$levels)
      ours <- rbind(mean(posterior), posterior_sd(posterior), quantile(posterior, levels))
      slowest <- max(slowest, (proc.time()[["elapsed"]] - begin) / length(posterior$parameters))
      numbers <- cell$parameters[[1]]
      if (!is.null(names(numbers))) numbers <- list(numbers)
      if (is.null(numbers[[1]]$quantiles)) ours <- ours[1:2, , drop = FALSE]
      theirs <- vapply(numbers, function(one) c(one$mean, one$sd, unlist(one$quantiles)), ours[, 1])
      room <- if (is.null(stated$tolerance$relative)) stated$tolerance$sds * rep(theirs[2, ], each = nrow(theirs)) else stated$tolerance$relative * abs(theirs)
      if (!identical(dim(ours), dim(theirs)) || !all(abs(ours - theirs) <= room)) complain(about, ": ", max(abs(ours / theirs - 1)))
      n_posteriors <- n_posteriors + 1
    }
  }
}

# Conflicts, and that nothing shows the interval without its conflict.
conflicts <- read_json(file.path(vectors, "conflicts.json"))
release <- releases[[basename(dirname(conflicts$release))]]
n_conflicts <- 0
for (case in conflicts$cases) {
  posterior <- release_posterior(release, case$statistic, case$where, prior = case$prior, clipping = "ignored")
  conflict <- posterior_conflict(posterior)
  about <- paste(case$statistic, case$prior, unlist(case$where))
  if (!identical(conflict$is_said, unlist(case$is_said)) || !identical(conflict$quantities, unlist(case$quantities))) complain(about, ": conflict")
  for (at in seq_along(conflict$tails)) {
    tail <- case$tails[[at]]
    is_right <- if (is.null(tail)) conflict$tails[at] > 0.0099 else abs(conflict$tails[at] / tail - 1) <= conflicts$relative_tolerance
    if (!is_right) complain(about, ": the tail is ", conflict$tails[at])
  }
  if (any(conflict$is_said)) {
    n_conflicts <- n_conflicts + 1
    printed <- paste(utils::capture.output(print(posterior)), collapse = " ")
    shown <- c(printed, posterior_interval(posterior)$conflict, as.data.frame(posterior)$conflict)
    if (!all(grepl("^conflict:|conflict: the prior", shown))) complain(about, ": an interval without its conflict")
  }
}

# Joint posteriors of trees and histograms, beside the package's.
n_joint <- 0
joint <- read_json(file.path(vectors, "trees.json"))
numbers_of <- function(list) if (is.null(list)) NULL else vapply(list, as.numeric, 0)
tree_of <- function(case) {
  list(
    parents = lapply(case$parents, function(each) numbers_of(each) + 1), values = lapply(case$values, numbers_of),
    scales = case$scales, sizes = numbers_of(case$sizes)
  )
}
off_of <- function(case, posterior) {
  largest <- abs(posterior$log_evidence - case$log_evidence) / joint$tolerance$log_evidence
  for (node in case$nodes) {
    found <- .law_summary(posterior$marginals[[node$level + 1]][[node$node + 1]], joint$mass)
    same_ends <- found[["lower"]] == node$lower && found[["upper"]] == node$upper
    off <- c(abs(found[["mean"]] - node$mean) / node$sd / joint$tolerance$mean_in_sds, abs(found[["sd"]] / node$sd - 1) / joint$tolerance$sd)
    largest <- max(largest, off, if (same_ends) 0 else Inf)
  }
  largest
}
for (case in joint$cases) {
  tree <- tree_of(case)
  off <- off_of(case, .tree_posterior(tree, case$population))
  if (!(off <= 1)) complain("a tree, ", case$about, ": ", off, " times the tolerance")
  n_joint <- n_joint + 1
}
# What must be told: noise of another scale.
other <- tree_of(joint$cases[[1]])
other$scales[[2]] <- 1.2 * other$scales[[2]]
if (off_of(joint$cases[[1]], .tree_posterior(other, "contaminated")) < 1000) complain("a tree with other noise is not told")
apart <- list(parents = list(rep(1L, 4)), values = list(1000, rep(10, 4)), scales = list(1, 4), sizes = NULL)
if (!grepl("contradict each other", refusal_of(.tree_posterior(apart, "reciprocal")))) complain("levels that contradict each other are not refused")

stated <- read_json(file.path(vectors, "histograms.json"))
set.seed(1)
for (case in stated$cases) {
  posterior <- .histogram_posterior(numbers_of(case$values), case$scale, .bin_ends(case$bins))
  if (!(abs(posterior$log_evidence - case$log_evidence) <= stated$tolerance$log_evidence)) complain("a histogram, ", case$about, ": evidence ", posterior$log_evidence)
  for (of in case$columns) {
    column <- .column(posterior, 1500, of$of)
    for (at in seq_along(of$levels)) {
      low <- .column_quantiles(column, of$levels[[at]])$low
      wanted <- cumsum(numbers_of(of$frequencies[[at]]))
      bins <- which(diff(column$bins$lower) > 0)
      found <- vapply(bins, function(bin) mean(low <= column$bins$lower[bin]), 0)
      # A false alarm of 1e-9 a comparison, of some thousand.
      room <- 6.2 * sqrt(pmax(wanted[bins] * (1 - wanted[bins]), 1e-4) * (1 / stated$draws + 1 / 1500))
      if (any(abs(found - wanted[bins]) > room)) complain("a histogram, ", case$about, " of the ", of$of, ": quantile ", of$levels[[at]])
    }
  }
  n_joint <- n_joint + 1
}

# Trees of releases, of counts and of totals, in the column's unit.
off_rows <- function(found, stated) {
  if (nrow(found) != length(stated$rows)) return(Inf)
  numbers <- function(name) vapply(stated$rows, function(row) as.numeric(row[[name]]), 0)
  component <- vapply(stated$rows, function(row) if (is.null(row$component)) "total" else row$component, "")
  are_named <- identical(found$key, vapply(stated$rows, `[[`, "", "key")) && identical(found$component, component)
  are_ends <- all(abs(c(found$lower - numbers("lower"), found$upper - numbers("upper"))) <= 1e-12 * abs(c(numbers("lower"), numbers("upper"))))
  off <- c(abs(found$mean - numbers("mean")) / numbers("sd") / joint$tolerance$mean_in_sds, abs(found$sd / numbers("sd") - 1) / joint$tolerance$sd)
  if (are_named && are_ends) max(off) else Inf
}
for (ask in list(release_table, release_samples, function(release, name) release_posterior(release, name))) {
  if (!grepl("flights is a tree: ask release_tree\\(\\); its levels are the statistics flights\\.", refusal_of(ask(releases[["trees"]], "flights")))) {
    complain("a tree is not told from a statistic")
  }
}
for (name in c("trees", "trees-of-totals")) {
  for (stated in read_json(file.path(vectors, "valid", name, "expected.json"))$trees) {
    tree <- release_tree(releases[[name]], stated$tree, stated$where)
    found <- as.data.frame(tree, mass = stated$mass)
    if (!identical(rownames(found), as.character(seq_len(nrow(found))))) complain("rows of a tree have names: ", stated$tree)
    # Rows are by component here, and by level there.
    found <- found[order(match(found$level, tree$levels), match(found$component, names(tree$posteriors))), ]
    if (!(off_rows(found, stated) <= 1)) complain("the tree ", stated$tree, ": ", off_rows(found, stated), " times the tolerance")
    if (stated$tree == "waits") {
      if (tree$unit$steps != 9) complain("steps of a total are joined otherwise")
      # What must be told: ends that are no wider than the steps, and another unit.
      for (unit in list(list(steps = 1), list(size = 1.01 * tree$unit$size))) {
        other <- tree
        other$unit <- utils::modifyList(tree$unit, unit)
        if (off_rows(as.data.frame(other), stated) < 1000) complain("totals in another unit are not told")
      }
    }
    n_joint <- n_joint + 1
  }
}

# What joint draws answer, beside enumeration: 5.5 standard errors, a false alarm in a million runs.
exhausted <- joint$enumerated
case <- Filter(function(case) case$about == exhausted$about, joint$cases)[[1]]
tree <- structure(list(
  levels = c("all", "half", "leaf"), keys = list("true", c("x", "y"), c("a", "b", "c")), parents = tree_of(case)$parents,
  posteriors = list(true = .tree_posterior(tree_of(case), .RECIPROCAL)), population = .RECIPROCAL, unit = list(steps = 1, step = 1, size = 1)
), class = "suffice_tree")
n_drawn <- 1500
near <- function(found, wanted, sd) all(abs(found - wanted) <= 5.5 * sd / sqrt(n_drawn))
set.seed(1)
highest <- numbers_of(exhausted$highest)
ranks <- tree_rank_probabilities(tree, "leaf", draws = n_drawn)$probability
if (!near(ranks, highest, sqrt(highest * (1 - highest)))) complain("ranks: ", paste(ranks, collapse = " "))
if (near(ranks[1], highest[2], 0.5)) complain("ranks of two leaves that changed places are not told")
equal <- tree
equal$posteriors$true <- .tree_posterior(list(parents = tree$parents, values = list(9, c(3, 6), c(3, 3, 3)), scales = list(0.02, 0.02, 0.02), sizes = NULL), .RECIPROCAL)
if (!near(tree_rank_probabilities(equal, "leaf", draws = n_drawn)$probability, 1 / 3, 0.5)) complain("equal counts are not as probably the highest")
shares <- tree_share(tree, "leaf", above = "all", draws = n_drawn)
if (!near(shares$mean, numbers_of(exhausted$shares_of_root), shares$sd)) complain("shares: ", paste(shares$mean, collapse = " "))
ends <- tree_roll_up(tree, list(half = "x", leaf = c("a", "c")), draws = n_drawn)
if (!near(ends$mean, exhausted$first_and_last$mean, exhausted$first_and_last$sd)) complain("a roll-up: ", ends$mean)
if (near(tree_roll_up(tree, list(leaf = c("a", "b")), draws = n_drawn)$mean, exhausted$first_and_last$mean, exhausted$first_and_last$sd)) complain("a roll-up of other leaves is not told")
halves <- function(n) rep(0.5, n)
if (!identical(tree_draws(tree, 2, rng = halves)$leaf[1, ], tree_draws(tree, 2, rng = halves)$leaf[2, ])) complain("draws do not use the rng")
for (refused in list(quote(tree_share(tree, "all")), quote(tree_roll_up(tree, list(leaf = "d"))), quote(tree_rank_probabilities(tree, "leaf", within = 4)), quote(tree_share(tree, "leaf", rng = 1)), quote(tree_ratio(tree, "true", "leaf", of = character())), quote(tree_share(list(), "leaf")))) {
  if (refusal_of(eval(refused)) == "") complain("is not refused: ", deparse(refused))
}

trees <- releases[["trees"]]
both <- tree_ratio(release_tree(trees, "flights"), "true", "origin", draws = 50)
if (any(both$lower < 0 | both$upper > 1 | both$mean <= 0)) complain("a ratio of a tree")
small <- as.data.frame(release_tree(trees, "flights"))
inside <- tapply(small$mean[small$level == "origin"], small$component[small$level == "origin"], sum)
if (any(abs(inside - small$mean[small$level == "all"]) > 1e-8)) complain("counts of a tree do not add up")
daily <- release_tree(trees, "daily", list(state = "a"))
if (!identical(tabulate(daily$parents[[2]]), c(31L, 28L, 31L))) complain("days are in other months")
drawn <- tree_draws(daily, 3, "UA")
if (any(rowSums(drawn$day) != drawn$year_so_far)) complain("draws of a tree do not add up")
if (!grepl("a tree for each key", refusal_of(release_tree(trees, "daily")))) complain("a tree of no key is not refused")
column <- release_column(releases[["bins"]], "delay", list(origin = "EWR"))
if (abs(column_cdf(column, 10)$mean + column_tail_share(column, 10)$mean - 1) > 1e-9) complain("shares of a column")
whole <- column_mean(column)
even <- column_mean(column, is_even = TRUE)
if (!(whole$lower < even$lower && even$lower < even$upper && even$upper < whole$upper)) complain("the mean of a column")
middle <- column_interquantile_range(column)
apart <- column_quantile(column, 0.75)$median - column_quantile(column, 0.25)$median
if (!(middle$lower <= apart && apart <= middle$upper)) complain("an interquantile range")
if (!grepl("0 or more", refusal_of(column_gini(column)))) complain("Gini's index of a column that can be below 0 is not refused")

# Of a known density, exp(-x / 2) on 0..16 in bins of 1, Gini's index and the mean follow from its integrals.
ends <- 0:16
known <- list(
  shares = matrix(diff(-exp(-ends / 2)) / (1 - exp(-8)), 2, 16, byrow = TRUE), totals = c(1, 1),
  bins = list(lower = ends[-17], upper = ends[-1]), normal = matrix(0, 2, 16)
)
total <- integrate(function(x) x * exp(-x / 2), 0, 16)$value / integrate(function(x) exp(-x / 2), 0, 16)$value
below <- function(x) vapply(x, function(to) integrate(function(t) t * exp(-t / 2), 0, to)$value, 0) / integrate(function(t) t * exp(-t / 2), 0, 16)$value
curve <- integrate(function(x) below(x) * exp(-x / 2), 0, 16)$value / integrate(function(x) exp(-x / 2), 0, 16)$value
if (abs(column_mean(known, is_even = TRUE)$mean - total) > 1e-8) complain("the mean of a known column")
if (abs(column_gini(known)$mean - (1 - 2 * curve)) > 1e-3) complain("Gini's index of a known column: ", column_gini(known)$mean, ", not ", 1 - 2 * curve)

hostile <- read_json(file.path(vectors, "hostile.json"))$hostile
refused <- 0
for (vector in hostile) {
  # A reader that compiles no plan refuses the others by the signature.
  if (vector$refused_by == "words") next # words are not read here
  demands <- vector$refused_by != "reader"
  if (demands && !has_openssl) next
  outcome <- tryCatch(
    {
      read_release(file.path(vectors, "hostile", vector$name), public_keys = if (demands) key)
      "was read"
    },
    suffice_refused = function(condition) condition$check,
    error = function(error) paste("ended in an error:", conditionMessage(error))
  )
  expected <- if (demands) "signature" else vector$check
  if (!identical(outcome, expected)) complain(vector$name, ": expected ", expected, ", not ", outcome) else refused <- refused + 1
}
if (length(arguments) > 2) {
  draws <- published_draws(arguments[3])
  cat(sprintf("%d draws of %s\n", nrow(draws), paste(unique(draws$parameter), collapse = ", ")))
}
cat(sprintf("%d valid vectors, %d rows of tables; %d hostile ones refused\n", length(index), n_rows, refused))
cat(sprintf("%d joint posteriors\n", n_joint))
cat(sprintf("%d posteriors, %d conflicts; the slowest parameter took %.2f s\n", n_posteriors, n_conflicts, slowest))
if (length(wrong)) {
  cat(unique(wrong), sep = "\n")
  quit(status = 1)
}
