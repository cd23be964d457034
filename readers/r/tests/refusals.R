# Read every release of a folder, and its tables: Rscript tests/refusals.R FOLDER. A line for each says how it went.

library(jsonlite)
arguments <- commandArgs(trailingOnly = TRUE)
here <- dirname(sub("--file=", "", grep("--file=", commandArgs(), value = TRUE)))
for (file in sort(list.files(file.path(here, "..", "R"), full.names = TRUE))) source(file, encoding = "UTF-8")

for (name in list.files(arguments[1])) {
  outcome <- tryCatch(
    {
      release <- read_release(file.path(arguments[1], name))
      for (statistic in names(release$values)) release_table(release, statistic)
      "read"
    },
    suffice_refused = function(condition) "refused",
    error = function(error) paste("ended in an error:", conditionMessage(error)),
    warning = function(warning) paste("warned:", conditionMessage(warning))
  )
  cat(name, " ", gsub("\n", " ", outcome), "\n", sep = "")
}
