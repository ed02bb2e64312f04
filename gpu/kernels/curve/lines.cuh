// The lines of the Miller loop for fixed points of G2.
//
// The convention. The twist is y'² = x'³ + 4ξ, ξ = 1 + u, and F_p12 = F_p2[w]/(w⁶ − ξ); a point (x', y') of the twist is
// (x'/w², y'/w³) of the curve. The line of slope λ'/w through it, at P = (x_P, y_P), is up to a factor of w³
//
//     (λ'x' − y') + (−λ'·x_P)·w² + y_P·w³,
//
// with λ' the slope on the twist, x' and y' those of a point on the line. w³ is in F_p4, so the final exponentiation takes
// it away. A step is kept as the pair (λ', λ'x' − y').
//
// The steps follow |x| = 0xd201000000010000 from the second highest bit: for each bit the tangent at T, then T ← 2T, and
// where the bit is 1 the chord through T and Q, then T ← T + Q, with T = Q at the start. Tangents square the loop's value
// before, chords do not. 63 tangents, 5 chords. As x is negative the loop's value is conjugated in the end.
//
// A table is [point][step], 13,056 bytes a point. The identity, (0, 0), has a table of zeros, which no other point has: its
// pairing is 1.
#pragma once

#include "../field/fp2.cuh"

namespace blindfold {

// Affine coordinates on the twist; the identity is (0, 0).
struct G2Affine {
    Fp2 x, y;
};

// λ' and λ'x' − y'.
struct Line {
    Fp2 slope, constant;
};

namespace lines {

constexpr uint64_t LOOP = 0xd201000000010000ull;
constexpr uint32_t STEPS = 68;

BF_INLINE bool is_identity(const G2Affine &a) { return fp2::is_zero(a.x) && fp2::is_zero(a.y); }

// Whether the table that starts with this line is that of the identity. (A slope of 0 is that of x' = 0 alone, where
// y' ≠ 0.)
BF_INLINE bool is_marked(const Line &first) { return fp2::is_zero(first.slope) && fp2::is_zero(first.constant); }

// a/b in F_p2, 0 where b = 0: one inversion.
BF_CALL Fp2 quotient(const Fp2 &a, const Fp2 &b) { return fp2::mul(a, fp2::inverse(b)); }

// The line of that slope through t, whose third point has the x-coordinate λ'² − x_t − x_other; t becomes that point's
// mirror image, the sum. `other` may be t.x itself.
BF_CALL Line step(G2Affine &t, const Fp2 &slope, const Fp2 &other) {
    Line line{slope, fp2::sub(fp2::mul(slope, t.x), t.y)};
    t.x = fp2::sub(fp2::sub(fp2::square(slope), t.x), other);
    t.y = fp2::sub(line.constant, fp2::mul(slope, t.x));
    return line;
}

// The tables of points, which are in the subgroup: only there no denominator is 0. One item a point, an inversion and
// about five products in F_p2 a step.
struct Prepare {
    const G2Affine *points;
    Line *out;

    BF_INLINE void operator()(uint32_t item) const {
        const G2Affine q = points[item];
        Line *table = out + size_t(item) * STEPS;
        if (is_identity(q)) {
            for (uint32_t i = 0; i < STEPS; ++i) table[i] = Line{fp2::zero(), fp2::zero()};
            return;
        }
        G2Affine t = q;
        for (int bit = 62; bit >= 0; --bit) {
            Fp2 square = fp2::square(t.x);
            *table++ = step(t, quotient(fp2::add(fp2::twice(square), square), fp2::twice(t.y)), t.x);
            if (LOOP >> bit & 1) *table++ = step(t, quotient(fp2::sub(t.y, q.y), fp2::sub(t.x, q.x)), q.x);
        }
    }
};

} // namespace lines
} // namespace blindfold
