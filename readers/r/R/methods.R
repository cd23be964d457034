# What R asks of a posterior and of a release.

.marginal <- function(posterior, parameter) {
  at <- if (is.null(parameter) && length(posterior$parameters) == 1) 1 else match(parameter, posterior$parameters)
  if (length(at) != 1 || is.na(at)) {
    .usage("name one parameter: there are ", paste(.shown(utils::head(posterior$parameters, 8)), collapse = ", "))
  }
  key <- as.character(at)
  if (is.null(posterior$known[[key]])) posterior$known[[key]] <- posterior$make[[at]]()
  posterior$known[[key]]
}

.chosen <- function(posterior, parameter) {
  chosen <- if (is.null(parameter)) posterior$parameters else parameter
  lapply(stats::setNames(nm = chosen), .marginal, posterior = posterior)
}

.check_shares <- function(shares, name) {
  if (!is.numeric(shares) || !length(shares) || anyNA(shares) || any(shares <= 0 | shares >= 1)) .usage(name, " lies between 0 and 1")
}

#' Whether the prior of the parameters and what was released disagree, as the package in Python judges it.
posterior_conflict <- function(posterior) {
  if (is.null(posterior$known$conflict)) posterior$known$conflict <- posterior$judge()
  posterior$known$conflict
}

#' Credible intervals, with the conflict of the prior where there is one.
posterior_interval <- function(posterior, mass = 0.9, parameter = NULL, kind = c("highest-density", "central")) {
  kind <- match.arg(kind)
  .check_shares(mass, "a mass")
  if (length(mass) != 1) .usage("a mass is one number")
  marginals <- .chosen(posterior, parameter)
  ends <- vapply(marginals, .interval, c(0, 0), mass = mass, kind = kind)
  data.frame(
    parameter = names(marginals), lower = ends[1, ], upper = ends[2, ],
    conflict = paste(posterior_conflict(posterior)$lines, collapse = "\n"), row.names = NULL, stringsAsFactors = FALSE
  )
}

#' The probability that a parameter lies below values.
posterior_below <- function(posterior, values, parameter = NULL) .below(.marginal(posterior, parameter), values)

mean.suffice_posterior <- function(x, parameter = NULL, ...) vapply(.chosen(x, parameter), `[[`, 0, "mean")

#' Standard deviations, by parameter.
posterior_sd <- function(posterior, parameter = NULL) vapply(.chosen(posterior, parameter), `[[`, 0, "sd")

quantile.suffice_posterior <- function(x, probs = c(0.05, 0.25, 0.5, 0.75, 0.95), parameter = NULL, ...) {
  .check_shares(probs, "a share")
  marginals <- .chosen(x, parameter)
  levels <- vapply(marginals, .quantiles, numeric(length(probs)), shares = probs)
  matrix(levels, ncol = length(marginals), dimnames = list(paste0(format(100 * probs, trim = TRUE), "%"), names(marginals)))
}

density.suffice_posterior <- function(x, at = NULL, parameter = NULL, ...) {
  marginal <- .marginal(x, parameter)
  if (is.null(at)) at <- .shown_range(marginal)
  line <- x$line
  position <- match(if (is.null(parameter)) x$parameters else parameter, x$parameters)
  is_inside <- at > line$ends[1] & at < line$ends[2]
  t <- line$position(ifelse(is_inside, at, marginal$mean))
  prior <- ifelse(is_inside, exp(x$prior_log[[position]](t) - line$log_slope(t)), 0)
  data.frame(value = at, density = .densities(marginal, at), prior = prior)
}

.shown_range <- function(marginal) {
  ends <- .quantiles(marginal, c(0.0005, 0.9995))
  seq(ends[1], ends[2], length.out = 201)
}

summary.suffice_posterior <- function(object, mass = 0.9, ...) {
  intervals <- posterior_interval(object, mass)
  table <- data.frame(
    parameter = object$parameters, mean = mean(object), sd = posterior_sd(object), lower = intervals$lower,
    upper = intervals$upper, conflict = intervals$conflict, row.names = NULL, stringsAsFactors = FALSE
  )
  structure(list(posterior = object, mass = mass, table = table), class = "summary.suffice_posterior")
}

as.data.frame.suffice_posterior <- function(x, row.names = NULL, optional = FALSE, mass = 0.9, ...) {
  cell <- if (length(x$cell)) as.data.frame(x$cell, check.names = FALSE, stringsAsFactors = FALSE)
  table <- cbind(statistic = x$statistic, summary(x, mass)$table, stringsAsFactors = FALSE)
  if (!is.null(cell)) table <- cbind(cell[rep(1, nrow(table)), , drop = FALSE], table)
  rownames(table) <- row.names
  table
}

