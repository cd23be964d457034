#' The posterior of one cell, its noise and its number of records taken into account.
#'
#' Of bernoulli, poisson and categorical statistics; families that this reader cannot do are refused by name.
#'
#' @param release What [read_release()] gave.
#' @param statistic Its name.
#' @param where A list with the key of every group, such as `list(origin = "JFK")`.
#' @param prior Text: `"Beta(1, 9)"`, `"Gamma(2, 1)"`, `"Dirichlet(1, 2, 3)"`, or a `Mixture` of the first two.
#' @param n_prior A prior of the number of records: a number that is known, `"Uniform(0, 400)"` or `"Reciprocal(1000)"`.
#' @param method `"noise-aware"`, or `"plug-in"`: noisy sums are taken for exact.
#' @param clipping Of counts: `"by-evidence"`, `"ignored"`, or `"modelled"`, which is refused where it matters.
#' @return An object of class `suffice_posterior`.
release_posterior <- function(release, statistic, where = list(), prior = NULL, n_prior = NULL,
                              method = c("noise-aware", "plug-in"), clipping = c("by-evidence", "ignored", "modelled")) {
  method <- match.arg(method)
  clipping <- match.arg(clipping)
  entry <- .entry(release, statistic)
  if (.is_sampled(entry)) .usage(.shown(statistic), " is a posterior sample: release_samples() gives its draws")
  family <- .FAMILIES[[entry$family]]
  why <- if (!is.null(entry$within_unit)) {
    " whose rows of a unit are alike"
  } else if (!is.null(entry$count_clipped)) {
    " with counts of what clipping moved"
  } else if (is.null(family) && entry$family != "categorical") {
    ""
  }
  if (!is.null(why)) {
    .usage(.shown(statistic), " is ", .shown(entry$family), why, ": this reader has no posterior of it; a published one can be read")
  }
  keys <- release$keys[[statistic]]
  cell <- .cell(keys, where)
  asked <- list(
    entry = entry, values = release$values[[statistic]][cell, ], public_n = release$manifest$n,
    prior = prior, n_prior = .n_prior_of(entry, release$manifest, n_prior, method), method = method, clipping = clipping
  )
  parts <- if (is.null(family)) .of_counts(asked) else .of_one_sum(asked, family)
  # Marginals and the conflict are worked out when they are asked for, once.
  structure(
    c(parts, list(
      statistic = statistic, family = entry$family, cell = as.list(keys[cell, , drop = FALSE]),
      n_prior = asked$n_prior$text, method = method, known = new.env()
    )),
    class = "suffice_posterior"
  )
}

.FAMILIES <- list(
  bernoulli = list(
    parameter = "probability", kind = "Beta", line = .LINES$probability, total = .BINOMIAL,
    default = function(upper) "Beta(1, 1)", moments = .moments_of_bernoulli,
    update = function(numbers, n, total) numbers + c(total, n - total)
  ),
  poisson = list(
    parameter = "rate", kind = "Gamma", line = .LINES$positive, total = .POISSON,
    default = function(upper) .call_text("Gamma", c(1, 2 / upper)), moments = .moments_of_poisson,
    update = function(numbers, n, total) numbers + c(total, n)
  )
)

.entry <- function(release, statistic) release$manifest$statistics[[.statistic_at(release, statistic)]]

.cell <- function(keys, where) {
  unknown <- setdiff(names(where), names(keys))
  if (length(unknown) || length(names(where)) != length(where)) {
    .usage("there is no group ", .shown(c(unknown, "without a name")[1]), ": there are ", paste(.shown(names(keys)), collapse = ", "))
  }
  fits <- rep(TRUE, nrow(keys))
  for (column in names(where)) {
    is_key <- as.character(keys[[column]]) == as.character(where[[column]])
    if (!any(is_key)) .usage(.shown(column), " has no key ", .shown(as.character(where[[column]])))
    fits <- fits & is_key
  }
  if (sum(fits) != 1) .usage(sum(fits), " cells fit: name the key of every group in where")
  which(fits)
}

.n_prior_of <- function(entry, manifest, given, method) {
  if (method == "plug-in") {
    if (!is.null(given)) .usage(.shown(entry$name), ": plug-in takes the noisy N for exact: leave n_prior out")
    return(NULL)
  }
  if (identical(entry$design, "minimal")) {
    if (!is.null(given)) .usage(.shown(entry$name), ": its N is public: leave n_prior out")
    return(.fixed_n(manifest$n))
  }
  if (is.null(given)) .reciprocal(manifest$max_total_rows) else .parse_n_prior(given)
}

.starts <- function(kind, numbers) do.call(rbind, lapply(numbers, .KINDS[[kind]]$start))

