# Priors by their text, as Python and the command line take them. Nothing is evaluated.

# A question that cannot be answered: a condition of class `suffice_usage`.
.usage <- function(...) {
  stop(structure(class = c("suffice_usage", "error", "condition"), list(message = paste0(...), call = NULL)))
}

# A name of someone else's, as it may be shown: one line, cut, without control characters.
.shown <- function(text) {
  plain <- gsub("[[:cntrl:]\u2028\u2029\u202a-\u202e\u2066-\u2069]", "?", text, perl = TRUE)
  ifelse(nchar(plain) > 80, paste0(substr(plain, 1, 77), "..."), plain)
}

.wrong_prior <- function(text, rule) .usage("the prior ", .shown(text), ": ", rule)

# A number as Python and JavaScript write it: the fewest digits that give it back.
.number_text <- function(number) {
  digits <- 1
  while (digits < 17 && as.numeric(formatC(number, digits = digits, format = "g")) != number) digits <- digits + 1
  exponent <- if (number == 0) 0 else floor(log10(abs(number)))
  if (exponent >= -6 && exponent < 21) {
    text <- formatC(number, digits = max(digits - 1 - exponent, 0), format = "f")
    return(if (grepl(".", text, fixed = TRUE)) sub("[.]?0+$", "", text) else text)
  }
  formatC(number, digits = digits, format = "g")
}
.call_text <- function(name, numbers) paste0(name, "(", paste(vapply(numbers, .number_text, ""), collapse = ", "), ")")

# Log densities along the line of the parameter: the logit of a probability, the logarithm of a rate.
.log_logistic <- function(t) -(pmax(-t, 0) + log1p(exp(-abs(t))))
.KINDS <- list(
  Beta = list(
    names = c("concentration1", "concentration0"),
    log = function(t, numbers) {
      -lbeta(numbers[1], numbers[2]) + numbers[1] * .log_logistic(t) + numbers[2] * .log_logistic(-t)
    },
    start = function(numbers) c(at = log(numbers[1] / numbers[2]), width = sqrt(1 / numbers[1] + 1 / numbers[2]))
  ),
  Gamma = list(
    names = c("concentration", "rate"),
    log = function(t, numbers) {
      numbers[1] * log(numbers[2]) - lgamma(numbers[1]) + numbers[1] * t - numbers[2] * exp(t)
    },
    start = function(numbers) c(at = log(numbers[1] / numbers[2]), width = sqrt(1 / numbers[1]))
  )
)
.LIMITS <- list(Beta = cbind(c(1e-3, 1e9), c(1e-3, 1e9)), Gamma = cbind(c(1e-3, 1e9), c(1e-40, 1e40)))

# A prior of one parameter: its canonical text, its components with their weights, and its log density along the line.
.parse_prior <- function(text, kind) {
  call <- .parse_call(text)
  if (call$name == "Mixture") {
    if (length(call$keywords) || !length(call$values) || length(call$values) %% 2) {
      .wrong_prior(text, "Mixture takes weights and priors in turn")
    }
    odd <- seq(1, length(call$values), by = 2)
    weights <- call$values[odd]
    is_weight <- vapply(weights, function(weight) is.numeric(weight) && is.finite(weight) && weight > 0, TRUE)
    if (!all(is_weight) || !all(vapply(call$values[odd + 1], is.list, TRUE))) {
      .wrong_prior(text, "Mixture takes weights, finite numbers above 0, and priors in turn")
    }
    numbers <- lapply(call$values[odd + 1], .numbers_of, kind = kind, text = text)
    parts <- paste(vapply(weights, .number_text, ""), vapply(numbers, .call_text, "", name = kind), sep = ", ")
    whole <- if (length(parts) == 1) .call_text(kind, numbers[[1]]) else paste0("Mixture(", paste(parts, collapse = ", "), ")")
    return(.mixture(kind, whole, unlist(weights), numbers))
  }
  if (call$name == "SpreadGamma" && kind == "Gamma") return(.spread(call, text))
  numbers <- .numbers_of(call, kind, text)
  .mixture(kind, .call_text(kind, numbers), 1, list(numbers))
}

.mixture <- function(kind, text, weights, numbers) {
  log_shares <- log(weights / sum(weights))
  log <- function(t) {
    terms <- Map(function(share, each) share + .KINDS[[kind]]$log(t, each), log_shares, numbers)
    Reduce(.log_add, terms)
  }
  list(text = text, components = numbers, log = log)
}

# Gamma(3, 2 v upper), of ten scales v up to 1.
.spread <- function(call, text) {
  upper <- c(call$values, call$keywords["upper"])[[1]]
  if (length(call$values) + length(call$keywords) != 1 || !is.numeric(upper) || upper < 1e-30 || upper > 1e30) {
    .wrong_prior(text, "SpreadGamma takes exactly (upper), a number in 1e-30..1e30")
  }
  scales <- 10^(-0.6 * (9:0))
  weights <- 0.25 / 10 + 0.75 * sqrt(scales) / sum(sqrt(scales))
  .mixture("Gamma", .call_text("SpreadGamma", upper), weights, lapply(scales, function(scale) c(3, 2 * scale * upper)))
}

