// Counters that threads share.
#pragma once

#include "arch.cuh"

namespace blindfold {

// Adds to a counter and gives its value from before.
BF_INLINE uint32_t atomic_add(uint32_t *counter, uint32_t value) {
#if BF_ON_DEVICE
    return atomicAdd(counter, value);
#else
    uint32_t before = *counter;
    *counter = before + value;
    return before;
#endif
}

} // namespace blindfold
