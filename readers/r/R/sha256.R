# SHA-256: by openssl where it is installed, else in plain R, about 30,000 times slower than C but right.

sha256 <- function(bytes) {
  if (requireNamespace("openssl", quietly = TRUE)) {
    return(paste(as.character(unclass(openssl::sha256(bytes))), collapse = ""))
  }
  sha256_plain(bytes)
}

sha256_plain <- function(bytes) {
  size <- length(bytes)
  padding <- as.raw(c(0x80, rep(0, (55 - size) %% 64)))
  bits <- as.integer(floor(8 * size / 256^(7:0)) %% 256)
  data <- as.integer(c(bytes, padding, as.raw(bits)))
  words <- colSums(matrix(data, nrow = 4) * 256^(3:0))
  words <- matrix(words, nrow = 16)
  state <- .sha256_start
  for (block in seq_len(ncol(words))) state <- .sha256_block(state, words[, block])
  paste(sprintf("%04x%04x", as.integer(state %/% 65536), as.integer(state %% 65536)), collapse = "")
}

# Words are doubles below 2^32; bitwAnd and its like take the halves.
.of_halves <- function(operation, a, b) {
  operation(as.integer(a %/% 65536), as.integer(b %/% 65536)) * 65536 +
    operation(as.integer(a %% 65536), as.integer(b %% 65536))
}
.xor <- function(a, b) .of_halves(bitwXor, a, b)
.and <- function(a, b) .of_halves(bitwAnd, a, b)
.rotate <- function(a, by) (a %/% 2^by) + (a %% 2^by) * 2^(32 - by)

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

.sha256_block <- function(state, block) {
  w <- c(block, numeric(48))
  for (t in 17:64) {
    a <- w[t - 15]
    b <- w[t - 2]
    small0 <- .xor(.xor(.rotate(a, 7), .rotate(a, 18)), a %/% 2^3)
    small1 <- .xor(.xor(.rotate(b, 17), .rotate(b, 19)), b %/% 2^10)
    w[t] <- (w[t - 16] + small0 + w[t - 7] + small1) %% 2^32
  }
  s <- state
  for (t in 1:64) {
    e <- s[5]
    big1 <- .xor(.xor(.rotate(e, 6), .rotate(e, 11)), .rotate(e, 25))
    chosen <- .xor(.and(e, s[6]), .and(2^32 - 1 - e, s[7]))
    first <- s[8] + big1 + chosen + .sha256_constants[t] + w[t]
    a <- s[1]
    big0 <- .xor(.xor(.rotate(a, 2), .rotate(a, 13)), .rotate(a, 22))
    most <- .xor(.xor(.and(a, s[2]), .and(a, s[3])), .and(s[2], s[3]))
    s <- c((first + big0 + most) %% 2^32, s[1:3], (s[4] + first) %% 2^32, s[5:7])
  }
  (state + s) %% 2^32
}
