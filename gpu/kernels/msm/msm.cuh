// Σ kᵢ·Pᵢ in G1 for public scalars, in variable time: buckets of signed windows (Pippenger), the scalars split by the
// endomorphism; and for few points each point times its scalar, then a tree of sums.
//
// Identities, equal and opposite points are allowed; points are in the subgroup where scalars are split. The result is
// projective; which multiple of the coordinates it is depends on the order in which threads came.
#pragma once

#include "../machine/launch.cuh"
#include "buckets.cuh"

namespace blindfold {
namespace msm {

// Sizes of one multi-scalar multiplication, by the number of points.
struct Plan {
    Layout layout;
    uint32_t log_stretch; // buckets that one thread of the reduction adds
    uint32_t share;       // entries that one thread adds, at least 4

    uint32_t chunks() const { return (layout.keys() + SCAN_KEYS - 1) / SCAN_KEYS; }
    uint32_t shares(uint32_t entries) const { return (entries + share - 1) / share; }
    uint32_t stretches() const { return layout.keys() >> log_stretch; }
};

// The plan with the fewest additions, for 1 ≤ points < 2^26: an entry costs one, a bucket two and its part of the
// multiplication by its place.
inline Plan plan(uint32_t points, bool split) {
    Layout best{points, split, 2};
    uint64_t fewest = ~uint64_t(0);
    for (uint32_t window_bits = 2; window_bits <= 16; ++window_bits) {
        Layout layout{points, split, window_bits};
        uint64_t additions = uint64_t(points) * layout.halves() * layout.windows() + 4 * uint64_t(layout.keys());
        if (additions < fewest) {
            fewest = additions;
            best = layout;
        }
    }
    // Enough threads to fill a device first, then longer shares.
    uint32_t share = best.entries() >> 16;
    share = share < 4 ? 4 : share > 64 ? 64 : share;
    return Plan{best, best.log_buckets() < 3 ? best.log_buckets() : 3, share};
}

// Memory of a multiplication, cut out of one block.
struct Workspace {
    uint32_t *counts, *sums, *keys, *entries;
    G1 *buckets, *stretches;
    uint32_t *rest_keys[2];
    G1 *rest_sums[2];
    size_t bytes;
};

template <class T> T *cut(uint8_t *block, size_t &at, size_t count) {
    T *result = reinterpret_cast<T *>(block + at);
    at += (count * sizeof(T) + 255) / 256 * 256;
    return result;
}

// A block of `bytes` bytes, 256-aligned; `block` may be null to learn how many.
inline Workspace workspace(const Plan &plan, uint8_t *block) {
    Workspace space;
    size_t at = 0;
    uint32_t entries = plan.layout.entries(), rest = 2 * plan.shares(entries), next = 2 * plan.shares(rest);
    space.counts = cut<uint32_t>(block, at, plan.layout.keys());
    space.sums = cut<uint32_t>(block, at, plan.chunks() + 1);
    space.keys = cut<uint32_t>(block, at, entries);
    space.entries = cut<uint32_t>(block, at, entries);
    space.buckets = cut<G1>(block, at, plan.layout.keys());
    space.stretches = cut<G1>(block, at, plan.stretches());
    for (int side = 0; side < 2; ++side) {
        space.rest_keys[side] = cut<uint32_t>(block, at, side == 0 ? rest : next);
        space.rest_sums[side] = cut<G1>(block, at, side == 0 ? rest : next);
    }
    space.bytes = at;
    return space;
}

// Runs launches one after the other until one fails.
struct Sequence {
    Stream stream;
    int error;

