// Transforms of scalars, of length N = 2^log_size ≤ 2^24, over the subgroup of N-th roots of unity or a coset of it.
//
// Forward: `Scale` by the powers of the offset (for a coset), the levels of `ScalarLevels` from the top (decimation in
// frequency, natural order in, bit-reversed out), `Reverse`. Inverse: the same levels with the inverse root, `Reverse`,
// `Scale` by 1/N and the powers of the inverse offset. A launch of `ScalarLevels` takes up to three levels at once through
// registers, so that memory is passed over a third as often.
#pragma once

#include "../field/fr.cuh"
#include "../machine/launch.cuh"

namespace blindfold {
namespace transform {

// out_i = base^i. `squares` are base^(2^j), j < 32. At most 32 products an item.
struct Powers {
    const Fr *squares;
    Fr *out;

    BF_INLINE void operator()(uint32_t item) const {
        Fr power = fr::one();
        for (uint32_t bit = 0; item >> bit != 0; ++bit)
            if (item >> bit & 1) power = fr::mul(power, squares[bit]);
        out[item] = power;
    }
};

// values_i ← factor·base^i·values_i, by the squares of the base. At most 33 products an item.
struct Scale {
    const Fr *squares;
    const Fr *factor;
    Fr *values;

    BF_INLINE void operator()(uint32_t item) const {
        Fr power = fr::mul(*factor, values[item]);
        for (uint32_t bit = 0; item >> bit != 0; ++bit)
            if (item >> bit & 1) power = fr::mul(power, squares[bit]);
        values[item] = power;
    }
};

// LEVELS levels, the first with blocks of length 2·half: (a, b) becomes (a + b, (a − b)·ω^(i·N/(2·half))), i the place in
// the block. One item for each of the N/2^LEVELS sets of values that these levels mix.
template <int LEVELS> struct ScalarLevels {
    uint32_t log_size;
    uint32_t log_half; // at least LEVELS − 1
    const Fr *roots;   // ω^0, ω^1 … ω^(N/2−1)
    Fr *values;

    static constexpr int RADIX = 1 << LEVELS;

    BF_INLINE void operator()(uint32_t item) const {
        // Values of one set are `stride` apart, within one block of the first level.
        uint32_t log_stride = log_half - (LEVELS - 1), stride = uint32_t(1) << log_stride;
        uint32_t place = item & (stride - 1), block = item >> log_stride;
        Fr *first = values + (size_t(block) << (log_half + 1)) + place;
        Fr v[RADIX];
        BF_UNROLL
        for (int i = 0; i < RADIX; ++i) v[i] = first[size_t(i) << log_stride];
        BF_UNROLL
        for (int level = 0; level < LEVELS; ++level) {
            int apart = RADIX >> (level + 1);
            uint32_t log_step = log_size - (log_half - level) - 1;
            BF_UNROLL
            for (int i = 0; i < RADIX; ++i) {
                if (i & apart) continue;
                uint32_t power = ((uint32_t(i & (apart - 1)) << log_stride) + place) << log_step;
                Fr difference = fr::sub(v[i], v[i + apart]);
                v[i] = fr::add(v[i], v[i + apart]);
                v[i + apart] = fr::mul(difference, roots[power]);
            }
        }
        BF_UNROLL
        for (int i = 0; i < RADIX; ++i) first[size_t(i) << log_stride] = v[i];
    }
};

// All levels of a transform, natural order in, bit-reversed out. Returns 0, or the error of a launch.
inline int scalar_levels(Stream stream, uint32_t log_size, const Fr *roots, Fr *values) {
    for (uint32_t left = log_size; left > 0;) {
        int error;
        if (left >= 3) {
            error = launch(stream, ScalarLevels<3>{log_size, left - 1, roots, values}, uint32_t(1) << (log_size - 3));
            left -= 3;
        } else if (left == 2) {
            error = launch(stream, ScalarLevels<2>{log_size, 1, roots, values}, uint32_t(1) << (log_size - 2));
            left = 0;
        } else {
            error = launch(stream, ScalarLevels<1>{log_size, 0, roots, values}, uint32_t(1) << (log_size - 1));
            left = 0;
        }
        if (error != 0) return error;
    }
    return 0;
}

// Exchanges values i and j where j is i with its bits reversed. One item for each of the N values.
struct Reverse {
    uint32_t log_size;
    Fr *values;

    BF_INLINE void operator()(uint32_t item) const {
        uint32_t mirror = 0;
        for (uint32_t bit = 0; bit < log_size; ++bit) mirror |= (item >> bit & 1) << (log_size - 1 - bit);
        if (mirror <= item) return;
        Fr value = values[item];
        values[item] = values[mirror];
        values[mirror] = value;
    }
};

// squares_j = base^(2^j) for j < 32: one item, 31 products.
struct Squares {
    const Fr *base;
    Fr *squares;

    BF_INLINE void operator()(uint32_t) const {
        Fr power = *base;
        for (uint32_t bit = 0; bit < 32; ++bit) {
            squares[bit] = power;
            power = fr::square(power);
        }
    }
};

} // namespace transform
} // namespace blindfold
