# The subset of Parquet that data files of format 1 are written in; every byte has to be accounted for.

.thrift <- function(data, position, end) {
  state <- new.env()
  state$data <- as.integer(data)
  state$position <- position
  state$end <- end
  state
}

.malformed <- function() refuse("data file", "it is no readable Parquet file, or not one of this format")

.byte <- function(state) {
  if (state$position > state$end) .malformed()
  state$position <- state$position + 1
  state$data[state$position - 1]
}

.unsigned <- function(state) {
  number <- 0
  for (shift in 0:9) {
    byte <- .byte(state)
    number <- number + (byte %% 128) * 128^shift
    if (byte < 128) return(number)
  }
  .malformed()
}

.integer <- function(state) {
  number <- .unsigned(state)
  if (number %% 2) -(number + 1) / 2 else number / 2
}

.struct <- function(state, depth = 0) {
  if (depth > 12) .malformed()
  fields <- list()
  number <- 0
  repeat {
    head <- .byte(state)
    if (head == 0) break
    step <- head %/% 16
    number <- if (step) number + step else .integer(state)
    key <- as.character(number)
    if (!is.null(fields[[key]])) .malformed()
    fields[[key]] <- .field(state, head %% 16, depth)
  }
  fields
}

.field <- function(state, kind, depth) {
  if (kind %in% 1:2) return(kind == 1)
  if (kind == 3) return(.byte(state))
  if (kind %in% 4:6) return(.integer(state))
  if (kind == 8) {
    size <- .unsigned(state)
    if (size > state$end - state$position + 1) .malformed()
    taken <- state$data[seq_len(size) + state$position - 1]
    state$position <- state$position + size
    return(structure(list(rawToChar(as.raw(taken[taken != 0]))), text = TRUE))
  }
  if (kind == 9) {
    head <- .byte(state)
    size <- if (head %/% 16 < 15) head %/% 16 else .unsigned(state)
    if (size > state$end - state$position + 1 || depth > 12) .malformed()
    return(lapply(seq_len(size), function(.) .field(state, head %% 16, depth + 1)))
  }
  if (kind == 12) return(.struct(state, depth + 1))
  .malformed()
}

.is <- function(value, ...) {
  expected <- c(...)
  is.numeric(value) && length(value) == 1 && value == expected
}
.only <- function(fields, needed, allowed = character(0)) {
  all(needed %in% names(fields)) && all(names(fields) %in% c(needed, allowed))
}
.named <- function(value, name) is.list(value) && length(value) == 1 && identical(enc2utf8(.utf8(value[[1]])), enc2utf8(name))
.utf8 <- function(text) {
  Encoding(text) <- "UTF-8"
  text
}

ROW_GROUP <- 2^20

# columns: a list of list(name, kind), kind one of "int64", "double", "text", "decimal". Returns each
# column's bytes, list by column, of all row groups behind each other.
parquet_columns <- function(data, columns, n_rows) {
  size <- length(data)
  bad <- function(rule) refuse("data file", rule)
  magic <- charToRaw("PAR1")
  if (size < 12 || !identical(data[1:4], magic) || !identical(data[size - 3:0], magic)) bad("it is no Parquet file")
  footer <- sum(as.integer(data[size - 7:4]) * 256^(0:3))
  begin <- size - 8 - footer + 1
  if (begin < 5) bad("its footer is too long")
  state <- .thrift(data, begin, size - 8)
  meta <- .struct(state)
  if (!.only(meta, c("1", "2", "3", "4"), c("6", "7")) || state$position != size - 7) bad("its footer says more than the format has")
  schema <- meta[["2"]]
  if (length(schema) != length(columns) + 1 || !.is(schema[[1]][["5"]], length(columns))) bad("its columns are others")
  types <- c(int64 = 2, double = 5, text = 6, decimal = 7)
  for (at in seq_along(columns)) {
    field <- schema[[at + 1]]
    kind <- columns[[at]]$kind
    right <- .named(field[["4"]], columns[[at]]$name) && .is(field[["1"]], types[[kind]]) && .is(field[["3"]], 0) && is.null(field[["5"]])
    if (kind == "decimal") {
      right <- right && .is(field[["2"]], 16) && .is(field[["8"]], 38) && (is.null(field[["7"]]) || .is(field[["7"]], 0))
    }
    if (!right) bad("its columns are others")
  }
  groups <- meta[["4"]]
  sizes <- pmin(ROW_GROUP, n_rows - ROW_GROUP * (seq_len(ceiling(n_rows / ROW_GROUP)) - 1))
  if (!.is(meta[["3"]], n_rows) || length(groups) != length(sizes)) bad("its rows or row groups are others")
  contents <- lapply(columns, function(.) list())
  position <- 5
  for (group in seq_along(groups)) {
    of_group <- groups[[group]]
    if (!.only(of_group, c("1", "2", "3"), c("5", "6", "7")) || !.is(of_group[["3"]], sizes[group]) ||
      length(of_group[["1"]]) != length(columns)) bad("its row groups are others")
    for (at in seq_along(columns)) {
      chunk <- of_group[["1"]][[at]]
      column <- chunk[["3"]]
      if (!.only(chunk, "3", "2") || !.only(column, as.character(c(1:7, 9)), c("13", "16")) ||
        !.is(column[["1"]], types[[columns[[at]]$kind]]) || !.is(column[["4"]], 0) || !.is(column[["5"]], sizes[group]) ||
        !.is(column[["6"]], column[["7"]]) || !.is(column[["9"]], position - 1) ||
        !all(unlist(column[["2"]]) %in% c(0, 3)) || length(column[["3"]]) != 1 ||
        !.named(column[["3"]][[1]], columns[[at]]$name)) bad("a column is compressed, encoded, or out of place")
      end <- position + column[["7"]]
      if (column[["7"]] < 1 || end > begin) bad("a column is out of place")
      contents[[at]] <- c(contents[[at]], .pages(data, position, end, sizes[group]))
      position <- end
    }
  }
  if (position != begin) bad("it holds bytes of no column")
  lapply(contents, function(parts) do.call(c, parts))
}

