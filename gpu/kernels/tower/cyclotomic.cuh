// Frobenius maps, and the cyclotomic subgroup of F_p12.
#pragma once

#include "frobenius_constants.cuh"
#include "gt.cuh"

namespace blindfold {
namespace gt {

// γ_power^k, power 1 or 3.
BF_INLINE Fp2 gamma(int power, int k) {
    Fp2 r = fp2::one();
    (void)power, (void)k;
#if BF_HAS_TABLES
    const uint32_t(&limbs)[2][fp::LIMBS] = power == 1 ? FROBENIUS_1[k] : FROBENIUS_3[k];
    BF_UNROLL
    for (int i = 0; i < fp::LIMBS; ++i) {
        r.c0.limb[i] = limbs[0][i];
        r.c1.limb[i] = limbs[1][i];
    }
#endif
    return r;
}

// γ_2^exponent, 0 ≤ exponent < 6.
BF_INLINE Fp sixth_root(int exponent) {
    Fp r = fp::one();
    (void)exponent;
#if BF_HAS_TABLES
    BF_UNROLL
    for (int i = 0; i < fp::LIMBS; ++i) r.limb[i] = FROBENIUS_2[exponent][i];
#endif
    return r;
}

// a^(p²): two products in F_p a lane.
BF_CALL Gt frobenius_2(Group group, Gt a) {
    return each_lane(group, [&](int slot, int k) { return fp2::mul_fp(a.own[slot], sixth_root(k)); });
}

// a^(p^power), power 1 or 3: a product in F_p2 a lane.
BF_CALL Gt frobenius_odd(Group group, Gt a, int power) {
    return each_lane(group, [&](int slot, int k) {
        return fp2::mul(fp2::conjugate(a.own[slot]), gamma(power, k));
    });
}

// a^(p^power), power 1, 2 or 3.
BF_INLINE Gt frobenius(const Group &group, const Gt &a, int power) {
    return power == 2 ? frobenius_2(group, a) : frobenius_odd(group, a, power);
}

// a^(|x|^j), j ≤ 3, in GT: φ is exponentiation by x = −|x| there.
BF_INLINE Gt power_of_x(const Group &group, const Gt &a, int j) {
    if (j == 0) return a;
    return conjugate_if(group, j != 2, frobenius(group, a, j));
}

// a^(ζ^power), ζ = −x² a cube root of unity in F_r, power at most 2; cyclotomic, an endomorphism that becomes that
// exponentiation in GT. ζ is φ² and a conjugation, and −1 = γ_2³.
BF_CALL Gt pow_zeta(Group group, Gt a, int power) {
    return each_lane(group, [&](int slot, int k) { return fp2::mul_fp(a.own[slot], sixth_root(4 * power * k % 6)); });
}

// a², cyclotomic (Granger and Scott, ePrint 2009/565): one product in F_p2 a lane.
//
// F_p12 is cubic over F_p4 = F_p2[s], s = w³: a = A + B·w + C·w² with A = (a_0, a_3), B = (a_1, a_4), C = (a_2, a_5), and
// a² = (3A² − 2Ā) + (3sC² + 2B̄)·w + (3B² − 2C̄)·w². Of a square (x + y·s)² = (x² + ξy²) + 2xy·s even lanes need the
// first part, with (x + y)(x + ξy) and xy from the lane opposite, odd lanes the second.
BF_CALL Gt cyclotomic_square(Group group, Gt a) {
    Gt products = each_lane(group, [&](int, int k) {
        // Lanes 0 and 3 square A, lanes 2 and 5 B, lanes 4 and 1 C.
        int pair = (2 * k) % 3;
        Fp2 x = exchange(group, a, pair), y = exchange(group, a, pair + 3);
        bool even = k % 2 == 0;
        // Both below 2p: the product's c1 stays below 8p².
        Sum2 left = fp2::sum_unreduced(x, fp2::select(even, y, fp2::zero()));
        Sum2 right = fp2::sum_unreduced(fp2::select(even, x, fp2::zero()), fp2::select(even, fp2::mul_by_xi(y), y));
        return fp2::mul(left, right);
    });
    return each_lane(group, [&](int slot, int k) {
        bool even = k % 2 == 0;
        Fp2 own = products.own[slot], other = exchange(group, products, (k + 3) % 6);
        Fp2 whole = fp2::sub(own, fp2::add(other, fp2::mul_by_xi(other)));
        Fp2 half = fp2::twice(own);
        half = fp2::select(k == 1, fp2::mul_by_xi(half), half);
        Fp2 part = fp2::select(even, whole, half);
        Fp2 linear = fp2::select(even, fp2::neg(a.own[slot]), a.own[slot]);
        return fp2::add(fp2::twice(fp2::add(part, linear)), part);
    });
}

// |x|, x the curve parameter.
constexpr uint64_t X = 0xd201000000010000u;

// a^x, cyclotomic, x negative: 63 squarings and 5 products.
BF_INLINE Gt power_x(const Group &group, const Gt &a) {
    Gt r = a;
    BF_ROLL
    for (int bit = 62; bit >= 0; --bit) {
        r = cyclotomic_square(group, r);
        if (X >> bit & 1) r = mul(group, r, a);
    }
    return conjugate(group, r);
}

} // namespace gt
} // namespace blindfold
