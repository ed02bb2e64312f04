// Products of 768 bits, not reduced: sums of products are reduced once.
//
// A Wide counts modulo 2^768 in two's complement, so that sums may pass below zero in any order. p² is a tenth of p·R:
// `reduce` takes what is between −p·R and p·R, which is any sum of up to nine products of reduced elements, or nine
// differences of such.
#pragma once

#include "bounds.cuh"
#include "fp.cuh"

namespace blindfold {

// A sum of elements that is not reduced: a type of its own, since nothing but a product takes it.
struct Sum {
    uint32_t limb[12];
    BF_TRACK(int most = 1;) // below so many p

    BF_INLINE Sum() {}
    BF_INLINE Sum(const Fp &a) {
        BF_UNROLL
        for (int i = 0; i < fp::LIMBS; ++i) limb[i] = a.limb[i];
    }
};

// A number of 768 bits, least significant limb first.
struct Wide {
    uint32_t limb[24];
    BF_TRACK(int least = 0; int most = 0;) // between so many p²
};

namespace wide {

constexpr int LIMBS = 24;

// Adds the products of b with every second one of twelve limbs to an accumulator; leaves the carry flag set.
BF_INLINE void add_row(uint32_t *columns, const uint32_t *a, uint32_t b) { fp::add_row(columns, a, b); }

#if BF_TRACKED
inline Wide bounded(Wide r, int least, int most) {
    bounds::require(-bounds::WIDE_HOLDS < least && most < bounds::WIDE_HOLDS, "768 bits");
    r.least = least;
    r.most = most;
    return r;
}

// Whether `reduce` takes it.
inline bool reducible(const Wide &a) { return -bounds::REDUCIBLE <= a.least && a.most <= bounds::REDUCIBLE; }
#endif

// Sum without reduction.
BF_INLINE Sum sum_unreduced(const Sum &a, const Sum &b) {
    Sum r;
    r.limb[0] = ptx::add_cc(a.limb[0], b.limb[0]);
    BF_UNROLL
    for (int i = 1; i < fp::LIMBS - 1; ++i) r.limb[i] = ptx::addc_cc(a.limb[i], b.limb[i]);
    r.limb[fp::LIMBS - 1] = ptx::addc(a.limb[fp::LIMBS - 1], b.limb[fp::LIMBS - 1]);
    BF_TRACK(r.most = a.most + b.most; bounds::require(r.most <= bounds::LIMBS_HOLD, "twelve limbs");)
    return r;
}

// a·b of any twelve limbs each. 144 multiply-adds.
//
// Even and odd columns are kept apart, as in fp::mul: `odd[i]` belongs to column i + 1. After the rows up to i the sum is
// below 2^(32(i+13)), which says where a chain cannot carry out.
BF_INLINE Wide mul(const Sum &a, const Sum &b) {
    uint32_t even[LIMBS], odd[LIMBS];
    BF_UNROLL
    for (int j = 0; j < fp::LIMBS; j += 2) {
        even[j] = ptx::mul_lo(a.limb[j], b.limb[0]);
        even[j + 1] = ptx::mul_hi(a.limb[j], b.limb[0]);
        odd[j] = ptx::mul_lo(a.limb[j + 1], b.limb[0]);
        odd[j + 1] = ptx::mul_hi(a.limb[j + 1], b.limb[0]);
    }
    BF_UNROLL
    for (int j = fp::LIMBS; j < LIMBS; ++j) even[j] = odd[j] = 0;
    BF_UNROLL
    for (int i = 1; i < fp::LIMBS; i += 2) {
        add_row(odd + i - 1, a.limb, b.limb[i]);
        odd[i + 11] = ptx::addc(0, 0);
        add_row(even + i + 1, a.limb + 1, b.limb[i]);
        if (i + 1 < fp::LIMBS) {
            add_row(even + i + 1, a.limb, b.limb[i + 1]);
            even[i + 13] = ptx::addc(0, 0);
            add_row(odd + i + 1, a.limb + 1, b.limb[i + 1]);
        }
    }
    Wide r;
    r.limb[0] = even[0];
    r.limb[1] = ptx::add_cc(even[1], odd[0]);
    BF_UNROLL
    for (int i = 2; i < LIMBS - 1; ++i) r.limb[i] = ptx::addc_cc(even[i], odd[i - 1]);
    r.limb[LIMBS - 1] = ptx::addc(even[LIMBS - 1], odd[LIMBS - 2]);
    BF_TRACK(r = bounded(r, 0, a.most * b.most);)
    return r;
}

BF_INLINE Wide add(const Wide &a, const Wide &b) {
    Wide r;
    r.limb[0] = ptx::add_cc(a.limb[0], b.limb[0]);
    BF_UNROLL
    for (int i = 1; i < LIMBS - 1; ++i) r.limb[i] = ptx::addc_cc(a.limb[i], b.limb[i]);
    r.limb[LIMBS - 1] = ptx::addc(a.limb[LIMBS - 1], b.limb[LIMBS - 1]);
    BF_TRACK(r = bounded(r, a.least + b.least, a.most + b.most);)
    return r;
}

BF_INLINE Wide sub(const Wide &a, const Wide &b) {
    Wide r;
    r.limb[0] = ptx::sub_cc(a.limb[0], b.limb[0]);
    BF_UNROLL
    for (int i = 1; i < LIMBS - 1; ++i) r.limb[i] = ptx::subc_cc(a.limb[i], b.limb[i]);
    r.limb[LIMBS - 1] = ptx::subc(a.limb[LIMBS - 1], b.limb[LIMBS - 1]);
    BF_TRACK(r = bounded(r, a.least - b.most, a.most - b.least);)
    return r;
}

// a where the mask is all ones, 0 where it is 0.
BF_INLINE Wide mask(const Wide &a, uint32_t mask) {
    Wide r;
    BF_UNROLL
    for (int i = 0; i < LIMBS; ++i) r.limb[i] = a.limb[i] & mask;
    // Either way, whatever the mask is now.
    BF_TRACK(r = bounded(r, a.least < 0 ? a.least : 0, a.most > 0 ? a.most : 0);)
    return r;
}

// One limb of zeros by adding a multiple of p; as fp::product_step without its product.
BF_INLINE void reduction_step(uint32_t *even, uint32_t *odd, const uint32_t *p, bool first) {
    if (first) {
        uint32_t m = ptx::mul_lo(even[0], fp::MONTGOMERY_FACTOR);
        BF_UNROLL
        for (int j = 0; j < fp::LIMBS; j += 2) {
            odd[j] = ptx::mul_lo(p[j + 1], m);
            odd[j + 1] = ptx::mul_hi(p[j + 1], m);
        }
        add_row(even, p, m);
    } else {
        uint32_t m = ptx::mul_lo(even[0] + odd[1], fp::MONTGOMERY_FACTOR);
        even[0] = ptx::add_cc(even[0], odd[1]);
        BF_UNROLL
        for (int j = 0; j < fp::LIMBS - 2; j += 2) {
            odd[j] = ptx::madc_lo_cc(p[j + 1], m, odd[j + 2]);
            odd[j + 1] = ptx::madc_hi_cc(p[j + 1], m, odd[j + 3]);
        }
        odd[fp::LIMBS - 2] = ptx::madc_lo_cc(p[fp::LIMBS - 1], m, 0);
        odd[fp::LIMBS - 1] = ptx::madc_hi(p[fp::LIMBS - 1], m, 0);
        add_row(even, p, m);
    }
    odd[fp::LIMBS - 1] = ptx::addc(odd[fp::LIMBS - 1], 0);
}

// t·R^(−1), fully reduced, for −p·R < t < p·R. 156 multiply-adds.
//
// The low half and the multiple of p make at most p after division by R, the high half is below p, with p·R added where
// t is negative: together below 2p.
BF_INLINE Fp reduce(const Wide &t) {
    BF_TRACK(bounds::require(reducible(t), "a sum to reduce");)
    uint32_t p[fp::LIMBS + 1], even[fp::LIMBS], odd[fp::LIMBS], high[fp::LIMBS];
    BF_UNROLL
    for (int i = 0; i <= fp::LIMBS; ++i) p[i] = fp::modulus(i);
    BF_UNROLL
    for (int i = 0; i < fp::LIMBS; ++i) even[i] = t.limb[i];
    BF_UNROLL
    for (int i = 0; i < fp::LIMBS; i += 2) {
        reduction_step(even, odd, p, i == 0);
        reduction_step(odd, even, p, false);
    }
    even[0] = ptx::add_cc(even[0], odd[1]);
    BF_UNROLL
    for (int i = 1; i < fp::LIMBS - 1; ++i) even[i] = ptx::addc_cc(even[i], odd[i + 1]);
    even[fp::LIMBS - 1] = ptx::addc(even[fp::LIMBS - 1], 0);
    uint32_t negative = uint32_t(int32_t(t.limb[LIMBS - 1]) >> 31);
    high[0] = ptx::add_cc(t.limb[fp::LIMBS], p[0] & negative);
    BF_UNROLL
    for (int i = 1; i < fp::LIMBS - 1; ++i) high[i] = ptx::addc_cc(t.limb[fp::LIMBS + i], p[i] & negative);
    high[fp::LIMBS - 1] = ptx::addc(t.limb[LIMBS - 1], p[fp::LIMBS - 1] & negative);
    even[0] = ptx::add_cc(even[0], high[0]);
    BF_UNROLL
    for (int i = 1; i < fp::LIMBS - 1; ++i) even[i] = ptx::addc_cc(even[i], high[i]);
    even[fp::LIMBS - 1] = ptx::addc(even[fp::LIMBS - 1], high[fp::LIMBS - 1]);
    return fp::reduce_once(even);
}

} // namespace wide
} // namespace blindfold