print.suffice_posterior <- function(x, ...) {
  print(summary(x), ...)
  invisible(x)
}

print.summary.suffice_posterior <- function(x, digits = 4, ...) {
  posterior <- x$posterior
  keys <- paste(.shown(names(posterior$cell)), .shown(vapply(posterior$cell, as.character, "")), sep = " = ", collapse = ", ")
  cat("Posterior of ", .shown(posterior$statistic), " (", posterior$family, ")", if (length(posterior$cell)) c(", ", keys), "\n", sep = "")
  cat("prior: ", posterior$prior, if (!is.null(posterior$n_prior)) c("; of N: ", posterior$n_prior), "; ", posterior$method, "\n", sep = "")
  if (identical(posterior$clipping, "ignored")) cat("clipped records are not modelled\n")
  table <- x$table[c("parameter", "mean", "sd", "lower", "upper")]
  table$parameter <- .shown(table$parameter)
  cat(sprintf("lower and upper: %g%% interval of highest density\n", 100 * x$mass))
  print(table, digits = digits, row.names = FALSE)
  lines <- unique(x$table$conflict[nzchar(x$table$conflict)])
  if (length(lines)) writeLines(strwrap(lines, width = 100))
  invisible(x)
}

plot.suffice_posterior <- function(x, parameter = x$parameters[1], mass = 0.9, ...) {
  curve <- stats::density(x, parameter = parameter)
  interval <- posterior_interval(x, mass, parameter)
  conflict <- if (nzchar(interval$conflict)) "prior and released values are in conflict: see print()"
  graphics::plot(curve$value, curve$density, type = "l", xlab = parameter, ylab = "density", main = x$statistic, sub = conflict, ...)
  graphics::lines(curve$value, curve$prior, lty = 2)
  graphics::segments(interval$lower, 0, interval$upper, 0, lwd = 4)
  invisible(x)
}

summary.suffice_release <- function(object, ...) {
  of <- function(read) vapply(object$manifest$statistics, read, "")
  table <- data.frame(
    statistic = of(function(entry) entry$name), family = of(function(entry) entry$family),
    loss = of(function(entry) entry[[.measure(entry)]]), scale = of(function(entry) .or_empty(entry$scale)),
    posterior = vapply(object$manifest$statistics, function(entry) {
      !.is_sampled(entry) && is.null(entry$within_unit) && is.null(entry$count_clipped) &&
        entry$family %in% c(names(.FAMILIES), "categorical") && !.is_on_cone(entry)
    }, TRUE),
    stringsAsFactors = FALSE
  )
  names(table)[names(table) == "loss"] <- .measure(object$manifest)
  table
}

# How many cells there are, and by which columns; where statistics differ, of which.
.cells_in_words <- function(keys) {
  words <- vapply(keys, function(of) {
    paste0(nrow(of), if (nrow(of) == 1) " cell" else " cells", if (length(of)) paste0(" by ", paste(.shown(names(of)), collapse = ", ")))
  }, "")
  if (length(unique(words)) == 1) return(words[[1]])
  paste(vapply(unique(words), function(one) {
    paste0(one, ": ", paste(.shown(names(keys)[words == one]), collapse = ", "))
  }, ""), collapse = "; ")
}

print.suffice_release <- function(x, ...) {
  manifest <- x$manifest
  cat("Release ", .shown(manifest$name), "@", .shown(manifest$release_id), " of ", .shown(manifest$dataset), ", ", .measure(manifest), " ", manifest[[.measure(manifest)]], ", ",
    .cells_in_words(x$keys), "\n", sep = "")
  if (!is.null(x$withdrawn)) cat("withdrawn: ", .shown(x$withdrawn), "\n", sep = "")
  table <- summary(x)
  table$statistic <- .shown(table$statistic)
  is_noisy <- nzchar(table$scale)
  table$scale[is_noisy] <- vapply(table$scale[is_noisy], function(scale) format(as_double(scale), digits = 6), "")
  print(table, row.names = FALSE)
  trees <- names(manifest$plan$hierarchies)
  if (length(trees)) cat("trees, for release_tree(): ", paste(.shown(trees), collapse = ", "), "\n", sep = "")
  invisible(x)
}

as.data.frame.suffice_release <- function(x, row.names = NULL, optional = FALSE, statistic = NULL, ...) {
  if (is.null(statistic)) .usage("name the statistic whose table is wanted")
  table <- release_table(x, statistic)
  if (!is.null(row.names)) rownames(table) <- row.names
  table
}
