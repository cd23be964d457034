#' Read a release, checked as the open format asks of every reader.
#'
#' @param directory Where `manifest.json` stands.
#' @param public_keys Demand a signature: PEM files of Ed25519 keys. Needs the package openssl.
#' @param allow_withdrawn Whether to read a release that was withdrawn.
#' @return A list: `manifest`, `withdrawn` (its reason, or NULL), `keys`, by statistic those of its cells, and `values`, by statistic a matrix with a row for each cell
#'   and a column for each component, in lattice units; of a posterior sample for each draw, points of the grid from 0 on.
#' A hostile or damaged release ends in a condition of class `suffice_refused` with the `check` that it failed.
read_release <- function(directory, public_keys = NULL, allow_withdrawn = FALSE) {
  if (!is.null(public_keys) && !requireNamespace("openssl", quietly = TRUE)) {
    stop("checking signatures needs the package openssl", call. = FALSE)
  }
  # What is of another type than the format states ends in some error of R, or in a number that is missing.
  odd <- function(condition) if (inherits(condition, "suffice_refused")) stop(condition) else refuse("fields", "a field has another form")
  tryCatch(.read_checked(directory, public_keys, allow_withdrawn), error = odd, warning = odd)
}

.read_checked <- function(directory, public_keys, allow_withdrawn) {
  bytes <- .file(directory, "manifest.json", .LARGEST_MANIFEST)
  if (is.null(bytes)) refuse("existence", "it has no manifest: nothing was published")
  document <- read_canonical(bytes, .LARGEST_MANIFEST)
  manifest <- document$value
  if (isTRUE(manifest$tombstone)) refuse("existence", "its charge was abandoned")
  if (isTRUE(manifest$rehearsal)) refuse("existence", "it is a rehearsal's, of generated rows")
  .check_manifest(manifest, bytes, document$spans)
  if (!is.null(public_keys)) .check_signature(manifest, bytes, document$spans, public_keys)
  withdrawn <- .withdrawal(directory, manifest, bytes)
  if (!is.null(withdrawn) && !allow_withdrawn) refuse("withdrawal", paste("it was withdrawn:", withdrawn))
  shared <- .cell_keys(manifest$groups)
  keys <- lapply(manifest$statistics, function(entry) if (.states_groups(entry)) .cell_keys(entry$groups) else shared)
  values <- Map(function(...) .values(directory, manifest, ...), manifest$statistics, manifest$files, keys)
  names(keys) <- names(values) <- vapply(manifest$statistics, `[[`, "", "name")
  structure(list(manifest = manifest, keys = keys, withdrawn = withdrawn, values = values), class = "suffice_release")
}

#' Unbiased estimates of a statistic's quantities, with the standard deviation of their noise.
#'
#' They are computed in doubles: right to about 1e-15 of the largest term.
release_table <- function(release, statistic) {
  entries <- release$manifest$statistics
  at <- .statistic_at(release, statistic)
  entry <- entries[[at]]
  if (.is_sampled(entry)) stop("it is a posterior sample: release_samples() gives its draws", call. = FALSE)
  values <- release$values[[at]]
  if (.is_on_cone(entry)) {
    noise_sd <- function(weights, columns) sqrt(.cone_variance(entry$cone_noise, weights, columns))
  } else {
    half <- 0.5 / as.numeric(entry$scale)
    sd <- if (half < 700) 1 / (sqrt(2) * sinh(half)) else 0
    noise_sd <- function(weights, columns) sd * sqrt(sum(weights^2))
  }
  public_n <- if (is.null(release$manifest$n)) 0 else release$manifest$n
  parts <- lapply(entry$quantities, function(quantity) {
    weights <- vapply(quantity$coefficients, as_double, 0)
    columns <- match(names(quantity$coefficients), unlist(entry$components))
    estimate <- as.vector(values[, columns, drop = FALSE] %*% weights) +
      public_n * as_double(quantity$public_n_coefficient)
    labels <- quantity$labels
    extra <- list(
      category = .or_empty(quantity$category), component = .or_empty(quantity$component),
      labels = paste(vapply(labels, function(label) paste0(label[[1]], "=", label[[2]]), ""), collapse = ", ")
    )
    data.frame(
      release$keys[[at]], quantity = quantity$name, extra,
      estimate = estimate, noise_sd = noise_sd(weights, columns), check.names = FALSE, stringsAsFactors = FALSE
    )
  })
  # Cell by cell, as the package does.
  table <- do.call(rbind, parts)
  table <- table[order(rep(seq_len(nrow(values)), length(parts)), method = "radix"), , drop = FALSE]
  rownames(table) <- NULL
  table
}

