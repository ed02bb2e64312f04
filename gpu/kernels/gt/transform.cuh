// The transform back of the convolution, in the cyclotomic subgroup: split radix, since fourth roots of unity are free.
//
// As in the reference: input in order [coset][bit-reversed frequency], in place, natural order out. A transform of length
// N is made of one of length N/2, in the first half of its elements, and two of length N/4, in the last quarters. Lengths
// 2, 4, 8 … M are done one after the other, each for all transforms of that length (the host lists where they begin):
// Powers raises the elements of the last quarters to their twiddles, Combine puts the parts together.
#pragma once

#include "../machine/launch.cuh"
#include "../tower/cyclotomic.cuh"

namespace blindfold {

// Length 2: a·b and a/b.
struct Butterflies {
    Fp2 *elements;
    const uint32_t *starts; // of the transforms of this length, one an item

    BF_INLINE void operator()(const Group &group, uint32_t item, bool stores) const {
        Fp2 *first = elements + size_t(starts[item]) * gt::COEFFICIENTS, *second = first + gt::COEFFICIENTS;
        Gt a = gt::load(group, first), b = gt::load(group, second);
        Gt sum = gt::mul(group, a, b);
        gt::store(group, first, sum, stores);
        gt::store(group, second, gt::mul(group, a, gt::conjugate(group, b)), stores);
    }
};

// Length 4·quarter: of elements k of the four quarters, the last two with their twiddles, elements k of the result's.
// One item for each k of each transform.
struct Combine {
    Fp2 *elements;
    const uint32_t *starts; // of the transforms of this length
    uint32_t quarter;
    // Whether φ³ is exponentiation by ω^(M/4), or by its opposite.
    bool frobenius_is_fourth_root;

    BF_INLINE void operator()(const Group &group, uint32_t item, bool stores) const {
        Fp2 *at = elements + (size_t(starts[item / quarter]) + item % quarter) * gt::COEFFICIENTS;
        size_t step = size_t(quarter) * gt::COEFFICIENTS;
        // Loaded anew where needed: in registers they would be in the way of the products.
        Gt sum = gt::mul(group, gt::load(group, at + 2 * step), gt::load(group, at + 3 * step));
        Gt difference = gt::conjugate(group, gt::load(group, at + 3 * step));
        difference = gt::mul(group, gt::load(group, at + 2 * step), difference);
        difference = gt::frobenius(group, difference, 3);
        difference = gt::conjugate_if(group, !frobenius_is_fourth_root, difference);
        Gt low = gt::mul(group, gt::load(group, at), sum);
        Gt high = gt::mul(group, gt::load(group, at), gt::conjugate(group, sum));
        gt::store(group, at, low, stores);
        gt::store(group, at + 2 * step, high, stores);
        low = gt::mul(group, gt::load(group, at + step), difference);
        high = gt::mul(group, gt::load(group, at + step), gt::conjugate(group, difference));
        gt::store(group, at + step, low, stores);
        gt::store(group, at + 3 * step, high, stores);
    }
};

// Output i is the product over the cosets j of element i mod M to the power ζ^(ji).
struct Unfold {
    const Fp2 *elements;
    uint32_t size, cosets;
    Fp2 *outputs;

    BF_INLINE void operator()(const Group &group, uint32_t item, bool stores) const {
        size_t element = item % size;
        Gt product = gt::load(group, elements + element * gt::COEFFICIENTS);
        BF_ROLL
        for (uint32_t coset = 1; coset < cosets; ++coset) {
            element += size;
            Gt factor = gt::load(group, elements + element * gt::COEFFICIENTS);
            product = gt::mul(group, product, gt::pow_zeta(group, factor, int(coset * (item % 3) % 3)));
        }
        gt::store(group, outputs + size_t(item) * gt::COEFFICIENTS, product, stores);
    }
};

} // namespace blindfold
