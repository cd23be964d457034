# What the scripts share: the package's code, their arguments, and JSON without a package. A warning is an error.

options(warn = 2)

arguments <- grep("^--file=", commandArgs(trailingOnly = TRUE), value = TRUE, invert = TRUE)
for (file in sort(list.files(file.path(here, "..", "R"), full.names = TRUE))) source(file, encoding = "UTF-8")

# JSON of our own making, as R code of lists.
read_json <- function(path) {
  text <- paste(readLines(path, encoding = "UTF-8", warn = FALSE), collapse = "\n")
  form <- '"(?:[^"\\\\]|\\\\.)*"|-?[0-9][0-9.eE+-]*|true|false|null|[][{}:,]'
  tokens <- regmatches(text, gregexpr(form, text, perl = TRUE))[[1]]
  code <- c("[" = "list(", "{" = "list(", "]" = ")", "}" = ")", ":" = "=", true = "TRUE", false = "FALSE", null = "NULL")
  is_word <- tokens %in% names(code)
  tokens[is_word] <- code[tokens[is_word]]
  eval(parse(text = tokens, keep.source = FALSE, encoding = "UTF-8"), baseenv())
}
