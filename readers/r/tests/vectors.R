# Hold the reader against the test vectors: Rscript tests/vectors.R VECTORS. The exit status is 1 where it fails.

library(jsonlite)
arguments <- commandArgs(trailingOnly = TRUE)
vectors <- arguments[1]
here <- dirname(sub("--file=", "", grep("--file=", commandArgs(), value = TRUE)))
for (file in sort(list.files(file.path(here, "..", "R"), full.names = TRUE))) source(file, encoding = "UTF-8")

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
n_rows <- 0
for (vector in index) {
  folder <- file.path(vectors, "valid", vector$name)
  keys <- if (isTRUE(vector$signed) && has_openssl) key
  release <- tryCatch(read_release(file.path(folder, "release"), public_keys = keys), error = function(error) error)
  if (inherits(release, "error")) {
    complain(vector$name, ": ", conditionMessage(release))
    next
  }
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
    for (column in names(release$keys)) {
      if (!identical(as.character(table[[column]]), vapply(stated$rows, function(row) as.character(row[[column]]), ""))) complain(vector$name, ": keys")
    }
  }
}

for (vector in index) {
  folder <- file.path(vectors, "valid", vector$name)
  expected <- read_json(file.path(folder, "expected.json"))
  release <- read_release(file.path(folder, "release"))
  for (statistic in names(expected$samples)) {
    stated <- expected$samples[[statistic]]
    found <- release_samples(release, statistic)
    wanted <- vapply(stated, function(row) as.numeric(row$value), 0)
    if (nrow(found) != length(stated) || any(abs(found$value - wanted) > 1e-12 * abs(wanted))) complain(vector$name, " ", statistic, ": draws")
    if (!identical(as.numeric(found$draw), vapply(stated, function(row) as.numeric(row$draw), 0))) complain(vector$name, " ", statistic, ": numbers of draws")
    for (column in names(release$keys)) {
      if (!identical(as.character(found[[column]]), vapply(stated, function(row) as.character(row[[column]]), ""))) complain(vector$name, ": keys of draws")
    }
    refused <- tryCatch({ release_table(release, statistic); FALSE }, error = function(error) grepl("posterior sample", conditionMessage(error)))
    if (!refused) complain(vector$name, " ", statistic, ": a table of a sample")
  }
}

hostile <- read_json(file.path(vectors, "hostile.json"))$hostile
refused <- 0
for (vector in hostile) {
  # A reader that compiles no plan refuses the others by the signature.
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
  if (!identical(outcome, expected)) complain(vector$name, ": expected ", expected, ", found ", outcome) else refused <- refused + 1
}
if (length(arguments) > 2) {
  draws <- published_draws(arguments[3])
  cat(sprintf("%d draws of %s\n", nrow(draws), paste(unique(draws$parameter), collapse = ", ")))
}
cat(sprintf("%d valid vectors, %d rows of tables; %d hostile ones refused\n", length(index), n_rows, refused))
if (length(wrong)) {
  cat(unique(wrong), sep = "\n")
  quit(status = 1)
}
