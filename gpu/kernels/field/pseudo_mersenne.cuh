// Arithmetic modulo a 256-bit prime 2^256 − c, c small, in eight 32-bit limbs, least significant first, the value itself.
// `Prime` gives c:
//
//     static constexpr int EXCESS_LIMBS;         // of c
//     static uint32_t excess(int i);             // limb i of c
//
// All results are fully reduced.
#pragma once

#include "../machine/arch.cuh"

namespace blindfold {

// A number of 256 bits, least significant limb first.
struct alignas(16) Limbs256 {
    uint32_t limb[8];
};

namespace pseudo_mersenne {

constexpr int LIMBS = 8;

// a − prime where that is not negative, else a; `over` is what a has above 256 bits, a below twice the prime.
template <class Prime> BF_INLINE Limbs256 reduce_once(const Limbs256 &a, uint32_t over) {
    // a − prime = a + c − 2^256.
    Limbs256 less;
    less.limb[0] = ptx::add_cc(a.limb[0], Prime::excess(0));
    BF_UNROLL
    for (int i = 1; i < LIMBS; ++i)
        less.limb[i] = ptx::addc_cc(a.limb[i], i < Prime::EXCESS_LIMBS ? Prime::excess(i) : 0);
    uint32_t take = ptx::addc(over, 0);
    BF_UNROLL
    for (int i = 0; i < LIMBS; ++i) less.limb[i] = take != 0 ? less.limb[i] : a.limb[i];
    return less;
}

template <class Prime> BF_INLINE Limbs256 add(const Limbs256 &a, const Limbs256 &b) {
    Limbs256 sum;
    sum.limb[0] = ptx::add_cc(a.limb[0], b.limb[0]);
    BF_UNROLL
    for (int i = 1; i < LIMBS; ++i) sum.limb[i] = ptx::addc_cc(a.limb[i], b.limb[i]);
    return reduce_once<Prime>(sum, ptx::addc(0, 0));
}

template <class Prime> BF_INLINE Limbs256 sub(const Limbs256 &a, const Limbs256 &b) {
    Limbs256 r;
    r.limb[0] = ptx::sub_cc(a.limb[0], b.limb[0]);
    BF_UNROLL
    for (int i = 1; i < LIMBS; ++i) r.limb[i] = ptx::subc_cc(a.limb[i], b.limb[i]);
    uint32_t borrow = ptx::subc(0, 0); // all ones where a < b: then r + prime = r − c, modulo 2^256
    r.limb[0] = ptx::sub_cc(r.limb[0], Prime::excess(0) & borrow);
    BF_UNROLL
    for (int i = 1; i < LIMBS - 1; ++i)
        r.limb[i] = ptx::subc_cc(r.limb[i], i < Prime::EXCESS_LIMBS ? Prime::excess(i) & borrow : 0);
    r.limb[LIMBS - 1] = ptx::subc(r.limb[LIMBS - 1], 0);
    return r;
}

// Adds the products of b with every second limb of a to columns, and the carry to the column after them.
BF_INLINE void add_row(uint32_t *columns, const uint32_t *a, uint32_t b, bool carries) {
    columns[0] = ptx::mad_lo_cc(a[0], b, columns[0]);
    columns[1] = ptx::madc_hi_cc(a[0], b, columns[1]);
    BF_UNROLL
    for (int j = 2; j < LIMBS; j += 2) {
        columns[j] = ptx::madc_lo_cc(a[j], b, columns[j]);
        columns[j + 1] = ptx::madc_hi_cc(a[j], b, columns[j + 1]);
    }
    if (carries) columns[LIMBS] = ptx::addc(columns[LIMBS], 0);
}

// a·b, sixteen limbs. 64 multiply-adds.
//
// Even and odd columns are kept apart: odd[i] belongs to column i + 1. After the rows up to i the sum is below
// 2^(32(i+9)), which says where a chain cannot carry out.
BF_INLINE void multiply(uint32_t *product, const Limbs256 &a, const Limbs256 &b) {
    uint32_t odd[2 * LIMBS];
    BF_UNROLL
    for (int i = 0; i < 2 * LIMBS; ++i) product[i] = odd[i] = 0;
    BF_UNROLL
    for (int i = 0; i < LIMBS; i += 2) {
        add_row(product + i, a.limb, b.limb[i], true);
        add_row(odd + i, a.limb + 1, b.limb[i], true);
        add_row(odd + i, a.limb, b.limb[i + 1], true);
        add_row(product + i + 2, a.limb + 1, b.limb[i + 1], i + 2 < LIMBS);
    }
    product[1] = ptx::add_cc(product[1], odd[0]);
    BF_UNROLL
    for (int i = 2; i < 2 * LIMBS - 1; ++i) product[i] = ptx::addc_cc(product[i], odd[i - 1]);
    product[2 * LIMBS - 1] = ptx::addc(product[2 * LIMBS - 1], odd[2 * LIMBS - 2]);
}

// out = low + high·c, where in = low + high·2^256 and the sum fits in OUT limbs, at least eight.
template <class Prime, int IN, int OUT> BF_INLINE void fold(uint32_t *out, const uint32_t *in) {
    constexpr int HIGH = IN - LIMBS, WIDTH = HIGH + Prime::EXCESS_LIMBS;
    uint32_t product[WIDTH];
    BF_UNROLL
    for (int i = 0; i < WIDTH; ++i) product[i] = 0;
    BF_UNROLL
    for (int i = 0; i < HIGH; ++i) {
        uint64_t carry = 0;
        BF_UNROLL
        for (int j = 0; j < Prime::EXCESS_LIMBS; ++j) {
            carry += uint64_t(in[LIMBS + i]) * Prime::excess(j) + product[i + j];
            product[i + j] = uint32_t(carry);
            carry >>= 32;
        }
        product[i + Prime::EXCESS_LIMBS] = uint32_t(carry);
    }
    out[0] = ptx::add_cc(in[0], product[0]);
    BF_UNROLL
    for (int i = 1; i < OUT; ++i) out[i] = ptx::addc_cc(i < LIMBS ? in[i] : 0, i < WIDTH ? product[i] : 0);
}

// c is below 2^(32·EXCESS_LIMBS) and below 2^130: the first fold leaves less than c + 1 above 256 bits, the second less
// than 2^5, the third at most 1.
template <class Prime> BF_INLINE Limbs256 mul(const Limbs256 &a, const Limbs256 &b) {
    constexpr int ONCE = LIMBS + Prime::EXCESS_LIMBS;
    uint32_t product[2 * LIMBS], once[ONCE], twice[LIMBS + 1], thrice[LIMBS + 1];
    multiply(product, a, b);
    fold<Prime, 2 * LIMBS, ONCE>(once, product);
    fold<Prime, ONCE, LIMBS + 1>(twice, once);
    fold<Prime, LIMBS + 1, LIMBS + 1>(thrice, twice);
    Limbs256 r;
    BF_UNROLL
    for (int i = 0; i < LIMBS; ++i) r.limb[i] = thrice[i];
    return reduce_once<Prime>(r, thrice[LIMBS]);
}

BF_INLINE Limbs256 word(uint32_t value) {
    Limbs256 r;
    r.limb[0] = value;
    BF_UNROLL
    for (int i = 1; i < LIMBS; ++i) r.limb[i] = 0;
    return r;
}

BF_INLINE bool is_zero(const Limbs256 &a) {
    uint32_t any = 0;
    BF_UNROLL
    for (int i = 0; i < LIMBS; ++i) any |= a.limb[i];
    return any == 0;
}

BF_INLINE bool equal(const Limbs256 &a, const Limbs256 &b) {
    uint32_t any = 0;
    BF_UNROLL
    for (int i = 0; i < LIMBS; ++i) any |= a.limb[i] ^ b.limb[i];
    return any == 0;
}

// Whether a < b, as numbers.
BF_INLINE bool less(const Limbs256 &a, const Limbs256 &b) {
    ptx::sub_cc(a.limb[0], b.limb[0]);
    BF_UNROLL
    for (int i = 1; i < LIMBS; ++i) ptx::subc_cc(a.limb[i], b.limb[i]);
    return ptx::subc(0, 0) != 0;
}

// a^exponent, the exponent public. 256 squarings and up to 78 products.
template <class Prime> BF_CALL Limbs256 pow(const Limbs256 &a, const Limbs256 &exponent) {
    constexpr int WINDOW_BITS = 4;
    Limbs256 powers[1 << WINDOW_BITS];
    powers[0] = word(1);
    BF_ROLL
    for (int i = 1; i < 1 << WINDOW_BITS; ++i) powers[i] = mul<Prime>(powers[i - 1], a);
    Limbs256 r = word(1);
    BF_ROLL
    for (int bit = 32 * LIMBS - WINDOW_BITS; bit >= 0; bit -= WINDOW_BITS) {
        BF_ROLL
        for (int i = 0; i < WINDOW_BITS; ++i) r = mul<Prime>(r, r);
        uint32_t digit = exponent.limb[bit / 32] >> (bit % 32) & ((1u << WINDOW_BITS) - 1);
        if (digit != 0) r = mul<Prime>(r, powers[digit]);
    }
    return r;
}

// From and to big-endian bytes.
BF_INLINE Limbs256 from_bytes(const uint8_t *bytes) {
    Limbs256 r;
    for (int i = 0; i < LIMBS; ++i) {
        const uint8_t *at = bytes + 4 * (LIMBS - 1 - i);
        r.limb[i] = uint32_t(at[0]) << 24 | uint32_t(at[1]) << 16 | uint32_t(at[2]) << 8 | at[3];
    }
    return r;
}

BF_INLINE void to_bytes(uint8_t *bytes, const Limbs256 &a) {
    for (int i = 0; i < 4 * LIMBS; ++i) bytes[4 * LIMBS - 1 - i] = uint8_t(a.limb[i / 4] >> (8 * (i % 4)));
}

} // namespace pseudo_mersenne
} // namespace blindfold
