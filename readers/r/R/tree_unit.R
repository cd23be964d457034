# What the whole numbers of a tree stand for: records, or steps of a total of values that were clipped at a public bound.
# An odd number of steps of the lattice is joined to one, as many as leave the least noisy level's scale 16; as in the package.

.STEPS_PER_SCALE <- 16
.COUNTED <- c("bernoulli", "categorical")
.SUMMED <- c("binomial", "poisson", "geometric", "negative_binomial", "exponential")

# A lattice step of the first component in the column's unit; NULL where that is no total from 0 on.
.total_step <- function(entry) {
  if (!entry$family %in% .SUMMED) return(NULL)
  total <- Filter(function(quantity) quantity$name == "total", entry$quantities)[[1]]
  is_first <- identical(names(total$coefficients), unlist(entry$components)[1]) && total$public_n_coefficient == "0"
  if (is_first) as_double(total$coefficients[[1]]) else NULL
}

.tree_unit <- function(entries) {
  step <- .total_step(entries[[1]])
  if (is.null(step)) return(list(steps = 1, step = 1, size = 1, upper = NULL))
  least <- min(vapply(entries, function(entry) as_double(entry$scale), 0))
  steps <- max(1, floor(least / .STEPS_PER_SCALE))
  steps <- steps - (steps + 1) %% 2
  list(steps = steps, step = step, size = steps * step, upper = entries[[1]]$parameters$upper)
}

# The ends of an interval in the column's unit, with all that rounds to them.
.unit_ends <- function(unit, lower, upper) {
  half <- unit$steps %/% 2
  list(lower = pmax(unit$steps * lower - half, 0) * unit$step, upper = (unit$steps * upper + half) * unit$step)
}

# What has to be said of totals.
.unit_notes <- function(unit) {
  if (is.null(unit$upper)) return(character())
  clipped <- paste0("Totals are of values clipped to 0..", unit$upper, ".")
  if (unit$steps == 1) return(clipped)
  c(clipped, sprintf(
    "Totals and released values are rounded to steps of %s, at most 1/%d of the noise's scale; intervals are half a step wider on either side.",
    format(unit$size, digits = 4), .STEPS_PER_SCALE
  ))
}
