# Exact numbers: decimal text or p/q, compared without rounding. Digits stand in base 10,000, the lowest first.

.BASE <- 10000
.EXACT <- "^-?[0-9]+([.][0-9]+|/[1-9][0-9]*)?$"

.natural <- function(digits) {
  digits <- sub("^0+(?=.)", "", digits, perl = TRUE)
  ends <- seq(nchar(digits), 1, by = -4)
  as.numeric(substring(digits, pmax(ends - 3, 1), ends))
}

.carried <- function(x) {
  at <- 1
  while (at <= length(x)) {
    over <- x[at] %/% .BASE
    x[at] <- x[at] %% .BASE
    if (over > 0) x[at + 1] <- (if (at < length(x)) x[at + 1] else 0) + over
    at <- at + 1
  }
  while (length(x) > 1 && x[length(x)] == 0) x <- x[-length(x)]
  x
}

.times <- function(a, b) {
  product <- numeric(length(a) + length(b))
  for (at in seq_along(a)) {
    to <- at - 1 + seq_along(b)
    product[to] <- product[to] + a[at] * b
    if (at %% 1000 == 0) product <- c(.carried(product), numeric(length(a) + length(b)))[seq_along(product)]
  }
  .carried(product)
}

.plus <- function(a, b) {
  size <- max(length(a), length(b))
  .carried(c(a, numeric(size - length(a))) + c(b, numeric(size - length(b))))
}

.compare <- function(a, b) {
  if (length(a) != length(b)) return(sign(length(a) - length(b)))
  differs <- which(a != b)
  if (!length(differs)) 0 else sign((a - b)[max(differs)])
}

# Returns list(negative, numerator, denominator).
exact <- function(text) {
  if (!is.character(text) || length(text) != 1 || nchar(text) > 1000 ||
    !grepl(.EXACT, text)) {
    refuse("noise", "a number is not exact")
  }
  negative <- startsWith(text, "-")
  text <- sub("-", "", text, fixed = TRUE)
  if (grepl("/", text, fixed = TRUE)) {
    parts <- strsplit(text, "/", fixed = TRUE)[[1]]
    return(list(negative = negative, numerator = .natural(parts[1]), denominator = .natural(parts[2])))
  }
  parts <- strsplit(text, ".", fixed = TRUE)[[1]]
  fraction <- if (length(parts) > 1) parts[2] else ""
  list(
    negative = negative,
    numerator = .natural(paste0(parts[1], fraction)),
    denominator = .natural(paste0("1", strrep("0", nchar(fraction))))
  )
}

is_positive <- function(x) !x$negative && any(x$numerator != 0)

# Whether a <= b, of numbers that are not negative.
at_most <- function(a, b) {
  .compare(.times(a$numerator, b$denominator), .times(b$numerator, a$denominator)) <= 0
}

exact_sum <- function(numbers) {
  Reduce(function(a, b) {
    list(
      negative = FALSE,
      numerator = .plus(.times(a$numerator, b$denominator), .times(b$numerator, a$denominator)),
      denominator = .times(a$denominator, b$denominator)
    )
  }, numbers)
}

exact_product <- function(a, b) {
  list(
    negative = a$negative != b$negative,
    numerator = .times(a$numerator, b$numerator),
    denominator = .times(a$denominator, b$denominator)
  )
}

as_double <- function(text) {
  if (!grepl("/", text, fixed = TRUE)) return(as.numeric(text))
  parts <- as.numeric(strsplit(text, "/", fixed = TRUE)[[1]])
  parts[1] / parts[2]
}
