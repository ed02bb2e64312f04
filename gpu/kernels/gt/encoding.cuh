// Elements of F_p12 as the scheme hashes and compares them.
#pragma once

#include "../field/fp2.cuh"
#include "../machine/launch.cuh"
#include "../tower/gt.cuh"

namespace blindfold {

// The canonical encoding: twelve coefficients of 48 big-endian bytes in tower order, 576 bytes an element. One thread for
// each coefficient in F_p.
struct Encode {
    const Fp *coefficients;
    // Twelve words for each coefficient, in the order of the bytes.
    uint32_t *words;

    BF_INLINE void operator()(uint32_t item) const {
        Fp unit = fp::zero();
        unit.limb[0] = 1;
        Fp value = fp::mul(coefficients[item], unit); // out of Montgomery form
        uint32_t *out = words + size_t(item) * fp::LIMBS;
        BF_UNROLL
        for (int i = 0; i < fp::LIMBS; ++i) {
            uint32_t limb = value.limb[fp::LIMBS - 1 - i];
            out[i] = limb << 24 | (limb & 0xff00) << 8 | (limb >> 8 & 0xff00) | limb >> 24;
        }
    }
};

// equal[i] is 1 where elements i of both arrays are the same, else 0. One thread an element.
struct Compare {
    const Fp2 *left, *right;
    uint8_t *equal;

    BF_INLINE void operator()(uint32_t item) const {
        bool same = true;
        BF_ROLL
        for (int i = 0; i < gt::COEFFICIENTS; ++i) {
            size_t at = size_t(item) * gt::COEFFICIENTS + size_t(i);
            same = same && fp2::equal(left[at], right[at]);
        }
        equal[item] = same;
    }
};

} // namespace blindfold
