# Canonical JSON, read so strictly that the bytes need no writing again to be compared.

refuse <- function(check, rule) {
  stop(structure(
    class = c("suffice_refused", "error", "condition"),
    list(message = sprintf("the release is refused (%s): %s", check, rule), call = NULL, check = check)
  ))
}

.token <- paste0(
  '"[^"\\\\\\x00-\\x1f]*+(?:\\\\(?:["\\\\bfnrt]|u00(?:0[1-7bef]|1[0-9a-f]))[^"\\\\\\x00-\\x1f]*+)*+"',
  "|-?(?:0|[1-9][0-9]*+)|true|false|null|[{}\\[\\],:]"
)
.DEEPEST <- 64

# Returns the value, and as attributes of the whole: where the fields at the top begin and end, in bytes.
read_canonical <- function(bytes, most) {
  if (length(bytes) > most) refuse("canonical JSON", "it is too large")
  if (!length(bytes) || any(bytes == as.raw(0))) refuse("canonical JSON", "it is empty, or holds a zero byte")
  text <- rawToChar(bytes)
  if (!validUTF8(text)) refuse("canonical JSON", "it is not UTF-8")
  matches <- gregexpr(.token, text, perl = TRUE, useBytes = TRUE)[[1]]
  sizes <- attr(matches, "match.length")
  starts <- as.integer(matches)
  if (starts[1] != 1 || !identical(starts[-1], (starts + sizes)[-length(starts)]) ||
    sum(sizes) != length(bytes)) {
    refuse("canonical JSON", "it holds spaces, floats, escapes or other bytes that are not canonical")
  }
  Encoding(text) <- "bytes" # so that positions are those of bytes, whatever the locale is
  tokens <- substring(text, starts, starts + sizes - 1)
  Encoding(tokens) <- "UTF-8"
  # Before anything recurses: R does not do so deeply.
  is_opening <- tokens %in% c("{", "[")
  if (any(cumsum(is_opening - tokens %in% c("}", "]")) - is_opening > .DEEPEST)) refuse("canonical JSON", "it is nested too deeply")
  state <- new.env()
  state$tokens <- tokens
  state$at <- 1L
  state$spans <- list()
  state$starts <- starts
  state$sizes <- sizes
  value <- .value(state, 0)
  if (state$at != length(tokens) + 1) refuse("canonical JSON", "there is more after its end")
  if (!is.list(value) || is.null(attr(value, "object"))) refuse("canonical JSON", "it is no object")
  list(value = value, spans = state$spans)
}

.take <- function(state) {
  if (state$at > length(state$tokens)) refuse("canonical JSON", "it ends too early")
  token <- state$tokens[state$at]
  state$at <- state$at + 1L
  token
}

.value <- function(state, depth) {
  token <- .take(state)
  first <- substr(token, 1, 1)
  if (first == "{") return(.object(state, depth))
  if (first == "[") return(.array(state, depth))
  if (first == '"') return(.text(token))
  if (token == "null") return(NULL)
  if (token %in% c("true", "false")) return(token == "true")
  if (first %in% c("-", as.character(0:9))) {
    number <- if (nchar(token) <= 17) as.numeric(token) else Inf
    if (token == "-0" || abs(number) > 2^53 - 1) refuse("canonical JSON", "an integer is not within 2^53")
    return(number)
  }
  refuse("canonical JSON", "it is no JSON")
}

.object <- function(state, depth) {
  keys <- character(0)
  values <- list()
  if (identical(state$tokens[state$at], "}")) {
    state$at <- state$at + 1L
    return(structure(values, names = keys, object = TRUE))
  }
  repeat {
    key <- .take(state)
    if (substr(key, 1, 1) != '"' || .take(state) != ":") refuse("canonical JSON", "it is no JSON")
    key <- .text(key)
    keys <- c(keys, key)
    begin <- state$at
    values <- c(values, list(.value(state, depth + 1)))
    if (depth == 0) {
      end <- state$at - 1L
      state$spans[[key]] <- c(state$starts[begin], state$starts[end] + state$sizes[end] - 1)
    }
    token <- .take(state)
    if (token == "}") break
    if (token != ",") refuse("canonical JSON", "it is no JSON")
  }
  # UTF-8 sorts by bytes as it does by code points.
  if (anyDuplicated(keys) || !identical(order(keys, method = "radix"), seq_along(keys))) {
    refuse("canonical JSON", "its keys are not sorted, or one stands twice")
  }
  structure(values, names = keys, object = TRUE)
}

.array <- function(state, depth) {
  values <- list()
  if (identical(state$tokens[state$at], "]")) {
    state$at <- state$at + 1L
    return(values)
  }
  repeat {
    values[[length(values) + 1]] <- list(.value(state, depth + 1))
    token <- .take(state)
    if (token == "]") break
    if (token != ",") refuse("canonical JSON", "it is no JSON")
  }
  unlist(values, recursive = FALSE)
}

.text <- function(token) {
  text <- substr(token, 2, nchar(token, type = "chars") - 1)
  if (grepl("\\", text, fixed = TRUE)) text <- .unescaped(text)
  Encoding(text) <- "UTF-8"
  text
}

.unescaped <- function(text) {
  letters <- c(b = "\b", f = "\f", n = "\n", r = "\r", t = "\t")
  parts <- regmatches(text, gregexpr('\\\\(["\\\\bfnrt]|u00[0-9a-f]{2})', text, perl = TRUE))[[1]]
  plain <- vapply(parts, function(part) {
    kind <- substr(part, 2, 2)
    if (kind == "u") intToUtf8(strtoi(substr(part, 3, 6), 16L)) else if (kind %in% names(letters)) letters[[kind]] else kind
  }, "")
  regmatches(text, gregexpr('\\\\(["\\\\bfnrt]|u00[0-9a-f]{2})', text, perl = TRUE)) <- list(unname(plain))
  text
}

# The bytes of a document in which some fields at the top are null.
with_null <- function(bytes, spans, names) {
  cut <- spans[names]
  cut <- cut[order(vapply(cut, `[`, 0, 1))]
  parts <- list()
  position <- 1
  for (span in cut) {
    parts <- c(parts, list(bytes[seq_len(span[1] - position) + position - 1], charToRaw("null")))
    position <- span[2] + 1
  }
  do.call(c, c(parts, list(bytes[position:length(bytes)])))
}
