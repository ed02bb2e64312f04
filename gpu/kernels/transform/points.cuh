// The forward transform of points, as crates/bte/src/convolution defines it: the polynomial Σ_m slot_m·z^m in all points
// ζ^j·ω^f of a domain of c cosets of M-th roots of unity, in order [coset][bit-reversed frequency].
//
// `Fold`, then a `PointLevel` for each half = M/2, M/4 … 1 (radix 2, decimation in frequency). The results stay projective.
#pragma once

#include "../curve/g1.cuh"
#include "../curve/lanes.cuh"

namespace blindfold {
namespace transform {

// M = 2^log_size and c.
struct Shape {
    uint32_t log_size;
    uint32_t cosets;

    BF_INLINE uint32_t size() const { return uint32_t(1) << log_size; }
    BF_INLINE uint32_t points() const { return cosets << log_size; }
    // L: most ciphertexts in one batch.
    BF_INLINE uint32_t capacity() const { return points() / 2; }
    // In coset j what has exponent m is multiplied by ζ^twist(j, m).
    BF_INLINE uint32_t twist(uint32_t coset, uint32_t exponent) const { return coset * (exponent % 3) % 3; }
};

// Folds a batch to the input of the transforms: element l of coset j is Σ_q ζ^(j(l+qM))·slot_(l+qM), q = 0, 1. Ciphertext
// `position` is in slot L − 1 − position, the release pd as −pd in slot L. One item for each of the c·M points.
struct Fold {
    Shape shape;
    const G1Affine *inputs; // in batch order
    uint32_t count;         // of the inputs, at most L
    const G1Affine *release; // null without one
    G1 *out;

    BF_INLINE G1Affine slot(uint32_t index) const {
        uint32_t capacity = shape.capacity();
        if (index < capacity && capacity - 1 - index < count) return inputs[capacity - 1 - index];
        if (index == capacity && release != nullptr) return g1::neg(*release);
        return G1Affine{fp::zero(), fp::zero()};
    }

    BF_INLINE void operator()(uint32_t item) const {
        uint32_t coset = item >> shape.log_size, element = item & (shape.size() - 1);
        uint32_t beyond = element + shape.size();
        G1 value = g1::from_affine(g1::times_zeta(slot(element), shape.twist(coset, element)));
        out[item] = g1::add_affine(value, g1::times_zeta(slot(beyond), shape.twist(coset, beyond)));
    }
};

// The butterflies of one level, blocks of length 2·half: (a, b) becomes (a + b, (a − b)·ω^(i·M/(2·half))), i the place in
// the block. One item for each of the c·M/2 butterflies; neighbours have the same twiddle as far as there are blocks, so
// that the lanes of a warp walk the same digits.
struct PointLevel {
    Shape shape;
    uint32_t half;
    g1::Digits roots; // ω^0, ω^1 … ω^(M/2−1)
    G1 *values;

    BF_INLINE void operator()(uint32_t item) const {
        uint32_t blocks = shape.points() / (2 * half);
        uint32_t place = item / blocks, block = item % blocks;
        G1 *low = values + size_t(block) * 2 * half + place, *high = low + half;
        G1 a = *low, b = *high;
        *low = g1::add(a, b);
        G1 difference = g1::sub(a, b);
        *high = place == 0 ? difference : g1::multiply(difference, roots, place * (shape.size() / (2 * half)));
    }
};

// The same with a butterfly in each group of lanes, for transforms of so few points that a thread each leaves most of the
// device idle.
struct PointLevelInLanes {
    Shape shape;
    uint32_t half;
    g1::Digits roots;
    G1 *values;

    BF_INLINE void operator()(const Group &group, uint32_t item, bool stores) const {
        uint32_t blocks = shape.points() / (2 * half);
        uint32_t place = item / blocks, block = item % blocks;
        G1 *low = values + size_t(block) * 2 * half + place, *high = low + half;
        G1Lanes a = g1_lanes::load(group, low), b = g1_lanes::load(group, high);
        g1_lanes::store(group, low, g1_lanes::add(group, a, b), stores);
        G1Lanes difference = g1_lanes::add(group, a, g1_lanes::negate_where(group, true, b));
        if (warp_any(each_lane(group, [&](int, int) { return place != 0; })))
            difference = g1_lanes::multiply(group, difference, roots, place * (shape.size() / (2 * half)));
        g1_lanes::store(group, high, difference, stores);
    }
};

} // namespace transform
} // namespace blindfold
