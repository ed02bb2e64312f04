// Public scalars on the device: plain 32-bit limbs, least significant first, split by the endomorphism and cut into signed
// windows.
#pragma once

#include "../machine/arch.cuh"

namespace blindfold {
namespace scalars {

// Limbs of a scalar below r, and of a half of one or a weight below 2^128.
constexpr uint32_t LIMBS = 8;
constexpr uint32_t HALF_LIMBS = 4;

// A scalar below 2^128.
struct Half {
    uint32_t limb[HALF_LIMBS];
};

// k = low + high·x², x the curve parameter.
struct Halves {
    Half low, high;
};

// Limb i of x².
BF_INLINE uint32_t x_squared(uint32_t i) {
    constexpr uint32_t limbs[5] = {0x00000000u, 0x00000001u, 0x0001a402u, 0xac45a401u, 0};
    return limbs[i];
}

// Splits k < r. The high half is ⌊k/x²⌋ by ⌊2^256/x²⌋, at most 1 too small before the correction.
BF_INLINE Halves split(const uint32_t *k) {
    constexpr uint32_t reciprocal[5] = {0xf6cfee2eu, 0x63f6e522u, 0xe01faaddu, 0x7c6becf1u, 0x00000001u};
    uint32_t product[LIMBS + 5];
    BF_UNROLL
    for (uint32_t i = 0; i < LIMBS + 5; ++i) product[i] = 0;
    BF_UNROLL
    for (uint32_t i = 0; i < 5; ++i) {
        uint64_t carry = 0;
        BF_UNROLL
        for (uint32_t j = 0; j < LIMBS; ++j) {
            carry += uint64_t(reciprocal[i]) * k[j] + product[i + j];
            product[i + j] = uint32_t(carry);
            carry >>= 32;
        }
        product[i + LIMBS] = uint32_t(carry);
    }
    const uint32_t *quotient = product + LIMBS; // below 2^128, as k < 2^255
    // k − quotient·x², below 2·x², of five limbs.
    uint32_t rest[5];
    BF_UNROLL
    for (uint32_t i = 0; i < 5; ++i) rest[i] = k[i];
    BF_UNROLL
    for (uint32_t i = 0; i < HALF_LIMBS; ++i) {
        uint64_t carry = 0, borrow = 0;
        BF_UNROLL
        for (uint32_t j = 0; i + j < 5; ++j) {
            carry += uint64_t(quotient[i]) * x_squared(j);
            uint64_t difference = uint64_t(rest[i + j]) - uint32_t(carry) - borrow;
            rest[i + j] = uint32_t(difference);
            borrow = difference >> 63;
            carry >>= 32;
        }
    }
    uint32_t less[5];
    uint64_t borrow = 0;
    BF_UNROLL
    for (uint32_t i = 0; i < 5; ++i) {
        uint64_t difference = uint64_t(rest[i]) - x_squared(i) - borrow;
        less[i] = uint32_t(difference);
        borrow = difference >> 63;
    }
    Halves halves;
    uint64_t carry = 1 - borrow;
    BF_UNROLL
    for (uint32_t i = 0; i < HALF_LIMBS; ++i) {
        halves.low.limb[i] = borrow ? rest[i] : less[i];
        carry += quotient[i];
        halves.high.limb[i] = uint32_t(carry);
        carry >>= 32;
    }
    return halves;
}

// Windows of `width` bits that a number of `bits` bits takes with the carry of signed digits.
BF_INLINE uint32_t windows(uint32_t bits, uint32_t width) { return bits / width + 1; }

// Reads the signed digits of a number from its lowest window up: Σ digit_i·2^(i·width), −2^(width−1) < digit ≤ 2^(width−1).
struct Reader {
    const uint32_t *limbs;
    uint32_t count; // of the limbs
    uint32_t width; // at most 16
    uint32_t position;
    uint32_t carry;

    BF_INLINE Reader(const uint32_t *number, uint32_t limb_count, uint32_t window_bits)
        : limbs(number), count(limb_count), width(window_bits), position(0), carry(0) {}

    BF_INLINE int next() {
        uint32_t at = position / 32, shift = position % 32;
        uint64_t pair = at < count ? limbs[at] : 0;
        if (at + 1 < count) pair |= uint64_t(limbs[at + 1]) << 32;
        uint32_t window = (uint32_t(pair >> shift) & ((uint32_t(1) << width) - 1)) + carry;
        position += width;
        carry = window > uint32_t(1) << (width - 1);
        return int(window) - int(carry << width);
    }
};

} // namespace scalars
} // namespace blindfold
