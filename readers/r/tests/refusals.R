# Read every release of a folder, and its tables: Rscript tests/refusals.R FOLDER. A line for each says how it went.

here <- dirname(sub("--file=", "", grep("^--file=", commandArgs(), value = TRUE)))
source(file.path(here, "support.R"))

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
