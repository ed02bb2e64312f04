// F_p, the base field of BLS12-381, in twelve 32-bit limbs, least significant first, in Montgomery form with R = 2^384:
// in memory the same bytes as six 64-bit limbs of the same form on a little-endian host.
//
// A product takes 300 multiply-adds: 144 for a·b, 12 for the Montgomery factors, 144 for their products with p.
#pragma once

#include "montgomery.cuh"

namespace blindfold {

// An element, fully reduced: 0 ≤ value < p.
struct alignas(16) Fp {
    uint32_t limb[12];
};

namespace fp {

constexpr int LIMBS = 12;
// −p^(−1) mod 2^32.
constexpr uint32_t MONTGOMERY_FACTOR = 0xfffcfffdu;

// Limb i of p; limb 12 is 0.
BF_INLINE uint32_t modulus(int i) {
    constexpr uint32_t limbs[13] = {0xffffaaabu, 0xb9feffffu, 0xb153ffffu, 0x1eabfffeu, 0xf6b0f624u, 0x6730d2a0u, 0xf38512bfu,
                                    0x64774b84u, 0x434bacd7u, 0x4b1ba7b6u, 0x397fe69au, 0x1a0111eau, 0};
    return limbs[i];
}

struct Prime {
    static constexpr int LIMBS = fp::LIMBS;
    static constexpr uint32_t FACTOR = MONTGOMERY_FACTOR;
    BF_INLINE static uint32_t modulus(int i) { return fp::modulus(i); }
};

BF_INLINE Fp zero() {
    Fp r;
    BF_UNROLL
    for (int i = 0; i < LIMBS; ++i) r.limb[i] = 0;
    return r;
}

// R mod p.
BF_INLINE Fp one() {
    constexpr uint32_t limbs[12] = {0x0002fffdu, 0x76090000u, 0xc40c0002u, 0xebf4000bu, 0x53c758bau, 0x5f489857u,
                                    0x70525745u, 0x77ce5853u, 0xa256ec6du, 0x5c071a97u, 0xfa80e493u, 0x15f65ec3u};
    Fp r;
    BF_UNROLL
    for (int i = 0; i < LIMBS; ++i) r.limb[i] = limbs[i];
    return r;
}

BF_INLINE bool is_zero(const Fp &a) {
    uint32_t any = 0;
    BF_UNROLL
    for (int i = 0; i < LIMBS; ++i) any |= a.limb[i];
    return any == 0;
}

BF_INLINE bool equal(const Fp &a, const Fp &b) {
    uint32_t any = 0;
    BF_UNROLL
    for (int i = 0; i < LIMBS; ++i) any |= a.limb[i] ^ b.limb[i];
    return any == 0;
}

// `yes` where `which`, else `no`.
BF_INLINE Fp select(bool which, const Fp &yes, const Fp &no) {
    Fp r;
    BF_UNROLL
    for (int i = 0; i < LIMBS; ++i) r.limb[i] = which ? yes.limb[i] : no.limb[i];
    return r;
}

// a − p where that is not negative, else a: of limbs below 2p the reduced value.
BF_INLINE Fp reduce_once(const uint32_t *a) {
    Fp r;
    montgomery::reduce_once<Prime>(r.limb, a);
    return r;
}

BF_INLINE Fp add(const Fp &a, const Fp &b) {
    Fp r;
    montgomery::add<Prime>(r.limb, a.limb, b.limb);
    return r;
}

BF_INLINE Fp sub(const Fp &a, const Fp &b) {
    Fp r;
    montgomery::sub<Prime>(r.limb, a.limb, b.limb);
    return r;
}

BF_INLINE Fp neg(const Fp &a) { return sub(zero(), a); }

BF_INLINE Fp twice(const Fp &a) { return add(a, a); }

// Adds the products of b with every second limb of a to an accumulator's columns; leaves the carry flag set.
BF_INLINE void add_row(uint32_t *columns, const uint32_t *a, uint32_t b) { montgomery::add_row<LIMBS>(columns, a, b); }

// a·b·R^(−1).
BF_INLINE Fp mul(const Fp &a, const Fp &b) {
    Fp r;
    montgomery::mul<Prime>(r.limb, a.limb, b.limb);
    return r;
}

BF_INLINE Fp square(const Fp &a) { return mul(a, a); }

} // namespace fp
} // namespace blindfold
