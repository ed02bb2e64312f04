// F_p, the base field of BLS12-381, in twelve 32-bit limbs, least significant first, in Montgomery form with R = 2^384:
// in memory the same bytes as six 64-bit limbs of the same form on a little-endian host.
//
// Products keep the even and the odd columns in two accumulators, so that each 32×32-bit product's halves go to adjacent
// limbs and every row is one carry chain; ptxas makes each pair of halves one wide multiply-add. 300 of them a product:
// 144 for a·b, 12 for the Montgomery factors, 144 for their products with p.
#pragma once

#include "../machine/arch.cuh"

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
    uint32_t less[LIMBS];
    less[0] = ptx::sub_cc(a[0], modulus(0));
    BF_UNROLL
    for (int i = 1; i < LIMBS; ++i) less[i] = ptx::subc_cc(a[i], modulus(i));
    uint32_t borrow = ptx::subc(0, 0);
    Fp r;
    BF_UNROLL
    for (int i = 0; i < LIMBS; ++i) r.limb[i] = borrow ? a[i] : less[i];
    return r;
}

BF_INLINE Fp add(const Fp &a, const Fp &b) {
    uint32_t sum[LIMBS];
    sum[0] = ptx::add_cc(a.limb[0], b.limb[0]);
    BF_UNROLL
    for (int i = 1; i < LIMBS - 1; ++i) sum[i] = ptx::addc_cc(a.limb[i], b.limb[i]);
    sum[LIMBS - 1] = ptx::addc(a.limb[LIMBS - 1], b.limb[LIMBS - 1]);
    return reduce_once(sum);
}

BF_INLINE Fp sub(const Fp &a, const Fp &b) {
    Fp r;
    r.limb[0] = ptx::sub_cc(a.limb[0], b.limb[0]);
    BF_UNROLL
    for (int i = 1; i < LIMBS; ++i) r.limb[i] = ptx::subc_cc(a.limb[i], b.limb[i]);
    uint32_t borrow = ptx::subc(0, 0); // all ones where a < b
    r.limb[0] = ptx::add_cc(r.limb[0], modulus(0) & borrow);
    BF_UNROLL
    for (int i = 1; i < LIMBS - 1; ++i) r.limb[i] = ptx::addc_cc(r.limb[i], modulus(i) & borrow);
    r.limb[LIMBS - 1] = ptx::addc(r.limb[LIMBS - 1], modulus(LIMBS - 1) & borrow);
    return r;
}

BF_INLINE Fp neg(const Fp &a) { return sub(zero(), a); }

BF_INLINE Fp twice(const Fp &a) { return add(a, a); }

// Adds the products of b with every second limb of a to an accumulator's columns; leaves the carry flag set.
BF_INLINE void add_row(uint32_t *columns, const uint32_t *a, uint32_t b) {
    columns[0] = ptx::mad_lo_cc(a[0], b, columns[0]);
    columns[1] = ptx::madc_hi_cc(a[0], b, columns[1]);
    BF_UNROLL
    for (int j = 2; j < LIMBS; j += 2) {
        columns[j] = ptx::madc_lo_cc(a[j], b, columns[j]);
        columns[j + 1] = ptx::madc_hi_cc(a[j], b, columns[j + 1]);
    }
}

// One limb of b: adds a·b to the accumulators and takes one limb of zeros off by adding a multiple of p. Afterwards the
// accumulators have changed roles.
BF_INLINE void product_step(uint32_t *even, uint32_t *odd, const uint32_t *a, uint32_t b, const uint32_t *p, bool first) {
    if (first) {
        BF_UNROLL
        for (int j = 0; j < LIMBS; j += 2) {
            odd[j] = ptx::mul_lo(a[j + 1], b);
            odd[j + 1] = ptx::mul_hi(a[j + 1], b);
            even[j] = ptx::mul_lo(a[j], b);
            even[j + 1] = ptx::mul_hi(a[j], b);
        }
    } else {
        even[0] = ptx::add_cc(even[0], odd[1]);
        BF_UNROLL
        for (int j = 0; j < LIMBS - 2; j += 2) {
            odd[j] = ptx::madc_lo_cc(a[j + 1], b, odd[j + 2]);
            odd[j + 1] = ptx::madc_hi_cc(a[j + 1], b, odd[j + 3]);
        }
        odd[LIMBS - 2] = ptx::madc_lo_cc(a[LIMBS - 1], b, 0);
        odd[LIMBS - 1] = ptx::madc_hi(a[LIMBS - 1], b, 0);
        add_row(even, a, b);
        odd[LIMBS - 1] = ptx::addc(odd[LIMBS - 1], 0);
    }
    uint32_t m = ptx::mul_lo(even[0], MONTGOMERY_FACTOR);
    add_row(odd, p + 1, m);
    add_row(even, p, m);
    odd[LIMBS - 1] = ptx::addc(odd[LIMBS - 1], 0);
}

// a·b·R^(−1).
BF_INLINE Fp mul(const Fp &a, const Fp &b) {
    uint32_t x[LIMBS + 1], p[LIMBS + 2], even[LIMBS], odd[LIMBS];
    BF_UNROLL
    for (int i = 0; i < LIMBS; ++i) x[i] = a.limb[i];
    x[LIMBS] = 0;
    BF_UNROLL
    for (int i = 0; i <= LIMBS; ++i) p[i] = modulus(i);
    p[LIMBS + 1] = 0;
    BF_UNROLL
    for (int i = 0; i < LIMBS; i += 2) {
        product_step(even, odd, x, b.limb[i], p, i == 0);
        product_step(odd, even, x, b.limb[i + 1], p, false);
    }
    even[0] = ptx::add_cc(even[0], odd[1]);
    BF_UNROLL
    for (int i = 1; i < LIMBS - 1; ++i) even[i] = ptx::addc_cc(even[i], odd[i + 1]);
    even[LIMBS - 1] = ptx::addc(even[LIMBS - 1], 0);
    return reduce_once(even);
}

BF_INLINE Fp square(const Fp &a) { return mul(a, a); }

} // namespace fp
} // namespace blindfold
