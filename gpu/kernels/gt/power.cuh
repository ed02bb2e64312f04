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

// The factor base^(Σ d_j·|x|^j) of base^exponent for its digits d_j from `first` on, COUNT of them: a table of `entries`
// powers with an image under a Frobenius map for each digit, a cyclotomic squaring for each position, a product for each
// nonzero code of any group of the warp.
template <int COUNT> BF_INLINE Gt pow(const Group &group, const Gt &base, const Exponents &exponents, uint32_t exponent, int first) {
    Gt table[COUNT * MOST_ENTRIES];
    Gt step = base;
    if (exponents.odd) step = cyclotomic_square(group, base);
    Gt entry = base;
    BF_ROLL
    for (uint32_t i = 0; i < exponents.entries; ++i) {
        if (i > 0) entry = mul(group, entry, step);
        BF_ROLL
        for (int j = 0; j < COUNT; ++j) table[j * MOST_ENTRIES + i] = power_of_x(group, entry, first + j);
    }
    const uint32_t *codes = exponents.codes + size_t(exponent) * exponents.positions;
    Gt result = one(group);
    bool started = false; // the same in all lanes of the warp
    BF_ROLL
    for (uint32_t position = exponents.positions; position-- > 0;) {
        if (started) result = cyclotomic_square(group, result);
        uint32_t word = codes[position];
        BF_ROLL
        for (int j = 0; j < COUNT; ++j) {
            int value = code(word, first + j);
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
        Gt power = gt::pow<gt::DIGITS>(group, gt::load(group, element), exponents, jobs[2 * item + 1], 0);
        gt::store(group, element, power, stores);
    }
};

// The same with a group for each digit of an exponent, for so few jobs that most of the device would be idle: item
// digit·count + job leaves its factor of the power in place item of `factors`. JoinPowers comes after it.
struct DigitPowers {
    const Fp2 *elements;
    const uint32_t *jobs;
    uint32_t count;
    Exponents exponents;
    Fp2 *factors;

    BF_INLINE void operator()(const Group &group, uint32_t item, bool stores) const {
        uint32_t digit = item / count, job = item % count;
        Gt base = gt::load(group, elements + size_t(jobs[2 * job]) * gt::COEFFICIENTS);
        Gt factor = gt::pow<1>(group, base, exponents, jobs[2 * job + 1], int(digit));
        gt::store(group, factors + size_t(item) * gt::COEFFICIENTS, factor, stores);
    }
};

// The products of the factors, in place of the elements.
struct JoinPowers {
    Fp2 *elements;
    const uint32_t *jobs;
    uint32_t count;
    const Fp2 *factors;

    BF_INLINE void operator()(const Group &group, uint32_t item, bool stores) const {
        Gt power = gt::load(group, factors + size_t(item) * gt::COEFFICIENTS);
        BF_ROLL
        for (uint32_t digit = 1; digit < uint32_t(gt::DIGITS); ++digit)
            power = gt::mul(group, power, gt::load(group, factors + (size_t(digit) * count + item) * gt::COEFFICIENTS));
        gt::store(group, elements + size_t(jobs[2 * item]) * gt::COEFFICIENTS, power, stores);
    }
};

} // namespace blindfold
