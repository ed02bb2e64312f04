// Many inverses for one (Montgomery's trick).
#pragma once

#include "inverse.cuh"

namespace blindfold {

// Inverts `each` elements a thread, in place, with strides that keep a warp's accesses together: thread i takes elements
// i, i + threads, i + 2·threads … below `count`. Zeros stay zeros and spoil no other. `scratch` has `count` elements.
//
// Three products an element and 470 a thread.
struct InvertAll {
    Fp *elements;
    Fp *scratch;
    uint32_t count, threads;

    // Threads that take `each` elements or fewer.
    static uint32_t threads_for(uint32_t count, uint32_t each) { return (count + each - 1) / each; }

    BF_INLINE void operator()(uint32_t thread) const {
        Fp product = fp::one();
        uint32_t end = thread;
        BF_ROLL
        for (; end < count; end += threads) {
            Fp element = elements[end];
            scratch[end] = product;
            product = fp::mul(product, fp::select(fp::is_zero(element), fp::one(), element));
        }
        Fp inverse = fp::inverse(product);
        BF_ROLL
        while (end > thread) {
            end -= threads;
            Fp element = elements[end];
            bool zero = fp::is_zero(element);
            elements[end] = fp::select(zero, element, fp::mul(inverse, scratch[end]));
            inverse = fp::mul(inverse, fp::select(zero, fp::one(), element));
        }
    }
};

} // namespace blindfold
