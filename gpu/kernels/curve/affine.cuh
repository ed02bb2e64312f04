// Affine forms of many points, with shared inversions (Montgomery's trick).
#pragma once

#include "../field/inverse.cuh"
#include "g1.cuh"

namespace blindfold {
namespace g1 {

// out_i = points_i in affine form; identities are allowed. A thread takes the points item, item + stride, item + 2·stride …
// of `count`, stride the number of items: neighbours read neighbours. Costs an inversion for each item, six products for
// each point.
struct Normalise {
    const G1 *points;
    uint32_t count;
    uint32_t stride;
    G1Affine *out;

    // Points of one item, by choice: more share an inversion, fewer occupy the device.
    static constexpr uint32_t SHARED = 16;

    BF_INLINE static uint32_t items(uint32_t count) { return (count + SHARED - 1) / SHARED; }

    // An identity counts as 1.
    BF_INLINE static Fp divisor(const G1 &point) { return fp::select(is_identity(point), fp::one(), point.z); }

    BF_INLINE void operator()(uint32_t item) const {
        // On the way up the outputs hold the products of the divisors before theirs.
        Fp product = fp::one();
        uint32_t last = item;
        for (uint32_t i = item; i < count; i += stride) {
            out[i].x = product;
            product = fp::mul(product, divisor(points[i]));
            last = i;
        }
        Fp inverse = fp::inverse(product);
        for (uint32_t i = last;; i -= stride) {
            G1 point = points[i];
            Fp own = fp::mul(inverse, out[i].x);
            inverse = fp::mul(inverse, divisor(point));
            bool infinite = is_identity(point);
            out[i].x = fp::select(infinite, fp::zero(), fp::mul(point.x, own));
            out[i].y = fp::select(infinite, fp::zero(), fp::mul(point.y, own));
            if (i == item) break;
        }
    }
};

} // namespace g1
} // namespace blindfold