# Where a statistic is in the manifest. A tree is none: its levels are.
.statistic_at <- function(release, statistic) {
  names <- vapply(release$manifest$statistics, `[[`, "", "name")
  at <- match(statistic, names)
  if (length(at) == 1 && !is.na(at)) return(at)
  levels <- if (is.character(statistic) && length(statistic) == 1) release$manifest$plan$hierarchies[[statistic]]
  if (!is.null(levels)) {
    statistics <- paste(.shown(paste(statistic, unlist(levels), sep = ".")), collapse = ", ")
    .usage(.shown(statistic), " is a tree: ask release_tree(); its levels are the statistics ", statistics)
  }
  .usage("there is no statistic of that name: there are ", paste(.shown(utils::head(names, 8)), collapse = ", "))
}

#' The draws of a posterior sample, in the parameter's unit: a row for each cell and draw.
release_samples <- function(release, statistic) {
  entries <- release$manifest$statistics
  at <- .statistic_at(release, statistic)
  entry <- entries[[at]]
  if (!.is_sampled(entry)) stop("it was released as noisy statistics: release_table() has them", call. = FALSE)
  points <- release$values[[at]]
  if (!is.null(entry$quantile)) return(.drawn_bins(entry, points, release$keys[[at]]))
  ends <- vapply(entry$within, as_double, 0)
  cells <- rep(seq_len(nrow(points)), each = entry$draws)
  data.frame(
    release$keys[[at]][cells, , drop = FALSE], parameter = entry$parameter,
    draw = rep(seq_len(entry$draws) - 1, nrow(points)),
    value = ends[1] + as.vector(t(points)) * (ends[2] - ends[1]) / (entry$grid - 1),
    check.names = FALSE, row.names = NULL, stringsAsFactors = FALSE
  )
}

# The bins that were drawn of a quantile: both of their ends, in the column's unit.
.drawn_bins <- function(entry, points, keys) {
  bins <- .bin_ends(entry$parameters$bins)
  cells <- rep(seq_len(nrow(points)), each = entry$draws)
  drawn <- as.vector(t(points)) + 1
  data.frame(
    keys[cells, , drop = FALSE], parameter = paste("quantile", entry$quantile),
    draw = rep(seq_len(entry$draws) - 1, nrow(points)), lower = bins$lower[drawn], upper = bins$upper[drawn],
    check.names = FALSE, row.names = NULL, stringsAsFactors = FALSE
  )
}

# An atom divides the bin that it lies in, and is a bin of its own.
.bin_ends <- function(bins) {
  atoms <- vapply(as.list(bins$atoms), as_double, 0)
  points <- sort(unique(c(vapply(as.list(bins$edges), as_double, 0), atoms)))
  lower <- c(points[-length(points)], atoms)
  upper <- c(points[-1], atoms)
  # An atom stands before the bin that it begins, and after the one that it ends.
  order <- order(lower, upper)
  list(lower = lower[order], upper = upper[order])
}

.is_sampled <- function(entry) identical(entry$mechanism, "exponential")
.values_of_cell <- function(entry) if (.is_sampled(entry)) entry$draws else length(entry$components)

.LARGEST_MANIFEST <- 24 * 2^20

