// secp256k1: y² = x³ + 7 modulo p = 2^256 − 2^32 − 977, of prime order n. A point in one thread, complete formulas.
#pragma once

#include "../curve/complete.cuh"
#include "../field/pseudo_mersenne.cuh"

namespace blindfold {
namespace secp256k1 {

// p, the modulus of coordinates.
struct Coordinates {
    static constexpr int EXCESS_LIMBS = 2;
    BF_INLINE static uint32_t excess(int i) { return i == 0 ? 977 : 1; }
};

// n, the modulus of scalars.
struct Scalars {
    static constexpr int EXCESS_LIMBS = 5;
    BF_INLINE static uint32_t excess(int i) {
        constexpr uint32_t limbs[5] = {0x2fc9bebfu, 0x402da173u, 0x50b75fc4u, 0x45512319u, 0x00000001u};
        return limbs[i];
    }
};

// 2^256 − c − `less`: the prime for 0.
template <class Prime> BF_INLINE Limbs256 below_modulus(uint32_t less) {
    Limbs256 r;
    r.limb[0] = ptx::sub_cc(0, Prime::excess(0));
    BF_UNROLL
    for (int i = 1; i < 8; ++i) r.limb[i] = ptx::subc_cc(0, i < Prime::EXCESS_LIMBS ? Prime::excess(i) : 0);
    r.limb[0] -= less; // no borrow for what is asked here
    return r;
}

// a^(prime − 2): the inverse, or 0 of 0.
template <class Prime> BF_INLINE Limbs256 inverse(const Limbs256 &a) {
    return pseudo_mersenne::pow<Prime>(a, below_modulus<Prime>(2));
}

// (x : y : z); the identity is (0 : y : 0).
struct Point {
    Limbs256 x, y, z;
};

struct Curve {
    BF_INLINE static Limbs256 mul(const Limbs256 &a, const Limbs256 &b) { return pseudo_mersenne::mul<Coordinates>(a, b); }
    BF_INLINE static Limbs256 add(const Limbs256 &a, const Limbs256 &b) { return pseudo_mersenne::add<Coordinates>(a, b); }
    BF_INLINE static Limbs256 sub(const Limbs256 &a, const Limbs256 &b) { return pseudo_mersenne::sub<Coordinates>(a, b); }
    // 3·7·a.
    BF_INLINE static Limbs256 times_b3(const Limbs256 &a) {
        Limbs256 four = add(a, a);
        four = add(four, four);
        Limbs256 sixteen = add(four, four);
        sixteen = add(sixteen, sixteen);
        return add(add(sixteen, four), a);
    }
};

BF_INLINE Point identity() { return Point{pseudo_mersenne::word(0), pseudo_mersenne::word(1), pseudo_mersenne::word(0)}; }

BF_INLINE Point generator() {
    return Point{{{0x16f81798u, 0x59f2815bu, 0x2dce28d9u, 0x029bfcdbu, 0xce870b07u, 0x55a06295u, 0xf9dcbbacu, 0x79be667eu}},
                 {{0xfb10d4b8u, 0x9c47d08fu, 0xa6855419u, 0xfd17b448u, 0x0e1108a8u, 0x5da4fbfcu, 0x26a3c465u, 0x483ada77u}},
                 pseudo_mersenne::word(1)};
}

BF_CALL Point add(const Point &a, const Point &b) { return complete::add<Curve>(a, b); }
BF_CALL Point twice(const Point &a) { return complete::twice<Curve>(a); }

// A root of a, where a has one. p ≡ 3 (mod 4): a^((p+1)/4).
BF_INLINE Limbs256 square_root(const Limbs256 &a) {
    const Limbs256 exponent{
        {0xbfffff0cu, 0xffffffffu, 0xffffffffu, 0xffffffffu, 0xffffffffu, 0xffffffffu, 0xffffffffu, 0x3fffffffu}};
    return pseudo_mersenne::pow<Coordinates>(a, exponent);
}

} // namespace secp256k1
} // namespace blindfold
