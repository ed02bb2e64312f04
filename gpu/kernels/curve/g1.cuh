// G1: y² = x³ + 4 over F_p, a point in one thread.
//
// The formulas are complete (complete.cuh): whoever encrypts can bring about equal, opposite and identity operands.
#pragma once

#include "../field/fp.cuh"
#include "complete.cuh"

namespace blindfold {

// (x : y : z), the affine point (x/z, y/z); the identity is (0 : y : 0).
struct G1 {
    Fp x, y, z;
};

// Affine coordinates; the identity is (0, 0).
struct G1Affine {
    Fp x, y;
};

namespace g1 {

// β with x²·(x, y) = (βx, −y), x the curve parameter, and β².
BF_INLINE Fp beta() {
    constexpr uint32_t limbs[12] = {0x798a64e8u, 0x30f1361bu, 0x7ece5a2au, 0xf3b8ddabu, 0xc61577f7u, 0x16a8ca3au,
                                    0x74fd029bu, 0xc26a2ff8u, 0x60701c6eu, 0x3636b766u, 0x241b6160u, 0x051ba4abu};
    Fp r;
    BF_UNROLL
    for (int i = 0; i < fp::LIMBS; ++i) r.limb[i] = limbs[i];
    return r;
}

BF_INLINE Fp beta_squared() {
    constexpr uint32_t limbs[12] = {0x8671f071u, 0xcd03c9e4u, 0x1fcda5d2u, 0x5dab2246u, 0xd3851b95u, 0x587042afu,
                                    0x01bacb9eu, 0x8eb60ebeu, 0x83d050d2u, 0x03f97d6eu, 0x54638741u, 0x18f02065u};
    Fp r;
    BF_UNROLL
    for (int i = 0; i < fp::LIMBS; ++i) r.limb[i] = limbs[i];
    return r;
}

BF_INLINE G1 identity() { return G1{fp::zero(), fp::one(), fp::zero()}; }

BF_INLINE bool is_identity(const G1 &a) { return fp::is_zero(a.z); }

// No point of the curve has x = 0 and y = 0.
BF_INLINE bool is_identity(const G1Affine &a) { return fp::is_zero(a.x) && fp::is_zero(a.y); }

BF_INLINE G1 select(bool which, const G1 &yes, const G1 &no) {
    return G1{fp::select(which, yes.x, no.x), fp::select(which, yes.y, no.y), fp::select(which, yes.z, no.z)};
}

BF_INLINE G1 neg(const G1 &a) { return G1{a.x, fp::neg(a.y), a.z}; }

BF_INLINE G1Affine neg(const G1Affine &a) { return G1Affine{a.x, fp::neg(a.y)}; }

BF_INLINE G1 negate_where(bool which, const G1 &a) { return G1{a.x, fp::select(which, fp::neg(a.y), a.y), a.z}; }

BF_INLINE G1 from_affine(const G1Affine &a) {
    bool infinite = is_identity(a);
    return G1{a.x, fp::select(infinite, fp::one(), a.y), fp::select(infinite, fp::zero(), fp::one())};
}

struct Curve {
    BF_INLINE static Fp mul(const Fp &a, const Fp &b) { return fp::mul(a, b); }
    BF_INLINE static Fp add(const Fp &a, const Fp &b) { return fp::add(a, b); }
    BF_INLINE static Fp sub(const Fp &a, const Fp &b) { return fp::sub(a, b); }
    // 3·4·a.
    BF_INLINE static Fp times_b3(const Fp &a) {
        Fp four = fp::twice(fp::twice(a));
        return fp::add(fp::twice(four), four);
    }
};

BF_CALL G1 add(const G1 &a, const G1 &b) { return complete::add<Curve>(a, b); }

// b may be the identity.
BF_CALL G1 add_affine(const G1 &a, const G1Affine &b) {
    return select(is_identity(b), a, complete::add_affine<Curve>(a, b));
}

BF_INLINE G1 sub(const G1 &a, const G1 &b) { return add(a, neg(b)); }

BF_CALL G1 twice(const G1 &a) { return complete::twice<Curve>(a); }

// x²·a, x the curve parameter. Only for points of the subgroup.
BF_INLINE G1 times_x_squared(const G1 &a) { return G1{fp::mul(a.x, beta()), fp::neg(a.y), a.z}; }

// ζ^power·a for ζ = −x², power 0, 1 or 2. Only for points of the subgroup.
BF_INLINE G1Affine times_zeta(const G1Affine &a, uint32_t power) {
    if (power == 0) return a;
    return G1Affine{fp::mul(a.x, fp::select(power == 1, beta(), beta_squared())), a.y};
}

// Whether both are the same point.
BF_INLINE bool equal(const G1 &a, const G1 &b) {
    return fp::equal(fp::mul(a.x, b.z), fp::mul(b.x, a.z)) && fp::equal(fp::mul(a.y, b.z), fp::mul(b.y, a.z)) &&
           is_identity(a) == is_identity(b);
}

BF_INLINE bool equal(const G1 &a, const G1Affine &b) {
    return is_identity(b) ? is_identity(a)
                          : !is_identity(a) && fp::equal(a.x, fp::mul(b.x, a.z)) && fp::equal(a.y, fp::mul(b.y, a.z));
}

// Multiples of a point that a multiplication keeps: 1, 3 … 15 times it for odd digits, else 1, 2 … 8 times.
constexpr int MULTIPLES = 8;

// The recoded scalars of a launch: k = k₁ + k₂·x² with the digits of k₁ and k₂ at each binary position, all 0 but every
// few: [scalar][position][half], the lowest position first.
//
// Where the lanes of a warp share a scalar, digits of width-5 non-adjacent form are fewest: `odd`, at most 15 in absolute
// value. Where they do not, digits at every fourth position, −8 to 8, keep the warp together.
struct Digits {
    const int8_t *digits;
    uint32_t positions;
    bool odd;
};

BF_INLINE G1 multiple(const G1 *multiples, bool odd, int digit) {
    int magnitude = digit < 0 ? -digit : digit;
    return negate_where(digit < 0, multiples[odd ? magnitude >> 1 : magnitude - 1]);
}

// The scalar of that number times the point, which is in the subgroup, in variable time. Costs a doubling for each position
// and an addition for each digit that is not 0 in some lane of the warp.
BF_INLINE G1 multiply(const G1 &point, const Digits &recoded, uint32_t scalar) {
    G1 multiples[MULTIPLES];
    multiples[0] = point;
    G1 step = recoded.odd ? twice(point) : point;
    for (int i = 1; i < MULTIPLES; ++i) multiples[i] = add(multiples[i - 1], step);
    const int8_t *digits = recoded.digits + size_t(scalar) * recoded.positions * 2;
    G1 sum = identity();
    for (uint32_t position = recoded.positions; position-- > 0;) {
        sum = twice(sum);
        int low = digits[2 * position], high = digits[2 * position + 1];
        if (low != 0) sum = add(sum, multiple(multiples, recoded.odd, low));
        if (high != 0) sum = add(sum, times_x_squared(multiple(multiples, recoded.odd, high)));
    }
    return sum;
}

} // namespace g1
} // namespace blindfold