.or_empty <- function(text) if (is.null(text)) "" else text

.file <- function(directory, name, most) {
  path <- file.path(directory, name)
  if (!file.exists(path)) return(NULL)
  readBin(path, "raw", most + 1)
}

.FIELDS <- c(
  "amends", "cells", "checksum", "created", "dataset", "declared_order", "drawing_hash", "drawing_sequence",
  "files", "format_version", "groups", "input_verified", "ledger_id", "max_total_rows", "n", "name", "neighboring",
  "plan", "plan_hash", "release_id", "signature", "statistics", "unit", "versions", "window"
)

.matches <- function(pattern, text) is.character(text) && length(text) == 1 && grepl(pattern, text)
.is_count <- function(number, least = 0) is.numeric(number) && length(number) == 1 && number >= least

.check_manifest <- function(manifest, bytes, spans) {
  if (!identical(manifest$format_version, 1)) refuse("format_version", "this reader reads format 1")
  measure <- .measure(manifest)
  if (!all(.FIELDS %in% names(manifest)) || !all(names(manifest) %in% c(.FIELDS, measure, "audit", "contract", "max_rows", "max_rows_per_cell", "unit_nulls"))) {
    refuse("fields", "a field is missing, or there is one more")
  }
  blank <- with_null(bytes, spans, c("checksum", "signature"))
  if (!identical(manifest$checksum, sha256(blank))) refuse("checksum", "its checksum does not fit")
  plan <- bytes[spans$plan[1]:spans$plan[2]]
  if (!identical(manifest$plan_hash, sha256(plan))) refuse("plan", "its plan has another hash")
  forms <- c(
    release_id = "^[0-9a-f]{16}$", ledger_id = "^[0-9a-f]{32}$", drawing_hash = "^[0-9a-f]{64}$",
    created = "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}Z$", neighboring = "^(add_or_remove_one|replace_one)$",
    name = "^[a-z0-9][a-z0-9_.-]{0,62}$", dataset = "^[a-z0-9][a-z0-9_.-]{0,62}$"
  )
  for (field in names(forms)) {
    if (!.matches(forms[[field]], manifest[[field]])) refuse("fields", paste(field, "has another form"))
  }
  if (!.is_count(manifest$drawing_sequence, 1) || !is.logical(manifest$input_verified)) refuse("fields", "a field has another form")
  for (field in intersect(c("audit", "contract"), names(manifest))) {
    if (!.matches("^[0-9a-f]{64}$", manifest[[field]])) refuse("fields", paste(field, "has another form"))
  }
  .check_signature_form(manifest$signature)
  .check_window(manifest)
  for (of in c(list(manifest), Filter(.states_groups, manifest$statistics))) {
    n_cells <- prod(vapply(of$groups, .group_size, 0))
    if (!identical(of$cells, n_cells)) refuse("shape", "its cells are not the product of its groups")
  }
  designs <- vapply(manifest$statistics, function(entry) .or_empty(entry$design), "")
  if (!is.null(manifest$n) != any(designs == "minimal") || (!is.null(manifest$n) && !.is_count(manifest$n))) {
    refuse("fields", "a number of records is stated exactly where it is public")
  }
  for (entry in manifest$statistics) {
    if (.measure(entry) != measure) refuse("noise", "a statistic states another measure than the release")
    .check_statistic(entry, identical(manifest$neighboring, "replace_one"))
  }
  spent <- exact_sum(lapply(manifest$statistics, function(entry) exact(entry[[measure]])))
  if (!at_most(spent, exact(manifest[[measure]]))) refuse("noise", paste("the parts of", measure, "add up to more than the whole"))
  if (length(manifest$files) != length(manifest$statistics)) refuse("files", "they are not those of the statistics")
  for (at in seq_along(manifest$files)) {
    file <- manifest$files[[at]]
    entry <- manifest$statistics[[at]]
    if (!setequal(names(file), c("path", "rows", "sha256", "size", "statistic"))) refuse("fields", "a file's fields are others")
    if (!identical(file$statistic, entry$name)) refuse("files", "they are not in the order of the statistics")
    if (!identical(file$path, paste0(entry$name, ".parquet"))) refuse("paths", "a file's path is not its statistic's name")
    if (!identical(file$rows, .n_cells(entry, manifest) * .values_of_cell(entry))) refuse("shape", "a file has other rows")
    if (!.matches("^[0-9a-f]{64}$", file$sha256) || !.is_count(file$size, 1)) refuse("files", "a file's entry has another form")
  }
}