.numbers_of <- function(call, kind, text) {
  names <- .KINDS[[kind]]$names
  if (call$name != kind) .wrong_prior(text, paste0("this family takes ", kind, ", or a Mixture of such"))
  given <- c(stats::setNames(call$values, names[seq_along(call$values)]), call$keywords)
  if (length(given) != length(names) || !setequal(names(given), names)) {
    .wrong_prior(text, paste0(kind, " takes exactly (", paste(names, collapse = ", "), ")"))
  }
  limits <- .LIMITS[[kind]]
  vapply(seq_along(names), function(at) {
    value <- given[[names[at]]]
    if (!is.numeric(value) || !is.finite(value) || value < limits[1, at] || value > limits[2, at]) {
      .wrong_prior(text, sprintf("%s must be a number in %g..%g", names[at], limits[1, at], limits[2, at]))
    }
    value
  }, 0)
}

.parse_dirichlet <- function(text, size) {
  call <- .parse_call(text)
  numbers <- call$values
  if (call$name != "Dirichlet" || length(call$keywords) || !length(numbers)) {
    .wrong_prior(text, "this family takes Dirichlet with one number, or one for each category")
  }
  if (!all(vapply(numbers, function(number) is.numeric(number) && number >= 1e-6 && number <= 1e9, TRUE))) {
    .wrong_prior(text, "every concentration must lie in 1e-6..1e9")
  }
  if (!length(numbers) %in% c(1, size)) .wrong_prior(text, paste("there are", size, "categories"))
  list(text = .call_text("Dirichlet", unlist(numbers)), concentrations = rep_len(unlist(numbers), size))
}

# A prior of N: Reciprocal(max), Uniform(lower, upper), or a number that is known.
.parse_n_prior <- function(given) {
  rule <- "a prior of N is a whole number, Uniform(lower, upper) or Reciprocal(max), of whole numbers up to 10^15"
  if (is.numeric(given) && length(given) == 1 && !is.na(given)) given <- format(given, scientific = FALSE, digits = 17)
  if (is.character(given) && length(given) == 1 && grepl("^[0-9]{1,16}$", given)) return(.fixed_n(as.numeric(given)))
  call <- .parse_call(given)
  names <- list(Reciprocal = "max", Uniform = c("lower", "upper"))[[call$name]]
  values <- c(stats::setNames(call$values, names[seq_along(call$values)]), call$keywords)
  if (is.null(names) || length(values) != length(names) || !setequal(names(values), names)) .wrong_prior(given, rule)
  values <- values[names]
  is_whole <- vapply(values, function(value) is.numeric(value) && value %in% floor(value) && value >= 0 && value <= 1e15, TRUE)
  if (!all(is_whole)) .wrong_prior(given, rule)
  if (call$name == "Reciprocal") return(.reciprocal(values[[1]]))
  if (values$lower > values$upper) .wrong_prior(given, "lower must be at most upper")
  list(
    text = .call_text("Uniform", values), low = values$lower, high = values$upper,
    log = function(n) rep(-log(values$upper - values$lower + 1), length(n))
  )
}

.fixed_n <- function(n) list(text = .number_text(n), low = n, high = n, log = function(n) numeric(length(n)))

.reciprocal <- function(max) {
  total <- log(digamma(max + 2) - digamma(1))
  list(text = .call_text("Reciprocal", max), low = 0, high = max, log = function(n) -log1p(n) - total)
}

# One call: its name, numbers or calls in order (`values`), and numbers by keyword.
.parse_call <- function(text) {
  if (!is.character(text) || length(text) != 1 || is.na(text) || nchar(text) > 20000) {
    .usage("a prior is a text such as Beta(1, 9)")
  }
  form <- "[A-Za-z_][A-Za-z_0-9]*|[-+]?(?:[0-9]+\\.?[0-9]*|\\.[0-9]+)(?:[eE][-+]?[0-9]+)?|[(),=]|\\S"
  tokens <- c(regmatches(text, gregexpr(form, text, perl = TRUE))[[1]], "")
  at <- 1
  wrong <- function() .wrong_prior(text, "write a name with its numbers, as in Beta(1, 9)")
  is_name <- function(token) grepl("^[A-Za-z_]", token)
  take <- function(expected) {
    if (!identical(tokens[at], expected)) wrong()
    at <<- at + 1
  }
  argument <- function(depth) {
    token <- tokens[at]
    if (is_name(token)) return(call(depth + 1))
    if (!grepl("^[-+.]?[0-9]|^[-+][.][0-9]", token)) wrong()
    at <<- at + 1
    as.numeric(token)
  }
  call <- function(depth) {
    name <- tokens[at]
    if (depth > 2 || !is_name(name)) wrong()
    at <<- at + 1
    take("(")
    values <- list()
    keywords <- list()
    while (!identical(tokens[at], ")")) {
      if (is_name(tokens[at]) && identical(tokens[at + 1], "=")) {
        key <- tokens[at]
        at <<- at + 2
        if (key %in% names(keywords)) .wrong_prior(text, "every number is given once")
        keywords[[key]] <- argument(depth)
      } else if (length(keywords)) {
        wrong()
      } else {
        values <- c(values, list(argument(depth)))
      }
      if (identical(tokens[at], ",")) at <<- at + 1 else if (!identical(tokens[at], ")")) wrong()
    }
    take(")")
    list(name = name, values = values, keywords = keywords)
  }
  whole <- call(0)
  if (at != length(tokens)) wrong()
  whole
}

.log_add <- function(a, b) {
  top <- pmax(a, b)
  ifelse(top == -Inf, -Inf, top + log1p(exp(pmin(a, b) - top)))
}
