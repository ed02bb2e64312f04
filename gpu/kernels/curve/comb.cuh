// Multiples of one fixed point of G1 by public scalars, from a table made on the device.
//
// With windows of w bits the table has a row for each of the 255/w + 1 windows of a scalar, and row i the multiples
// 1 … 2^(w−1) of 2^(wi)·P: for w = 16, 16 rows of 32,768 affine points, 50 MB. A multiple costs an addition a row.
//
// To make it: `FirstColumn`, then `NextColumns` for known = 1, 2, 4 … 2^(w−2), then g1::Normalise of all.
#pragma once

#include "affine.cuh"
#include "scalars.cuh"

namespace blindfold {
namespace comb {

constexpr uint32_t SCALAR_BITS = 255;

BF_INLINE uint32_t rows(uint32_t window_bits) { return scalars::windows(SCALAR_BITS, window_bits); }
BF_INLINE uint32_t columns(uint32_t window_bits) { return uint32_t(1) << (window_bits - 1); }

// Entry 0 of each row, by w doublings a row: one item.
struct FirstColumn {
    const G1Affine *base;
    uint32_t window_bits;
    G1 *table; // [row][multiple − 1]

    BF_INLINE void operator()(uint32_t) const {
        G1 point = g1::from_affine(*base);
        for (uint32_t row = 0; row < rows(window_bits); ++row) {
            table[size_t(row) * columns(window_bits)] = point;
            for (uint32_t i = 0; i < window_bits; ++i) point = g1::twice(point);
        }
    }
};

// Multiples known + 1 … 2·known of every row, from those up to `known`: an item for each, rows·known in all.
struct NextColumns {
    uint32_t window_bits;
    uint32_t known;
    G1 *table;

    BF_INLINE void operator()(uint32_t item) const {
        G1 *row = table + size_t(item / known) * columns(window_bits);
        uint32_t index = item % known;
        row[known + index] = g1::add(row[index], row[known - 1]);
    }
};

// k·P.
BF_INLINE G1 multiply(const G1Affine *table, uint32_t window_bits, const uint32_t *k) {
    G1 sum = g1::identity();
    scalars::Reader digits(k, scalars::LIMBS, window_bits);
    for (uint32_t row = 0; row < rows(window_bits); ++row) {
        int digit = digits.next();
        if (digit == 0) continue;
        G1Affine entry = table[size_t(row) * columns(window_bits) + uint32_t(digit < 0 ? -digit : digit) - 1];
        entry.y = fp::select(digit < 0, fp::neg(entry.y), entry.y);
        sum = g1::add_affine(sum, entry);
    }
    return sum;
}

// out_i = scalars_i·P.
struct Multiply {
    const G1Affine *table;
    uint32_t window_bits;
    const uint32_t *scalars; // eight limbs each
    G1 *out;

    BF_INLINE void operator()(uint32_t item) const {
        out[item] = multiply(table, window_bits, scalars + size_t(item) * scalars::LIMBS);
    }
};

// out_i = 1 where scalars_i·P is points_i, else 0.
struct Verify {
    const G1Affine *table;
    uint32_t window_bits;
    const uint32_t *scalars; // eight limbs each
    const G1Affine *points;
    uint32_t *out;

    BF_INLINE void operator()(uint32_t item) const {
        G1 product = multiply(table, window_bits, scalars + size_t(item) * scalars::LIMBS);
        out[item] = g1::equal(product, points[item]) ? 1 : 0;
    }
};

} // namespace comb
} // namespace blindfold
