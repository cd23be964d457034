# Posteriors of every statistic of every release of a folder: Rscript tests/posteriors.R FOLDER. A line for each
# parameter: release, statistic, prior, mean, sd.

here <- dirname(sub("--file=", "", grep("^--file=", commandArgs(), value = TRUE)))
source(file.path(here, "support.R"))

for (name in list.files(arguments[1])) {
  release <- read_release(file.path(arguments[1], name))
  for (statistic in names(release$values)) {
    posterior <- release_posterior(release, statistic)
    numbers <- sprintf("%.12g|%.12g", mean(posterior), posterior_sd(posterior))
    cat(paste(name, statistic, posterior$prior, numbers, sep = "|"), sep = "\n")
  }
}