# What a manifest or a statistic states its price in: epsilon, or rho.
.measure <- function(entry) {
  stated <- intersect(c("epsilon", "rho"), names(entry))
  if (length(stated) != 1) refuse("fields", "it states epsilon or rho, one of the two")
  stated
}

# What covers a sensitivity: scale times epsilon; of rho, 2 rho times the square of the scale covers the squared L2 sensitivity.
.covered <- function(scale, loss, measure, times = "2") {
  if (measure == "epsilon") return(exact_product(scale, loss))
  exact_product(exact(times), exact_product(loss, exact_product(scale, scale)))
}

.check_laplace <- function(entry) {
  if (!identical(entry$mechanism, "discrete_laplace") || !is.null(entry$cone_noise)) {
    refuse("noise", "the format knows no such mechanism")
  }
  if (!.matches("^[1-9][0-9]*$", entry$l1_sensitivity)) refuse("noise", "a sensitivity is a positive integer")
  measure <- .measure(entry)
  loss <- exact(entry[[measure]])
  scale <- exact(entry$scale)
  if (!is_positive(loss) || !is_positive(scale)) refuse("noise", paste(measure, "and scale are above 0"))
  moved <- entry$l1_sensitivity
  if (measure == "rho") {
    if (!.matches("^[1-9][0-9]*$", entry$l2_squared)) refuse("noise", "a sensitivity is a positive integer")
    moved <- entry$l2_squared
  }
  if (!at_most(exact(moved), .covered(scale, loss, measure))) refuse("noise", paste("there is less noise than", measure, "asks for"))
}

.check_statistic <- function(entry, replaces) {
  if (!.matches("^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$", entry$name)) refuse("fields", "a statistic has no such name")
  if (.is_sampled(entry)) return(if (is.null(entry$quantile)) .check_sample(entry) else .check_quantile(entry))
  components <- unlist(entry$components)
  if (!length(components) || anyDuplicated(components)) refuse("shape", "a component stands twice, or there is none")
  if (.is_on_cone(entry)) .check_cone(entry, replaces) else .check_laplace(entry)
  if (!entry$value_type %in% c("int64", "decimal128(38, 0)")) refuse("fields", "values have another type")
  for (quantity in entry$quantities) {
    if (!all(names(quantity$coefficients) %in% components)) refuse("shape", "a quantity is of components that are not there")
    .check_quantity(quantity)
  }
}

# Of a sample: 2^62, and 2^46.
.LARGEST_RANGE <- "4611686018427387904"
.LARGEST_SCALE <- "70368744177664"

