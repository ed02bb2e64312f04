// Powers of one fixed element of GT, by a table.
//
// The table is for one digit of 64 bits in base |x|; the four digits of an exponent share it, for the Frobenius map is
// exponentiation by |x| up to conjugation. The digit is cut into windows of w bits, all but the highest signed. Entries
// are whole elements: a product with one costs no inversion later.
#pragma once

#include "../machine/launch.cuh"
#include "power.cuh"

namespace blindfold {

// A table: entry d − 1 of row i is base^(d·2^(w·i)).
struct Comb {
    Fp2 *entries;
    uint32_t window_bits; // 2 to 16

    // Rows: windows of a digit.
    BF_INLINE uint32_t rows() const { return (64 + window_bits - 1) / window_bits; }
    // Entries of each row but the last.
    BF_INLINE uint32_t row_entries() const { return 1u << (window_bits - 1); }
    // Entries of the last row: its windows are not signed and may have received a carry.
    BF_INLINE uint32_t last_row_entries() const {
        return uint32_t((gt::X - 1) >> (window_bits * (rows() - 1))) + 1;
    }
    // Entries in all, of 576 bytes each.
    BF_INLINE uint32_t size() const { return (rows() - 1) * row_entries() + last_row_entries(); }
    BF_INLINE Fp2 *entry(uint32_t row, uint32_t number) const {
        return entries + size_t(row * row_entries() + number) * gt::COEFFICIENTS;
    }
};

namespace gt {

// The product for one exponent: four products a row and three Frobenius maps. `codes` are the windows of digit 0 from the
// lowest, then those of digit 1 …, each 0 or the number of an entry plus 1, negative for its inverse.
BF_INLINE Gt comb_pow(const Group &group, const Comb &comb, const int32_t *codes) {
    Gt result = one(group);
    bool started = false; // the same in all lanes of the warp
    uint32_t rows = comb.rows();
    BF_ROLL
    for (int j = DIGITS; j-- > 0;) {
        if (started) result = power_of_x(group, result, 1);
        BF_ROLL
        for (uint32_t row = 0; row < rows; ++row) {
            int32_t value = codes[uint32_t(j) * rows + row];
            if (!warp_any(each_lane(group, [&](int, int) { return value != 0; }))) continue;
            uint32_t magnitude = uint32_t(value < 0 ? -value : value);
            Gt factor = load(group, comb.entry(row, value == 0 ? 0 : magnitude - 1));
            factor = select(group, value == 0, one(group), conjugate_if(group, value < 0, factor));
            result = started ? mul(group, result, factor) : factor;
            started = true;
        }
    }
    return result;
}

} // namespace gt

// base^k for many k.
struct CombPowers {
    Comb comb;
    // DIGITS·rows codes for each exponent.
    const int32_t *codes;
    Fp2 *powers;

    BF_INLINE void operator()(const Group &group, uint32_t item, bool stores) const {
        Gt power = gt::comb_pow(group, comb, codes + size_t(item) * gt::DIGITS * comb.rows());
        gt::store(group, powers + size_t(item) * gt::COEFFICIENTS, power, stores);
    }
};

// Filling a table, first: the first entry of each row. One group, 64 squarings.
struct CombRows {
    Comb comb;
    const Fp2 *base;

    BF_INLINE void operator()(const Group &group, uint32_t, bool stores) const {
        Gt power = gt::load(group, base);
        BF_ROLL
        for (uint32_t row = 0; row < comb.rows(); ++row) {
            gt::store(group, comb.entry(row, 0), power, stores);
            BF_ROLL
            for (uint32_t i = 0; i < comb.window_bits; ++i) power = gt::cyclotomic_square(group, power);
        }
    }
};

// Filling a table, then: of rows that have `length` entries, entries `length` to 2·length − 1, as far as there are.
struct CombDouble {
    Comb comb;
    uint32_t first_row, length;

    BF_INLINE void operator()(const Group &group, uint32_t item, bool stores) const {
        uint32_t row = first_row + item / length, number = item % length;
        uint32_t entries = row + 1 == comb.rows() ? comb.last_row_entries() : comb.row_entries();
        bool exists = length + number < entries;
        Gt power = gt::load(group, comb.entry(row, exists ? length - 1 : 0));
        power = gt::mul(group, power, gt::load(group, comb.entry(row, exists ? number : 0)));
        gt::store(group, comb.entry(row, exists ? length + number : 0), power, stores && exists);
    }
};

// Fills the table with the powers of an element in device memory, a product an entry. Returns 0, or the error of a launch.
inline int fill_comb(Stream stream, const Comb &comb, const Fp2 *base) {
    if (int error = launch_groups(stream, CombRows{comb, base}, 1)) return error;
    uint32_t last = comb.rows() - 1;
    for (uint32_t length = 1; length < comb.row_entries() || length < comb.last_row_entries(); length *= 2) {
        // Only the last row may still be short.
        uint32_t first = length < comb.row_entries() ? 0 : last;
        if (int error = launch_groups(stream, CombDouble{comb, first, length}, (last + 1 - first) * length)) return error;
    }
    return 0;
}

} // namespace blindfold
