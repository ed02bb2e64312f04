// Pairings of many points.
//
// A batch goes through MillerLoops, InvertAll over the denominators, and Divide; or, after a release, through
// MillerLoops, InvertAll, and Blindings, which ends with the hard part.
#pragma once

#include "../machine/launch.cuh"
#include "final_exponentiation.cuh"
#include "miller.cuh"

namespace blindfold {

// Miller loop and easy part, left as a fraction.
struct MillerLoops {
    // X, Y, Z of each point; the next item's point is `point_step` points on, 0 where all items share one.
    const Fp *points;
    uint32_t point_step;
    // Item i's lines begin at line (first_lines + i·lines_step)·LINES; the step is 1 or −1.
    const Line *lines;
    uint32_t first_lines;
    int32_t lines_step;
    // Six coefficients, and one denominator, for each item.
    Fp2 *numerators;
    Fp *denominators;

    BF_INLINE void operator()(const Group &group, uint32_t item, bool stores) const {
        const Line *own = lines + size_t(int64_t(first_lines) + int64_t(item) * lines_step) * pairing::LINES;
        Gt f = pairing::miller_loop(group, points + size_t(item) * point_step * 3, own);
        GtFraction r = pairing::easy_part(group, f);
        gt::store(group, numerators + size_t(item) * gt::COEFFICIENTS, r.numerator, stores);
        BF_EACH_LANE(slot) {
            if (stores && group.lane(slot) == 0) denominators[item] = r.denominator.own[slot];
        }
    }
};

// elements[i] times inverses[i], in place; one thread for each coefficient in F_p2.
struct Divide {
    Fp2 *elements;
    const Fp *inverses;

    BF_INLINE void operator()(uint32_t item) const {
        elements[item] = fp2::mul_fp(elements[item], inverses[item / gt::COEFFICIENTS]);
    }
};

// From the pairings with the release, up to the hard part and as fractions, and the cross-terms X_i up to the hard part:
// (numerator/denominator · X_i^(−1)) to the hard part, the blinding factors z_i.
struct Blindings {
    const Fp2 *numerators;
    const Fp *inverses; // of the denominators
    const Fp2 *cross;
    Fp2 *blindings;

    BF_INLINE void operator()(const Group &group, uint32_t item, bool stores) const {
        size_t at = size_t(item) * gt::COEFFICIENTS;
        Gt f = gt::mul_fp(group, gt::load(group, numerators + at), inverses[item]);
        f = gt::mul(group, f, gt::conjugate(group, gt::load(group, cross + at)));
        gt::store(group, blindings + at, f, stores);
        pairing::hard_part(group, blindings + at, stores);
    }
};

// The hard part, in place; of the conjugate where `conjugates` (outputs of a fused decryption are inverses).
struct HardParts {
    Fp2 *elements;
    bool conjugates;

    BF_INLINE void operator()(const Group &group, uint32_t item, bool stores) const {
        Fp2 *element = elements + size_t(item) * gt::COEFFICIENTS;
        gt::store(group, element, gt::conjugate_if(group, conjugates, gt::load(group, element)), stores);
        pairing::hard_part(group, element, stores);
    }
};

} // namespace blindfold