.check_sample <- function(entry) {
  measure <- .measure(entry)
  loss <- exact(entry[[measure]])
  if (!is_positive(loss)) refuse("noise", paste(measure, "is above 0"))
  if (!.is_count(entry$draws, 1) || !.is_count(entry$grid, 3) || entry$grid > 4097) refuse("fields", "it is no sample")
  if (!.matches("^[1-9][0-9]*$", entry$range_sensitivity) || !.matches("^[1-9][0-9]*$", entry$scale)) {
    refuse("noise", "range and scale of a sample are positive integers")
  }
  scale <- exact(entry$scale)
  range <- exact(entry$range_sensitivity)
  if (measure == "rho") range <- exact_product(range, range)
  spent <- exact_product(exact(as.character(entry$draws)), range)
  if (!at_most(spent, .covered(scale, loss, measure, times = "8")) || !at_most(exact("1048576"), scale)) {
    refuse("noise", paste("it is colder than", measure, "allows"))
  }
  if (!at_most(exact(entry$range_sensitivity), exact(.LARGEST_RANGE)) || !at_most(scale, exact(.LARGEST_SCALE))) {
    refuse("noise", "its range is above 2^62, or its scale above 2^46")
  }
  temperature <- exact_product(exact(entry$temperature), exact("1048576"))
  if (!at_most(temperature, scale) || !at_most(scale, temperature)) refuse("noise", "its temperature is not its scale's")
  ends <- lapply(entry$within, exact)
  right <- length(ends) == 2 && at_most(ends[[1]], ends[[2]]) && !at_most(ends[[2]], ends[[1]]) &&
    is.character(entry$parameter) && is.character(entry$prior)
  if (!right) refuse("fields", "it is no sample")
}

# The scale covers the range that is stated, which this reader does not compute again.
.check_quantile <- function(entry) {
  measure <- .measure(entry)
  loss <- exact(entry[[measure]])
  if (!is_positive(loss)) refuse("noise", paste(measure, "is above 0"))
  quantile <- exact(entry$quantile)
  n_bins <- length(.bin_ends(entry$parameters$bins)$lower)
  if (!.is_count(entry$draws, 1) || !is_positive(quantile) || at_most(exact("1"), quantile) || n_bins < 2 ||
    n_bins != length(entry$parameters$categories)) {
    refuse("fields", "it is no drawn quantile")
  }
  if (!.matches("^[1-9][0-9]*$", entry$range_sensitivity) || !.matches("^[1-9][0-9]*$", entry$scale)) {
    refuse("noise", "range and scale of a sample are positive integers")
  }
  scale <- exact(entry$scale)
  range <- exact(entry$range_sensitivity)
  if (measure == "rho") range <- exact_product(range, range)
  spent <- exact_product(exact(as.character(entry$draws)), range)
  if (!at_most(spent, .covered(scale, loss, measure, times = "8"))) {
    refuse("noise", paste("it is sharper than", measure, "allows"))
  }
  if (!at_most(exact(entry$range_sensitivity), exact(.LARGEST_RANGE)) || !at_most(scale, exact(.LARGEST_SCALE))) {
    refuse("noise", "its range is above 2^62, or its scale above 2^46")
  }
  # The denominator divides 10000: the one by which the rank scale is the scale is the quantile's in lowest terms.
  of_record <- exact_product(exact(entry$rank_scale), exact("1048576"))
  whole <- Filter(function(m) {
    stated <- exact_product(of_record, exact(as.character(m)))
    at_most(stated, scale) && at_most(scale, stated)
  }, outer(2^(0:4), 5^(0:4)))
  part <- round(as_double(entry$quantile) * whole)
  in_lowest_terms <- length(whole) == 1 && abs(as_double(entry$quantile) * whole - part) < 1e-6 &&
    all(part %% c(2, 5) != 0 | whole %% c(2, 5) != 0)
  if (!in_lowest_terms) refuse("noise", "its rank scale is not its scale's")
}

.check_quantity <- function(quantity) {
  is_text <- function(value) is.character(value) && length(value) == 1
  is_label <- function(value) is.list(value) && length(value) == 2 && is_text(value[[1]]) && is_text(value[[2]])
  weights <- quantity$coefficients
  right <- is.list(weights) && length(names(weights)) == length(weights) &&
    all(vapply(c(weights, list(quantity$public_n_coefficient)), function(weight) .matches(.EXACT, weight), TRUE)) &&
    is_text(quantity$name) && is_text(.or_empty(quantity$category)) && is_text(.or_empty(quantity$component)) &&
    (is.null(quantity$labels) || is.list(quantity$labels)) && all(vapply(quantity$labels, is_label, TRUE))
  if (!right) refuse("fields", "a quantity has another form")
}

