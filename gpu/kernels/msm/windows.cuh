// The entries of a multi-scalar multiplication, sorted by bucket: a counting sort in kernels.
//
// Each scalar, or each half of it by the endomorphism, gives one entry for each window whose signed digit is not 0. The
// entry goes to bucket |digit| − 1 of its window, key = window·2^(w−1) + |digit| − 1. Zero scalars give nothing.
#pragma once

#include "../curve/g1.cuh"
#include "../curve/scalars.cuh"
#include "../machine/atomic.cuh"

namespace blindfold {
namespace msm {

// No bucket.
constexpr uint32_t NO_KEY = 0xffffffffu;

// What is fixed before the scalars are known.
struct Layout {
    uint32_t points;
    bool split; // scalars below r of eight limbs, split in two; else below 2^128, of four
    uint32_t window_bits;

    BF_INLINE uint32_t halves() const { return split ? 2 : 1; }
    BF_INLINE uint32_t windows() const { return scalars::windows(128, window_bits); }
    BF_INLINE uint32_t log_buckets() const { return window_bits - 1; }
    // Buckets of all windows.
    BF_INLINE uint32_t keys() const { return windows() << log_buckets(); }
    // At most.
    BF_INLINE uint32_t entries() const { return points * halves() * windows(); }
};

// A point, which half of its scalar it is multiplied with, and the sign: point·4 + half·2 + sign.
BF_INLINE uint32_t pack_entry(uint32_t point, uint32_t half, bool negative) {
    return point * 4 + half * 2 + (negative ? 1 : 0);
}

// The point of an entry with its sign, through the endomorphism for the second half.
BF_INLINE G1Affine load_entry(const G1Affine *points, uint32_t entry) {
    G1Affine point = points[entry >> 2];
    bool image = (entry >> 1 & 1) != 0, negative = (entry & 1) != 0;
    if (image) point.x = fp::mul(point.x, g1::beta());
    point.y = fp::select(image != negative, fp::neg(point.y), point.y);
    return point;
}

// Calls visit(key, entry) for each digit that is not 0 of one scalar.
template <class Visit>
BF_INLINE void each_entry(const Layout &layout, const uint32_t *scalars, uint32_t point, const Visit &visit) {
    scalars::Halves halves;
    if (layout.split) {
        halves = scalars::split(scalars + size_t(point) * scalars::LIMBS);
    } else {
        BF_UNROLL
        for (uint32_t i = 0; i < scalars::HALF_LIMBS; ++i)
            halves.low.limb[i] = scalars[size_t(point) * scalars::HALF_LIMBS + i];
    }
    for (uint32_t half = 0; half < layout.halves(); ++half) {
        scalars::Half number = half == 0 ? halves.low : halves.high;
        scalars::Reader digits(number.limb, scalars::HALF_LIMBS, layout.window_bits);
        for (uint32_t window = 0; window < layout.windows(); ++window) {
            int digit = digits.next();
            if (digit == 0) continue;
            uint32_t magnitude = uint32_t(digit < 0 ? -digit : digit);
            visit((window << layout.log_buckets()) + magnitude - 1, pack_entry(point, half, digit < 0));
        }
    }
}

// Sets every count to 0.
struct ClearCounts {
    uint32_t *counts;

    BF_INLINE void operator()(uint32_t item) const { counts[item] = 0; }
};

struct CountKey {
    uint32_t *counts;

    BF_INLINE void operator()(uint32_t key, uint32_t) const { atomic_add(counts + key, 1); }
};

// Counts the entries of each bucket. One item a point.
struct Count {
    Layout layout;
    const uint32_t *scalars;
    uint32_t *counts;

    BF_INLINE void operator()(uint32_t item) const { each_entry(layout, scalars, item, CountKey{counts}); }
};

// Keys of one item of the scan.
constexpr uint32_t SCAN_KEYS = 128;

// Sums the counts of each chunk of keys. One item a chunk.
struct SumChunks {
    const uint32_t *counts;
    uint32_t keys;
    uint32_t *sums;

    BF_INLINE void operator()(uint32_t item) const {
        uint32_t sum = 0;
        for (uint32_t key = item * SCAN_KEYS; key < keys && key < (item + 1) * SCAN_KEYS; ++key) sum += counts[key];
        sums[item] = sum;
    }
};

// Turns the sums of chunks into where each begins; the total comes after the last. One item.
struct ScanChunks {
    uint32_t chunks;
    uint32_t *sums;

    BF_INLINE void operator()(uint32_t) const {
        uint32_t begin = 0;
        for (uint32_t chunk = 0; chunk < chunks; ++chunk) {
            uint32_t sum = sums[chunk];
            sums[chunk] = begin;
            begin += sum;
        }
        sums[chunks] = begin;
    }
};

// Turns counts into where each bucket's entries begin. One item a chunk.
struct Begin {
    const uint32_t *sums;
    uint32_t keys;
    uint32_t *counts;

    BF_INLINE void operator()(uint32_t item) const {
        uint32_t begin = sums[item];
        for (uint32_t key = item * SCAN_KEYS; key < keys && key < (item + 1) * SCAN_KEYS; ++key) {
            uint32_t count = counts[key];
            counts[key] = begin;
            begin += count;
        }
    }
};

struct PlaceEntry {
    uint32_t *begins;
    uint32_t *keys;
    uint32_t *entries;

    BF_INLINE void operator()(uint32_t key, uint32_t entry) const {
        uint32_t place = atomic_add(begins + key, 1);
        keys[place] = key;
        entries[place] = entry;
    }
};

// Puts every entry in its bucket's place; the order within a bucket is that in which threads come. One item a point.
struct Place {
    Layout layout;
    const uint32_t *scalars;
    uint32_t *begins; // advanced to where the buckets end
    uint32_t *keys;
    uint32_t *entries;

    BF_INLINE void operator()(uint32_t item) const {
        each_entry(layout, scalars, item, PlaceEntry{begins, keys, entries});
    }
};

} // namespace msm
} // namespace blindfold
