#' Read a publication's manifest, checked: its id, its checksum, and the names of its files.
read_publication <- function(directory) {
  most <- 4 * 2^20
  bytes <- .file(directory, "manifest.json", most)
  if (is.null(bytes)) refuse("existence", "it has no manifest: nothing was published")
  document <- read_canonical(bytes, most)
  manifest <- document$value
  if (!identical(manifest$format_version, 1)) refuse("format_version", "this reader reads format 1")
  fields <- c(
    "checksum", "cost", "created", "diagnostics", "epsilon", "files", "format_version", "publication_id", "request",
    "signature", "title", "versions"
  )
  if (!setequal(setdiff(names(manifest), "rho"), fields)) refuse("fields", "a field is missing, or there is one more")
  if (!identical(manifest$checksum, sha256(with_null(bytes, document$spans, c("checksum", "signature"))))) {
    refuse("checksum", "its checksum does not fit")
  }
  request <- bytes[document$spans$request[1]:document$spans$request[2]]
  if (!identical(manifest$publication_id, substr(sha256(request), 1, 32))) refuse("request", "its id is not the hash of its request")
  for (file in manifest$files) {
    if (!.matches("^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$", file$name) || !identical(file$path, paste0(substr(file$sha256, 1, 32), "-", file$name))) {
      refuse("paths", "a file is not named by its content")
    }
  }
  manifest
}

#' Draws from a published posterior: of its CSV file, as this reader knows the Parquet of releases alone.
#' Where the publication has several, `name` says which: the statistic's.
published_draws <- function(directory, name = NULL) {
  manifest <- read_publication(directory)
  .published_table(directory, manifest, "draws", "-draws\\.csv$", name)
}

#' Cells that borrow strength, as they were published: `cells`, each beside itself alone, `populations`, and
#' `coefficients` of covariates, which is NULL where there are none.
published_pooled <- function(directory, name = NULL) {
  manifest <- read_publication(directory)
  ending <- "-coefficients\\.csv$"
  has_covariates <- any(grepl(ending, vapply(manifest$files, function(file) file$name, "")))
  list(
    cells = .published_table(directory, manifest, "summaries", "-summaries\\.csv$", name),
    populations = .published_table(directory, manifest, "summaries", "-pools\\.csv$", name),
    coefficients = if (has_covariates) .published_table(directory, manifest, "summaries", ending, name)
  )
}

# A table of a publication, of its CSV file.
.published_table <- function(directory, manifest, role, ending, name) {
  wanted <- Filter(function(file) file$role == role && file$format == "csv" && grepl(ending, file$name), manifest$files)
  if (!length(wanted)) stop("the publication has no such table as CSV: publish it with --formats csv", call. = FALSE)
  names <- sub(ending, "", vapply(wanted, function(file) file$name, ""))
  if (is.null(name) && length(names) == 1) name <- names
  if (is.null(name) || !name %in% names) {
    stop("name the table that is wanted, one of: ", paste(names, collapse = ", "), call. = FALSE)
  }
  file <- wanted[[match(name, names)]]
  data <- .file(directory, file$path, file$size)
  if (is.null(data) || length(data) != file$size || !identical(sha256(data), file$sha256)) {
    refuse("files", "a file is missing, or has another size or SHA-256")
  }
  .read_csv(rawToChar(data))
}

# Texts are quoted and numbers are not; read.csv by itself would take a key "NA" for a missing one, "007" for 7, "T"
# for TRUE, and true for a text.
.read_csv <- function(text) {
  Encoding(text) <- "UTF-8"
  columns <- ncol(utils::read.csv(text = text, nrows = 0, check.names = FALSE, encoding = "UTF-8"))
  start <- substr(text, 1, 1e6)
  fields <- regmatches(start, gregexpr('(?:^|,|\r?\n)(?:"(?:[^"]|"")*"|[^,\r\n"]*)', start, perl = TRUE))[[1]]
  first <- sub("^(,|\r?\n)", "", fields[columns + seq_len(columns)])
  utils::read.csv(
    text = text, check.names = FALSE, comment.char = "", encoding = "UTF-8", na.strings = character(0),
    colClasses = ifelse(startsWith(first, '"'), "character", ifelse(first %in% c("true", "false"), "logical", NA))
  )
}
