// Arithmetic modulo a prime of an even number of 32-bit limbs, least significant first, in Montgomery form with
// R = 2^(32·limbs); the top bit of the prime's top limb is 0. `Prime` names the limbs and the prime:
//
//     static constexpr int LIMBS;
//     static constexpr uint32_t FACTOR;          // −prime^(−1) mod 2^32
//     static uint32_t modulus(int i);            // limb i; 0 beyond the last
//
// Products keep the even and the odd columns in two accumulators, so that each 32×32-bit product's halves go to adjacent
// limbs and every row is one carry chain; ptxas makes each pair of halves one wide multiply-add.
#pragma once

#include "../machine/arch.cuh"

namespace blindfold {
namespace montgomery {

// a − prime where that is not negative, else a: of limbs below twice the prime the reduced value.
template <class Prime> BF_INLINE void reduce_once(uint32_t *out, const uint32_t *a) {
    uint32_t less[Prime::LIMBS];
    less[0] = ptx::sub_cc(a[0], Prime::modulus(0));
    BF_UNROLL
    for (int i = 1; i < Prime::LIMBS; ++i) less[i] = ptx::subc_cc(a[i], Prime::modulus(i));
    uint32_t borrow = ptx::subc(0, 0);
    BF_UNROLL
    for (int i = 0; i < Prime::LIMBS; ++i) out[i] = borrow ? a[i] : less[i];
}

template <class Prime> BF_INLINE void add(uint32_t *out, const uint32_t *a, const uint32_t *b) {
    constexpr int LIMBS = Prime::LIMBS;
    uint32_t sum[LIMBS];
    sum[0] = ptx::add_cc(a[0], b[0]);
    BF_UNROLL
    for (int i = 1; i < LIMBS - 1; ++i) sum[i] = ptx::addc_cc(a[i], b[i]);
    sum[LIMBS - 1] = ptx::addc(a[LIMBS - 1], b[LIMBS - 1]);
    reduce_once<Prime>(out, sum);
}

template <class Prime> BF_INLINE void sub(uint32_t *out, const uint32_t *a, const uint32_t *b) {
    constexpr int LIMBS = Prime::LIMBS;
    uint32_t r[LIMBS];
    r[0] = ptx::sub_cc(a[0], b[0]);
    BF_UNROLL
    for (int i = 1; i < LIMBS; ++i) r[i] = ptx::subc_cc(a[i], b[i]);
    uint32_t borrow = ptx::subc(0, 0); // all ones where a < b
    out[0] = ptx::add_cc(r[0], Prime::modulus(0) & borrow);
    BF_UNROLL
    for (int i = 1; i < LIMBS - 1; ++i) out[i] = ptx::addc_cc(r[i], Prime::modulus(i) & borrow);
    out[LIMBS - 1] = ptx::addc(r[LIMBS - 1], Prime::modulus(LIMBS - 1) & borrow);
}

// Adds the products of b with every second limb of a to an accumulator's columns; leaves the carry flag set.
template <int LIMBS> BF_INLINE void add_row(uint32_t *columns, const uint32_t *a, uint32_t b) {
    columns[0] = ptx::mad_lo_cc(a[0], b, columns[0]);
    columns[1] = ptx::madc_hi_cc(a[0], b, columns[1]);
    BF_UNROLL
    for (int j = 2; j < LIMBS; j += 2) {
        columns[j] = ptx::madc_lo_cc(a[j], b, columns[j]);
        columns[j + 1] = ptx::madc_hi_cc(a[j], b, columns[j + 1]);
    }
}

// One limb of b: adds a·b to the accumulators and takes one limb of zeros off by adding a multiple of the prime.
// Afterwards the accumulators have changed roles.
template <class Prime>
BF_INLINE void product_step(uint32_t *even, uint32_t *odd, const uint32_t *a, uint32_t b, const uint32_t *prime, bool first) {
    constexpr int LIMBS = Prime::LIMBS;
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
        add_row<LIMBS>(even, a, b);
        odd[LIMBS - 1] = ptx::addc(odd[LIMBS - 1], 0);
    }
    uint32_t m = ptx::mul_lo(even[0], Prime::FACTOR);
    add_row<LIMBS>(odd, prime + 1, m);
    add_row<LIMBS>(even, prime, m);
    odd[LIMBS - 1] = ptx::addc(odd[LIMBS - 1], 0);
}

// a·b·R^(−1).
template <class Prime> BF_INLINE void mul(uint32_t *out, const uint32_t *a, const uint32_t *b) {
    constexpr int LIMBS = Prime::LIMBS;
    uint32_t x[LIMBS + 1], prime[LIMBS + 2], even[LIMBS], odd[LIMBS];
    BF_UNROLL
    for (int i = 0; i < LIMBS; ++i) x[i] = a[i];
    x[LIMBS] = 0;
    BF_UNROLL
    for (int i = 0; i < LIMBS; ++i) prime[i] = Prime::modulus(i);
    prime[LIMBS] = prime[LIMBS + 1] = 0;
    BF_UNROLL
    for (int i = 0; i < LIMBS; i += 2) {
        product_step<Prime>(even, odd, x, b[i], prime, i == 0);
        product_step<Prime>(odd, even, x, b[i + 1], prime, false);
    }
    even[0] = ptx::add_cc(even[0], odd[1]);
    BF_UNROLL
    for (int i = 1; i < LIMBS - 1; ++i) even[i] = ptx::addc_cc(even[i], odd[i + 1]);
    even[LIMBS - 1] = ptx::addc(even[LIMBS - 1], 0);
    reduce_once<Prime>(out, even);
}

} // namespace montgomery
} // namespace blindfold
