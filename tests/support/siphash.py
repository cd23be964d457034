"""SipHash-2-4 in plain Python."""

from __future__ import annotations

MASK = 2**64 - 1


def plain_siphash(key: tuple[int, int], data: bytes, size: int) -> bytes:
    """SipHash-2-4 as its authors state it, in Python integers."""
    v = [
        key[0] ^ 0x736F6D6570736575,
        key[1] ^ 0x646F72616E646F6D ^ (0xEE if size == 16 else 0),
        key[0] ^ 0x6C7967656E657261,
        key[1] ^ 0x7465646279746573,
    ]

    def turn(x: int, bits: int) -> int:
        return ((x << bits) | (x >> (64 - bits))) & MASK

    def rounds(n: int) -> None:
        for _ in range(n):
            for a, b, c, d, first, second in ((0, 1, 2, 3, 13, 16), (2, 1, 0, 3, 17, 21)):
                v[a] = (v[a] + v[b]) & MASK
                v[b] = turn(v[b], first) ^ v[a]
                v[a] = turn(v[a], 32)
                v[c] = (v[c] + v[d]) & MASK
                v[d] = turn(v[d], second) ^ v[c]

    padded = data + bytes(-(len(data) + 1) % 8) + bytes([len(data) % 256])
    for start in range(0, len(padded), 8):
        word = int.from_bytes(padded[start : start + 8], "little")
        v[3] ^= word
        rounds(2)
        v[0] ^= word
    v[2] ^= 0xEE if size == 16 else 0xFF
    rounds(4)
    out = (v[0] ^ v[1] ^ v[2] ^ v[3]).to_bytes(8, "little")
    if size == 16:
        v[1] ^= 0xDD
        rounds(4)
        out += (v[0] ^ v[1] ^ v[2] ^ v[3]).to_bytes(8, "little")
    return out
