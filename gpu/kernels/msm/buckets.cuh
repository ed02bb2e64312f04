// Sums of buckets: every thread adds an equal share of the sorted entries, whatever the scalars.
//
// A share begins and ends within buckets. The sums of the buckets within it go to their place; those of its first and its
// last bucket, which neighbours may share, are entries of the next round. A round leaves two entries of each share, the
// last one has a single share. Equal scalars, all in one bucket, take no longer than random ones.
#pragma once

#include "windows.cuh"

namespace blindfold {
namespace msm {

// Sets every bucket to the identity.
struct ClearPoints {
    G1 *points;

    BF_INLINE void operator()(uint32_t item) const { points[item] = g1::identity(); }
};

// The entries of the first round.
struct AffineEntries {
    const G1Affine *points;
    const uint32_t *entries;
    const uint32_t *total;

    BF_INLINE uint32_t count() const { return *total; }
    BF_INLINE G1 add(const G1 &sum, uint32_t index) const {
        return g1::add_affine(sum, load_entry(points, entries[index]));
    }
};

// Those of the others.
struct PartialSums {
    const G1 *sums;
    uint32_t total;

    BF_INLINE uint32_t count() const { return total; }
    BF_INLINE G1 add(const G1 &sum, uint32_t index) const { return g1::add(sum, sums[index]); }
};

// Adds the entries of one share, one item a share.
template <class Entries> struct AddShares {
    Entries source;
    const uint32_t *keys;
    uint32_t share;
    bool last; // there is one share only
    G1 *buckets;
    uint32_t *rest_keys; // two a share, NO_KEY where there is nothing
    G1 *rest_sums;

    BF_INLINE void finish(uint32_t item, uint32_t key, const G1 &sum, bool first, bool ends) const {
        if (last || (!first && !ends)) {
            buckets[key] = sum;
            return;
        }
        uint32_t slot = 2 * item + (first ? 0 : 1);
        rest_keys[slot] = key;
        rest_sums[slot] = sum;
    }

    BF_INLINE void operator()(uint32_t item) const {
        if (!last) rest_keys[2 * item] = rest_keys[2 * item + 1] = NO_KEY;
        uint32_t count = source.count(), begin = item * share;
        uint32_t end = begin + share < count ? begin + share : count;
        uint32_t current = NO_KEY;
        bool first = true;
        G1 sum = g1::identity();
        for (uint32_t index = begin; index < end; ++index) {
            uint32_t key = keys[index];
            if (key == NO_KEY) continue;
            if (key != current && current != NO_KEY) {
                finish(item, current, sum, first, false);
                first = false;
                sum = g1::identity();
            }
            current = key;
            sum = source.add(sum, index);
        }
        if (current != NO_KEY) finish(item, current, sum, first, true);
    }
};

// Σ (index + 1)·bucket over a stretch of one window's buckets, index counted in the window. One item a stretch of
// 2^log_stretch buckets; a stretch costs two additions a bucket and a multiplication by its first index.
struct SumStretches {
    uint32_t log_buckets;
    uint32_t log_stretch;
    const G1 *buckets;
    G1 *out;

    BF_INLINE void operator()(uint32_t item) const {
        uint32_t length = uint32_t(1) << log_stretch;
        const G1 *stretch = buckets + (size_t(item) << log_stretch);
        G1 running = g1::identity(), sum = g1::identity();
        for (uint32_t i = length; i-- > 0;) {
            running = g1::add(running, stretch[i]);
            sum = g1::add(sum, running);
        }
        uint32_t number = item & ((uint32_t(1) << (log_buckets - log_stretch)) - 1);
        G1 offset = g1::identity();
        for (uint32_t bit = log_buckets; bit-- > 0;) {
            offset = g1::twice(offset);
            if ((number << log_stretch) >> bit & 1) offset = g1::add(offset, running);
        }
        out[item] = g1::add(sum, offset);
    }
};

// Adds the upper part of each row of `count` points to its lower half: ⌈count/2⌉ are left. One item for each row and each
// of the ⌊count/2⌋ additions of a row.
struct HalveRows {
    uint32_t row_length; // in memory
    uint32_t count;
    G1 *points;

    BF_INLINE void operator()(uint32_t item) const {
        uint32_t pairs = count / 2, left = count - pairs;
        G1 *row = points + size_t(item / pairs) * row_length;
        uint32_t index = item % pairs;
        row[index] = g1::add(row[index], row[index + left]);
    }
};

// Σ 2^(w·window)·sum of the windows, the first of each row: one item, 128 doublings.
struct JoinWindows {
    uint32_t windows;
    uint32_t window_bits;
    uint32_t row_length;
    const G1 *rows;
    G1 *out;

    BF_INLINE void operator()(uint32_t) const {
        G1 sum = g1::identity();
        for (uint32_t window = windows; window-- > 0;) {
            for (uint32_t i = 0; i < window_bits; ++i) sum = g1::twice(sum);
            sum = g1::add(sum, rows[size_t(window) * row_length]);
        }
        *out = sum;
    }
};

} // namespace msm
} // namespace blindfold