.of_one_sum <- function(asked, family) {
  entry <- asked$entry
  is_minimal <- identical(entry$design, "minimal")
  upper <- if (entry$family == "poisson") as_double(entry$parameters$upper)
  prior <- .parse_prior(if (is.null(asked$prior)) family$default(upper) else asked$prior, family$kind)
  values <- asked$values
  if (entry$family == "bernoulli" && !is_minimal) values <- values[2:1]
  reach <- if (is.null(upper)) 1 else upper
  noisy <- list(values = unname(values), scale = as_double(entry$scale), reach = reach)
  exact <- .projected(noisy, entry$family, if (is_minimal) asked$public_n)
  updated <- lapply(prior$components, family$update, n = exact$n, total = exact$total)
  starts <- .starts(family$kind, updated)
  log_of <- if (asked$method == "plug-in") {
    none <- prior$components[[1]]
    kind <- .KINDS[[family$kind]]
    function(t) prior$log(t) + kind$log(t, updated[[1]]) - kind$log(t, none)
  } else {
    likelihood <- .likelihood(family$total, noisy, asked$n_prior)
    function(t) prior$log(t) + likelihood(t)
  }
  distribution <- .distribution(family$line, log_of, starts)
  clipping <- NULL
  if (!is.null(upper)) {
    clipping <- "ignored"
    if (asked$clipping == "modelled" && asked$method != "plug-in") {
      shift <- distribution$average(function(rate) .excess(rate, upper))
      if (shift > .NEGLIGIBLE_SHIFT * distribution$sd) {
        .usage(.shown(entry$name), ": clipped records matter here, and this reader does not model them: read a published ",
          "posterior, compute it in Python, or say clipping = \"ignored\"")
      }
      clipping <- "negligible"
    } else if (asked$method != "plug-in") {
      distribution <- .within(distribution, c(0, upper))
    }
  }
  judge <- function() {
    worlds <- .worlds_of(.distribution(family$line, prior$log, .starts(family$kind, prior$components)), family$moments)
    .judged(entry, asked$values, if (is_minimal) asked$public_n, function(place) worlds, prior$text)
  }
  list(
    parameters = family$parameter, prior = prior$text, clipping = clipping, judge = judge,
    make = list(function() distribution), prior_log = list(prior$log), line = family$line
  )
}

# Posterior standard deviations of expected shift up to which clipping may be left out.
.NEGLIGIBLE_SHIFT <- 0.01

# What clipping at a bound takes from the mean of Poisson counts.
.excess <- function(rate, upper) {
  rate * stats::ppois(upper - 1, rate, lower.tail = FALSE) - upper * stats::ppois(upper, rate, lower.tail = FALSE)
}

# N and the total, as near to the noisy sums as records can have them.
.projected <- function(noisy, family, public_n) {
  values <- noisy$values
  if (family == "bernoulli" && is.null(public_n)) {
    values <- pmax(values, 0)
    return(list(n = sum(values), total = values[1]))
  }
  n <- if (is.null(public_n)) max(sum(values) / noisy$reach, 0) else public_n
  list(n = n, total = min(max(values[1], 0), noisy$reach * n))
}

.of_counts <- function(asked) {
  entry <- asked$entry
  categories <- unlist(entry$parameters$categories)
  counts <- unname(asked$values)
  prior <- .parse_dirichlet(if (is.null(asked$prior)) "Dirichlet(1)" else asked$prior, length(categories))
  alpha <- prior$concentrations
  public_n <- if (identical(entry$design, "minimal")) asked$public_n
  line <- .LINES$probability
  beta <- lapply(alpha, function(a) c(a, sum(alpha) - a))
  log_beta <- lapply(beta, function(numbers) function(t) .KINDS$Beta$log(t, numbers))
  exact <- if (asked$method == "plug-in" && !is.null(public_n)) .on_simplex(counts, public_n) else pmax(counts, 0)
  updated <- Map(function(numbers, count) numbers + c(count, sum(exact) - count), beta, exact)
  scale <- as_double(entry$scale)
  known <- new.env()
  likelihood <- function(k) {
    if (is.null(known$latent)) known$latent <- .latent_counts(counts, scale, alpha, asked$n_prior, entry$name)
    .count_likelihood(known$latent, counts, scale, alpha, asked$n_prior, k, entry$name)
  }
  make <- lapply(seq_along(alpha), function(k) function() {
    log_of <- if (asked$method == "plug-in") {
      function(t) .KINDS$Beta$log(t, updated[[k]])
    } else {
      of_count <- likelihood(k)
      function(t) log_beta[[k]](t) + of_count(t)
    }
    .distribution(line, log_of, .starts("Beta", updated[k]))
  })
  judge <- function() {
    worlds <- function(place) {
      .worlds_of(.distribution(line, log_beta[[place]], .starts("Beta", beta[place])), .moments_of_bernoulli)
    }
    .judged(entry, counts, public_n, worlds, prior$text)
  }
  list(
    parameters = sprintf("probability[%s]", categories), prior = prior$text, clipping = NULL, judge = judge,
    make = make, prior_log = log_beta, line = line
  )
}