.check_window <- function(manifest) {
  every <- if (is.null(manifest$plan$window)) "all" else manifest$plan$window$every
  form <- c(
    all = "^all$", year = "^[0-9]{4}$", month = "^[0-9]{4}-[0-9]{2}$", week = "^[0-9]{4}-W[0-9]{2}$",
    day = "^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
  )[every]
  label <- manifest$window
  if (is.na(form) || !.matches(form, label)) refuse("window", "the plan has no such window")
  exists <- switch(every,
    month = as.integer(substr(label, 6, 7)) %in% 1:12,
    week = as.integer(substr(label, 7, 8)) %in% 1:53,
    day = !is.na(as.Date(label, optional = TRUE)) && format(as.Date(label)) == label,
    TRUE
  )
  if (!exists) refuse("window", "the calendar has no such window")
  amends <- manifest$amends
  if (!is.null(amends) && (every == "all" || identical(amends$release_id, manifest$release_id) ||
    !setequal(names(amends), c("manifest_sha256", "number", "release_id")))) {
    refuse("window", "no release replaces itself, or one without windows")
  }
}

.check_signature_form <- function(signature) {
  if (is.null(signature)) return(invisible())
  if (!setequal(names(signature), c("algorithm", "key_id", "value")) || !identical(signature$algorithm, "ed25519") ||
    !.matches("^[0-9a-f]{16}$", signature$key_id) || !.matches("^[A-Za-z0-9+/]{85}[AQgw]==$", signature$value)) {
    refuse("signature", "it is no Ed25519 signature")
  }
}

.check_signature <- function(manifest, bytes, spans, public_keys) {
  if (is.null(manifest$signature)) refuse("signature", "the release is not signed")
  message <- with_null(bytes, spans, "signature")
  value <- openssl::base64_decode(manifest$signature$value)
  fits <- vapply(public_keys, function(path) {
    key <- openssl::read_pubkey(path)
    # What stands for TRUE is TRUE alone: a wrong signature is an error there.
    isTRUE(tryCatch(openssl::ed25519_verify(message, value, key), error = function(.) FALSE))
  }, TRUE)
  if (!any(fits)) refuse("signature", "none of the keys made it")
}

.withdrawal <- function(directory, manifest, bytes) {
  contents <- .file(directory, "withdrawn.json", 8192)
  if (is.null(contents)) return(NULL)
  stated <- tryCatch(read_canonical(contents, 8192)$value, suffice_refused = function(.) NULL)
  fields <- c("created", "format_version", "manifest_sha256", "reason", "release_id", "signature")
  if (is.null(stated) || !setequal(names(stated), fields) || !identical(stated$release_id, manifest$release_id) ||
    !identical(stated$manifest_sha256, sha256(bytes))) refuse("withdrawal", "what stands beside it is no withdrawal of it")
  stated$reason
}

# A statistic may state groups of its own, and then the number of its cells.
.states_groups <- function(entry) "groups" %in% names(entry) || "cells" %in% names(entry)
.n_cells <- function(entry, manifest) if (.states_groups(entry)) entry$cells else manifest$cells

.group_columns <- function(entry, manifest) {
  lapply(if (.states_groups(entry)) entry$groups else manifest$groups, function(group) {
    list(name = group$column, kind = if (identical(group$kind, "range")) "int64" else "text")
  })
}

.group_size <- function(group) {
  if (identical(group$kind, "range")) as.numeric(group$last) - as.numeric(group$first) + 1 else length(group$keys)
}

.cell_keys <- function(groups) {
  if (!length(groups)) return(data.frame(row.names = 1))
  keys <- lapply(groups, function(group) {
    if (identical(group$kind, "range")) as.numeric(group$first):as.numeric(group$last) else unlist(group$keys)
  })
  names(keys) <- vapply(groups, `[[`, "", "column")
  # The last column runs fastest.
  expand.grid(rev(keys), stringsAsFactors = FALSE, KEEP.OUT.ATTRS = FALSE)[rev(seq_along(keys))]
}

