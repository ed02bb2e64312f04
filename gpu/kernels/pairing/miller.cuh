// The Miller loop of the optimal ate pairing over fixed lines.
//
// The twist y² = x³ + 4ξ maps to the curve by (x', y') → (x'·w^(−2), y'·w^(−3)). A line through points of the image, of
// slope λ'·w^(−1) there, takes at P = (x, y) the value y − λ'·x·w^(−1) + (λ'x' − y')·w^(−3). Factors in F_p2, and powers
// of w, vanish in the easy part of the final exponentiation, so what is multiplied is, with P = (X : Y : Z),
//
//     (λ'x' − y')·Z − λ'·X·w² + Y·w³.
//
// No case is needed for the identity. P = (0 : 1 : 0) makes all lines Y·w³, and so do lines of zeros, which stand for the
// identity as the other argument; after the easy part that is 1. A line is never zero, for no point of the curve has
// Y = 0: its order is odd.
#pragma once

#include "../curve/lines.cuh"
#include "../tower/cyclotomic.cuh"

namespace blindfold {
namespace pairing {

// Lines of a Miller loop, in the order of curve/lines.cuh.
constexpr int LINES = int(lines::STEPS);

// f times the line's value at (x : y : z).
//
// Each lane has one of the four products in F_p to do, lanes 4 and 5 repeat two of them.
BF_INLINE Gt mul_line_at(const Group &group, const Gt &f, const Line *line, const Fp *point) {
    Spread<Fp> products = each_lane(group, [&](int, int lane) {
        const Fp *factors = reinterpret_cast<const Fp *>(line); // slope.c0, slope.c1, constant.c0, constant.c1
        return fp::mul(factors[lane % 4], point[lane % 4 < 2 ? 0 : 2]);
    });
    Spread<Fp2> constants = each_lane(group, [&](int, int) {
        return Fp2{exchange(group, products, 2), exchange(group, products, 3)};
    });
    Spread<Fp2> slopes = each_lane(group, [&](int, int) {
        return fp2::neg(Fp2{exchange(group, products, 0), exchange(group, products, 1)});
    });
    return gt::mul_line(group, f, constants, slopes, point[1]);
}

// The Miller value of a projective point (X, Y, Z in a row) and the point with these lines, up to factors that the easy
// part removes: 62 squarings and 68 products with lines.
BF_INLINE Gt miller_loop(const Group &group, const Fp *point, const Line *lines) {
    Gt f = gt::one(group);
    const Line *next = lines;
    BF_ROLL
    for (int bit = 62; bit >= 0; --bit) {
        if (bit != 62) f = gt::square(group, f);
        int count = 1 + int(gt::X >> bit & 1);
        BF_ROLL
        for (int i = 0; i < count; ++i) f = mul_line_at(group, f, next++, point);
    }
    return gt::conjugate(group, f); // x is negative
}

} // namespace pairing
} // namespace blindfold
