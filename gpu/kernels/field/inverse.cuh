// Powers and inverses in F_p.
#pragma once

#include "fp.cuh"

namespace blindfold {
namespace fp {

// a^exponent, the exponent's twelve limbs a public constant: the control flow is that of the exponent. 384 squarings and
// up to 96 products.
BF_CALL Fp pow(const Fp &a, const uint32_t *exponent) {
    constexpr int WINDOW_BITS = 4;
    Fp powers[1 << WINDOW_BITS];
    powers[0] = one();
    BF_ROLL
    for (int i = 1; i < 1 << WINDOW_BITS; ++i) powers[i] = mul(powers[i - 1], a);
    Fp r = one();
    BF_ROLL
    for (int bit = 32 * LIMBS - WINDOW_BITS; bit >= 0; bit -= WINDOW_BITS) {
        BF_ROLL
        for (int i = 0; i < WINDOW_BITS; ++i) r = square(r);
        uint32_t digit = exponent[bit / 32] >> (bit % 32) & ((1u << WINDOW_BITS) - 1);
        if (digit != 0) r = mul(r, powers[digit]);
    }
    return r;
}

// a^(p−2): the inverse, or 0 of 0.
BF_INLINE Fp inverse(const Fp &a) {
    uint32_t exponent[LIMBS];
    BF_UNROLL
    for (int i = 0; i < LIMBS; ++i) exponent[i] = modulus(i);
    exponent[0] -= 2; // no borrow: the lowest limb of p is greater
    return pow(a, exponent);
}

} // namespace fp
} // namespace blindfold
