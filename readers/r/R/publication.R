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
  if (!setequal(names(manifest), fields)) refuse("fields", "a field is missing, or there is one more")
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
published_draws <- function(directory) {
  manifest <- read_publication(directory)
  wanted <- Filter(function(file) file$role == "draws" && file$format == "csv", manifest$files)
  if (!length(wanted)) stop("the publication has no draws as CSV: publish it with --formats csv", call. = FALSE)
  tables <- lapply(wanted, function(file) {
    data <- .file(directory, file$path, file$size)
    if (is.null(data) || length(data) != file$size || !identical(sha256(data), file$sha256)) {
      refuse("files", "a file is missing, or has another size or SHA-256")
    }
    utils::read.csv(text = rawToChar(data), check.names = FALSE, comment.char = "", encoding = "UTF-8")
  })
  do.call(rbind, tables)
}
