# SHA-256: by R 4.5's tools or by openssl where they are, else in plain R, some 3,000 times slower but right.

sha256 <- function(bytes) {
  if (exists("sha256sum", asNamespace("tools"), inherits = FALSE)) {
    return(getExportedValue("tools", "sha256sum")(bytes = bytes))
  }
  if (requireNamespace("openssl", quietly = TRUE)) {
    return(paste(as.character(unclass(openssl::sha256(bytes))), collapse = ""))
  }
  sha256_plain(bytes)
}

# Words are doubles below 2^32, since an integer of R has no place for 2^31; bitwAnd and its like take their halves.
sha256_plain <- function(bytes) {
  size <- length(bytes)
  padding <- as.raw(c(0x80, rep(0, (55 - size) %% 64)))
  bits <- as.integer(floor(8 * size / 256^(7:0)) %% 256)
  data <- as.integer(c(bytes, padding, as.raw(bits)))
  words <- .sha256_schedule(matrix(colSums(matrix(data, nrow = 4) * 256^(3:0)), nrow = 16)) + .sha256_constants
  state <- .sha256_start
  for (block in seq_len(ncol(words))) state <- .sha256_block(state, words[, block])
  paste(sprintf("%04x%04x", as.integer(state %/% 65536), as.integer(state %% 65536)), collapse = "")
}

.halves <- function(words) as.integer(c(words %/% 65536, words %% 65536))
.rotate <- function(words, by) words %/% 2^by + words %% 2^by * 2^(32 - by)

# The 64 words of every block: a column each, all blocks at once.
.sha256_schedule <- function(words) {
  n <- ncol(words)
  mix <- function(a, b, c) {
    mixed <- bitwXor(bitwXor(.halves(a), .halves(b)), .halves(c))
    mixed[seq_len(n)] * 65536 + mixed[-seq_len(n)]
  }
  w <- rbind(words, matrix(0, 48, n))
  for (t in 17:64) {
    a <- w[t - 15, ]
    b <- w[t - 2, ]
    small0 <- mix(.rotate(a, 7), .rotate(a, 18), a %/% 2^3)
    small1 <- mix(.rotate(b, 17), .rotate(b, 19), b %/% 2^10)
    w[t, ] <- (w[t - 16, ] + small0 + w[t - 7, ] + small1) %% 2^32
  }
  w
}

.primes <- function(count) {
  primes <- integer(0)
  candidate <- 2L
  while (length(primes) < count) {
    if (all(candidate %% primes[primes <= sqrt(candidate)] != 0)) primes <- c(primes, candidate)
    candidate <- candidate + 1L
  }
  primes
}
.sha256_start <- floor((sqrt(.primes(8)) %% 1) * 2^32)
# The first 32 binary digits of the fractions of the cube roots of the first 64 primes.
.sha256_constants <- c(
  0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
  0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
  0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
  0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
  0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
  0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
  0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
  0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2
)

# Both sums of rotations, and the choice with the majority, are taken in one call each.
.sha256_down <- 2^c(6, 2, 11, 13, 25, 22)
.sha256_up <- 2^32 / .sha256_down

.sha256_block <- function(state, words) {
  # Upper and lower halves in turn: of e and a, of f and b, of g and c.
  split <- function(e, a) as.integer(c(e %/% 65536, e %% 65536, a %/% 65536, a %% 65536))
  first <- split(state[5], state[1])
  second <- split(state[6], state[2])
  third <- split(state[7], state[3])
  e <- state[5:8]
  a <- state[1:4]
  apart <- bitwXor(second, third)
  for (t in 1:64) {
    turned <- c(e[1], a[1])
    turned <- turned %/% .sha256_down + turned %% .sha256_down * .sha256_up
    upper <- turned %/% 65536
    turned <- as.integer(c(upper, turned - upper * 65536))
    turned <- bitwXor(bitwXor(turned[c(1, 7, 2, 8)], turned[c(3, 9, 4, 10)]), turned[c(5, 11, 6, 12)])
    # Where e is set it chooses f, else g; where a and b differ c decides, else b.
    now_apart <- bitwXor(first, second)
    chosen <- bitwXor(third[1:2], bitwAnd(first[1:2], apart[1:2]))
    most <- bitwXor(second[3:4], bitwAnd(now_apart[3:4], apart[3:4]))
    added <- e[4] + words[t] + (turned[1] + chosen[1]) * 65536 + turned[2] + chosen[2]
    e <- c((a[4] + added) %% 2^32, e[1:3])
    a <- c((added + (turned[3] + most[1]) * 65536 + turned[4] + most[2]) %% 2^32, a[1:3])
    third <- second
    second <- first
    first <- split(e[1], a[1])
    apart <- now_apart
  }
  (state + c(a, e)) %% 2^32
}