.values <- function(directory, manifest, statistic, file, keys) {
  data <- .file(directory, file$path, file$size)
  if (is.null(data)) refuse("files", "a data file is missing")
  if (length(data) != file$size) refuse("files", "a data file has another size")
  if (!identical(sha256(data), file$sha256)) refuse("files", "a data file has another SHA-256")
  if (.is_sampled(statistic)) return(.points(data, manifest, statistic, file, keys))
  components <- unlist(statistic$components)
  is_int <- statistic$value_type == "int64"
  groups <- .group_columns(statistic, manifest)
  columns <- c(groups, list(
    list(name = "component", kind = "text"), list(name = "value", kind = if (is_int) "int64" else "decimal"),
    list(name = "estimate", kind = "double")
  ))
  contents <- parquet_columns(data, columns, file$rows)
  n_components <- length(components)
  n_cells <- .n_cells(statistic, manifest)
  cells <- rep(seq_len(n_cells), each = n_components)
  for (at in seq_along(groups)) {
    expected <- keys[[at]][cells]
    wanted <- if (groups[[at]]$kind == "int64") int64_bytes(expected) else text_bytes(expected)
    if (!identical(contents[[at]], wanted)) refuse("data file", "its keys are others")
  }
  at <- length(groups)
  if (!identical(contents[[at + 1]], text_bytes(rep(components, n_cells)))) refuse("data file", "its components are others")
  width <- if (is_int) 8 else 16
  if (length(contents[[at + 2]]) != width * file$rows || length(contents[[at + 3]]) != 8 * file$rows) refuse("data file", "it lacks values")
  if (!is_int && !decimals_fit(contents[[at + 2]])) refuse("data file", "a value lies beyond the end of its type")
  values <- if (is_int) int64_numbers(contents[[at + 2]]) else decimal_numbers(contents[[at + 2]])
  estimates <- readBin(contents[[at + 3]], "double", file$rows, size = 8, endian = "little")
  unit <- if (is.null(statistic$partition_total)) 1 else as.numeric(statistic$partition_total)
  wanted <- values / unit
  # Of what a double holds exactly, exactly; beyond, to its last digits.
  near <- abs(estimates - wanted) <= ifelse(abs(values) <= 2^53 & unit <= 2^53, 0, 2^-50 * abs(wanted))
  if (anyNA(near) || !all(near)) refuse("data file", "its estimates do not follow from its values")
  matrix(values, ncol = n_components, byrow = TRUE, dimnames = list(NULL, components))
}

.points <- function(data, manifest, statistic, file, keys) {
  groups <- .group_columns(statistic, manifest)
  columns <- c(groups, list(list(name = "draw", kind = "int64"), list(name = "value", kind = "int64")))
  contents <- parquet_columns(data, columns, file$rows)
  n_cells <- .n_cells(statistic, manifest)
  cells <- rep(seq_len(n_cells), each = statistic$draws)
  for (at in seq_along(groups)) {
    expected <- keys[[at]][cells]
    wanted <- if (groups[[at]]$kind == "int64") int64_bytes(expected) else text_bytes(expected)
    if (!identical(contents[[at]], wanted)) refuse("data file", "its keys are others")
  }
  at <- length(groups)
  draws <- int64_bytes(rep(seq_len(statistic$draws) - 1, n_cells))
  if (!identical(contents[[at + 1]], draws)) refuse("data file", "its draws are counted otherwise")
  if (length(contents[[at + 2]]) != 8 * file$rows) refuse("data file", "it lacks values")
  points <- int64_numbers(contents[[at + 2]])
  most <- if (is.null(statistic$quantile)) statistic$grid else length(statistic$parameters$categories)
  if (anyNA(points) || any(points < 0 | points >= most)) refuse("data file", "a value is no point of its grid")
  matrix(points, ncol = statistic$draws, byrow = TRUE)
}
