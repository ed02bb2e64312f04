// Exponentiation by public exponents, of which the host has made digits.
//
// In GT the p-power Frobenius is exponentiation by x = −|x|, so an exponent is four digits of 64 bits in base |x|, whose
// squarings are done together. On an element of the cyclotomic subgroup this is an endomorphism that becomes the
// exponentiation after the hard part.
#pragma once

#include "../machine/launch.cuh"
#include "../tower/cyclotomic.cuh"

namespace blindfold {

// Recoded exponents.
//
// Exponent e is `positions` words of 32 bits from word e·positions, the lowest position first; byte j of a word is the
// code of base-|x| digit j there: 0, or for d > 0 the table's entry d − 1, for d < 0 the inverse of entry −d − 1. The
// table has base^1, base^2 … or, with `odd`, base^1, base^3 … Where a warp shares its exponent, few nonzero codes are
// best, wherever they stand (a non-adjacent form over odd powers); where it does not, that they stand at the same
// positions in all exponents (windows over all powers).
struct Exponents {
    const uint32_t *codes;
    uint32_t positions;
    uint32_t entries; // at most gt::MOST_ENTRIES
    bool odd;
};

namespace gt {

constexpr int MOST_ENTRIES = 8;
// Digits of an exponent in base |x|.
constexpr int DIGITS = 4;

BF_INLINE int code(uint32_t word, int digit) { return int8_t(word >> 8 * digit); }

// base^exponent: a table of `entries` powers and their images under three Frobenius maps, a cyclotomic squaring for each
// position, a product for each nonzero code of any group of the warp.
BF_INLINE Gt pow(const Group &group, const Gt &base, const Exponents &exponents, uint32_t exponent) {
    Gt table[DIGITS * MOST_ENTRIES];
    Gt step = base;
    if (exponents.odd) step = cyclotomic_square(group, base);
    Gt entry = base;
    BF_ROLL
    for (uint32_t i = 0; i < exponents.entries; ++i) {
        if (i > 0) entry = mul(group, entry, step);
        BF_ROLL
        for (int j = 0; j < DIGITS; ++j) table[j * MOST_ENTRIES + i] = power_of_x(group, entry, j);
    }
    const uint32_t *codes = exponents.codes + size_t(exponent) * exponents.positions;
    Gt result = one(group);
    bool started = false; // the same in all lanes of the warp
    BF_ROLL
    for (uint32_t position = exponents.positions; position-- > 0;) {
        if (started) result = cyclotomic_square(group, result);
        uint32_t word = codes[position];
        BF_ROLL
        for (int j = 0; j < DIGITS; ++j) {
            int value = code(word, j);
            if (!warp_any(each_lane(group, [&](int, int) { return value != 0; }))) continue;
            int magnitude = value < 0 ? -value : value;
            Gt factor = table[j * MOST_ENTRIES + (value == 0 ? 0 : magnitude - 1)];
            factor = select(group, value == 0, one(group), conjugate_if(group, value < 0, factor));
            result = started ? mul(group, result, factor) : factor;
            started = true;
        }
    }
    return result;
}

} // namespace gt

// Raises elements to powers, in place. Job i is two words, the number of an element and that of its exponent; no element
// has two jobs.
struct Powers {
    Fp2 *elements;
    const uint32_t *jobs;
    Exponents exponents;

    BF_INLINE void operator()(const Group &group, uint32_t item, bool stores) const {
        Fp2 *element = elements + size_t(jobs[2 * item]) * gt::COEFFICIENTS;
        Gt power = gt::pow(group, gt::load(group, element), exponents, jobs[2 * item + 1]);
        gt::store(group, element, power, stores);
    }
};

} // namespace blindfold