    template <class Kernel> void then(const Kernel &kernel, uint32_t items) {
        if (error == 0) error = launch(stream, kernel, items);
    }
};

// Adds all rows of `count` points up, each to its first place.
inline void add_rows(Sequence &sequence, uint32_t rows, uint32_t count, G1 *points) {
    for (uint32_t left = count; left > 1; left -= left / 2) sequence.then(HalveRows{count, left, points}, rows * (left / 2));
}

inline void sort_entries(Sequence &sequence, const Plan &plan, const uint32_t *scalars, const Workspace &space) {
    const Layout &layout = plan.layout;
    sequence.then(ClearCounts{space.counts}, layout.keys());
    sequence.then(Count{layout, scalars, space.counts}, layout.points);
    sequence.then(SumChunks{space.counts, layout.keys(), space.sums}, plan.chunks());
    sequence.then(ScanChunks{plan.chunks(), space.sums}, 1);
    sequence.then(Begin{space.sums, layout.keys(), space.counts}, plan.chunks());
    sequence.then(Place{layout, scalars, space.counts, space.keys, space.entries}, layout.points);
}

inline void fill_buckets(Sequence &sequence, const Plan &plan, const G1Affine *points, const Workspace &space) {
    sequence.then(ClearPoints{space.buckets}, plan.layout.keys());
    AffineEntries source{points, space.entries, space.sums + plan.chunks()};
    uint32_t shares = plan.shares(plan.layout.entries());
    sequence.then(AddShares<AffineEntries>{source, space.keys, plan.share, shares == 1, space.buckets, space.rest_keys[0],
                                           space.rest_sums[0]},
                  shares);
    for (int side = 0; shares > 1; side = 1 - side) {
        PartialSums partial{space.rest_sums[side], 2 * shares};
        const uint32_t *keys = space.rest_keys[side];
        shares = plan.shares(2 * shares);
        sequence.then(AddShares<PartialSums>{partial, keys, plan.share, shares == 1, space.buckets, space.rest_keys[1 - side],
                                             space.rest_sums[1 - side]},
                      shares);
    }
}

// out = Σ scalars_i·points_i, all in device memory. Returns 0, or the error of a launch.
inline int run(Stream stream, const Plan &plan, const G1Affine *points, const uint32_t *scalars, uint8_t *block, G1 *out) {
    Workspace space = workspace(plan, block);
    Sequence sequence{stream, 0};
    sort_entries(sequence, plan, scalars, space);
    fill_buckets(sequence, plan, points, space);
    const Layout &layout = plan.layout;
    sequence.then(SumStretches{layout.log_buckets(), plan.log_stretch, space.buckets, space.stretches}, plan.stretches());
    uint32_t row = plan.stretches() / layout.windows();
    add_rows(sequence, layout.windows(), row, space.stretches);
    sequence.then(JoinWindows{layout.windows(), layout.window_bits, row, space.stretches, out}, 1);
    return sequence.error;
}

// Binary positions of the digits that `Recode` writes.
constexpr uint32_t POSITIONS = 129;

// Digits of scalars for g1::multiply, at every fourth position. One item a scalar.
struct Recode {
    bool split; // as in Layout
    const uint32_t *scalars;
    int8_t *digits; // [scalar][position][half]

    BF_INLINE void operator()(uint32_t item) const {
        int8_t *own = digits + size_t(item) * POSITIONS * 2;
        for (uint32_t i = 0; i < POSITIONS * 2; ++i) own[i] = 0;
        each_entry(Layout{item + 1, split, 4}, scalars, item, WriteDigit{own});
    }

    struct WriteDigit {
        int8_t *digits;

        // Keys of four-bit windows: window·8 + magnitude − 1.
        BF_INLINE void operator()(uint32_t key, uint32_t entry) const {
            int magnitude = int(key % 8) + 1;
            digits[key / 8 * 4 * 2 + (entry >> 1 & 1)] = int8_t(entry & 1 ? -magnitude : magnitude);
        }
    };
};

// products_i = scalars_i·points_i.
struct Products {
    const G1Affine *points;
    g1::Digits scalars;
    G1 *products;

    BF_INLINE void operator()(uint32_t item) const {
        products[item] = g1::multiply(g1::from_affine(points[item]), scalars, item);
    }
};

// The same sum for few points: a multiplication each, then a tree of sums. `digits` has POSITIONS·2 bytes a point, the
// result is `products[0]`. Returns 0, or the error of a launch.
inline int run_directly(Stream stream, uint32_t points, bool split, const G1Affine *inputs, const uint32_t *scalars,
                        int8_t *digits, G1 *products) {
    Sequence sequence{stream, 0};
    sequence.then(Recode{split, scalars, digits}, points);
    sequence.then(Products{inputs, g1::Digits{digits, POSITIONS, false}, products}, points);
    add_rows(sequence, 1, points, products);
    return sequence.error;
}

} // namespace msm
} // namespace blindfold
