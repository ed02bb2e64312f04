// G1: y² = x³ + 4 over F_p, a point in one thread.
//
// Complete homogeneous projective formulas (Renes, Costello and Batina, "Complete addition formulas for prime order
// elliptic curves", 2015/1060, algorithms 7 to 9 with a = 0 and b₃ = 3·4): no case differs, so equal, opposite and
// identity operands, which whoever encrypts can bring about, neither need a branch nor split a warp. An addition costs
// 12 field products, of an affine point 11, a doubling 8.
#pragma once

#include "../field/fp.cuh"

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

// 12·a, which is 3·4·a.
BF_INLINE Fp times_b3(const Fp &a) {
    Fp four = fp::twice(fp::twice(a));
    return fp::add(fp::twice(four), four);
}

// The end that additions share: with x₁x₂, y₁y₂, z₁z₂ and the sums x₁y₂ + x₂y₁, y₁z₂ + y₂z₁, x₁z₂ + x₂z₁. Six products.
BF_INLINE G1 sum_of(const Fp &xx, const Fp &yy, const Fp &zz, const Fp &xy, const Fp &yz, const Fp &xz) {
    Fp three_xx = fp::add(fp::twice(xx), xx);
    Fp b3_zz = times_b3(zz), b3_xz = times_b3(xz);
    Fp plus = fp::add(yy, b3_zz), minus = fp::sub(yy, b3_zz);
    G1 sum;
    sum.x = fp::sub(fp::mul(xy, minus), fp::mul(yz, b3_xz));
    sum.y = fp::add(fp::mul(minus, plus), fp::mul(b3_xz, three_xx));
    sum.z = fp::add(fp::mul(plus, yz), fp::mul(three_xx, xy));
    return sum;
}

// a·d + b·c for the products a·c and b·d: (a + b)(c + d) − ac − bd.
BF_INLINE Fp cross(const Fp &a, const Fp &b, const Fp &c, const Fp &d, const Fp &ac, const Fp &bd) {
    return fp::sub(fp::mul(fp::add(a, b), fp::add(c, d)), fp::add(ac, bd));
}

BF_CALL G1 add(const G1 &a, const G1 &b) {
    Fp xx = fp::mul(a.x, b.x), yy = fp::mul(a.y, b.y), zz = fp::mul(a.z, b.z);
    return sum_of(xx, yy, zz, cross(a.x, a.y, b.x, b.y, xx, yy), cross(a.y, a.z, b.y, b.z, yy, zz),
                  cross(a.x, a.z, b.x, b.z, xx, zz));
}

// b may be the identity.
BF_CALL G1 add_affine(const G1 &a, const G1Affine &b) {
    Fp xx = fp::mul(a.x, b.x), yy = fp::mul(a.y, b.y);
    Fp yz = fp::add(fp::mul(b.y, a.z), a.y), xz = fp::add(fp::mul(b.x, a.z), a.x);
    G1 sum = sum_of(xx, yy, a.z, cross(a.x, a.y, b.x, b.y, xx, yy), yz, xz);
    return select(is_identity(b), a, sum);
}

BF_INLINE G1 sub(const G1 &a, const G1 &b) { return add(a, neg(b)); }

BF_CALL G1 twice(const G1 &a) {
    Fp yy = fp::square(a.y), yz = fp::mul(a.y, a.z), xy = fp::mul(a.x, a.y);
    Fp b3_zz = times_b3(fp::square(a.z));
    Fp eight_yy = fp::twice(fp::twice(fp::twice(yy)));
    Fp minus = fp::sub(yy, fp::add(fp::twice(b3_zz), b3_zz));
    G1 r;
    r.x = fp::twice(fp::mul(minus, xy));
    r.y = fp::add(fp::mul(minus, fp::add(yy, b3_zz)), fp::mul(b3_zz, eight_yy));
    r.z = fp::mul(yz, eight_yy);
    return r;
}

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

// out_i = scalars_i·points_i.
struct Multiply {
    const G1 *points;
    Digits scalars;
    G1 *out;

    BF_INLINE void operator()(uint32_t item) const { out[item] = multiply(points[item], scalars, item); }
};

} // namespace g1
} // namespace blindfold
