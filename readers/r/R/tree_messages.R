# Messages over whole numbers: weights on a window from `low` on, which add up to 1; as in the package.

.TAIL <- 1e-12

# Cut where at most a share .TAIL of all is outside on either side, and divide by the sum.
.normalised <- function(low, weights) {
  total <- sum(weights)
  kept <- range(which(weights > .TAIL / length(weights) * total))
  list(low = low + kept[1] - 1, weights = weights[kept[1]:kept[2]] / total, log_sum = log(total))
}

.placed <- function(low, weights, on, width) {
  placed <- numeric(width)
  at <- low - on + seq_along(weights)
  inside <- at >= 1 & at <= width
  placed[at[inside]] <- weights[inside]
  placed
}

.at_most_one <- function(weights) if (any(weights > 0)) weights / max(weights) else weights

# The sum of two parts, with what its way back needs.
.summed <- function(left, right) {
  width <- length(left$weights) + length(right$weights) - 1
  length <- stats::nextn(width, c(2, 3, 5))
  spectra <- lapply(list(left, right), function(part) stats::fft(c(part$weights, numeric(length - length(part$weights)))))
  sums <- Re(stats::fft(spectra[[1]] * spectra[[2]], inverse = TRUE))[seq_len(width)] / length
  c(.normalised(left$low + right$low, pmax(sums, 0)), list(left = left, right = right, spectra = spectra, width = width))
}

# What the rest says of both parts, on their windows, from what it says of the sum.
.divided <- function(part, outside) {
  padded <- .placed(part$low, outside, part$left$low + part$right$low, length(part$spectra[[1]]))
  spectrum <- stats::fft(padded)
  correlated <- function(other, width) {
    .at_most_one(pmax(Re(stats::fft(spectrum * Conj(other), inverse = TRUE))[seq_len(width)], 0))
  }
  list(correlated(part$spectra[[2]], length(part$left$weights)), correlated(part$spectra[[1]], length(part$right$weights)))
}

# Add parts two by two; the last may be left alone.
.added <- function(parts) {
  log_sum <- 0
  while (length(parts) > 1) {
    pairs <- seq_len(length(parts) %/% 2)
    sums <- lapply(pairs, function(at) .summed(parts[[2 * at - 1]], parts[[2 * at]]))
    log_sum <- log_sum + sum(vapply(sums, `[[`, 0, "log_sum"))
    parts <- c(sums, if (length(parts) %% 2) parts[length(parts)])
  }
  list(part = parts[[1]], log_sum = log_sum)
}

# Multiply a message by the chance of its node's released value.
.with_noise <- function(low, weights, value, scale) {
  apart <- abs(low + seq_along(weights) - 1 - value)
  nearest <- min(apart[weights > 0])
  list(weights = ifelse(weights > 0, weights * exp((nearest - apart) / scale), 0), highest = log(tanh(0.5 / scale)) - nearest / scale)
}