.pages <- function(data, position, end, rows) {
  bad <- function() refuse("data file", "a page is compressed, encoded, empty, or not of the format's kind")
  parts <- list()
  while (position < end && rows > 0) {
    last <- min(end - 1, position + 63)
    state <- .thrift(data[position:last], 1, last - position + 1)
    page <- .struct(state)
    held <- page[["5"]]
    if (!.only(page, c("1", "2", "3", "5")) || !.is(page[["1"]], 0) || !.is(page[["2"]], page[["3"]]) ||
      !is.list(held) || !.only(held, c("1", "2"), c("3", "4", "5")) || !.is(held[["2"]], 0) || length(held[["5"]])) bad()
    start <- position + state$position - 1
    size <- page[["3"]]
    if (size < 1 || held[["1"]] < 1 || start + size > end) bad()
    parts <- c(parts, list(data[seq_len(size) + start - 1]))
    position <- start + size
    rows <- rows - held[["1"]]
    if (rows > 0 && size < 8192) bad()
  }
  if (position != end || rows != 0) bad()
  parts
}

int64_numbers <- function(bytes) {
  words <- readBin(bytes, "integer", length(bytes) / 4, size = 4, endian = "little")
  low <- words[c(TRUE, FALSE)]
  high <- words[c(FALSE, TRUE)]
  low <- ifelse(is.na(low), 2^31, ifelse(low < 0, low + 2^32, low))
  high <- ifelse(is.na(high), -2^31, high)
  high * 2^32 + low
}

decimal_numbers <- function(bytes) {
  cells <- matrix(as.integer(bytes), nrow = 16)
  negative <- cells[1, ] >= 128
  # Of a negative number the complement, so that no digits cancel.
  cells[, negative] <- 255 - cells[, negative]
  number <- colSums(cells * 256^(15:0))
  ifelse(negative, -number - 1, number)
}

# Whether each lies within 38 digits, byte by byte.
decimals_fit <- function(bytes) {
  cells <- matrix(as.integer(bytes), nrow = 16)
  negative <- cells[1, ] >= 128
  cells[, negative] <- 255 - cells[, negative] # of -x it is x - 1
  most <- c(0x4b, 0x3b, 0x4c, 0xa8, 0x5a, 0x86, 0xc4, 0x7a, 0x09, 0x8a, 0x22, 0x3f, 0xff, 0xff, 0xff, 0xff)
  fits <- function(cell, limit) {
    differs <- which(cell != limit)
    !length(differs) || cell[differs[1]] < limit[differs[1]]
  }
  least <- replace(most, 16, 0xfe)
  all(vapply(seq_len(ncol(cells)), function(at) fits(cells[, at], if (negative[at]) least else most), TRUE))
}

text_bytes <- function(texts) {
  do.call(c, lapply(texts, function(text) {
    bytes <- charToRaw(enc2utf8(text))
    c(as.raw(floor(length(bytes) / 256^(0:3)) %% 256), bytes)
  }))
}

int64_bytes <- function(numbers) {
  as.raw(as.vector(vapply(numbers, function(number) floor(number / 256^(0:7)) %% 256, numeric(8))))
}
