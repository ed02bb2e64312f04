// Bounds of values that are not reduced, proved by the host build.
//
// There, sums and products carry beside their limbs the multiples of p or p² between which they lie whatever the inputs
// are: bounds follow from operations, not from the values at hand. What `require` states is checked at every operation
// that the tests execute, and so holds for all inputs of the same chain. Device code carries none of it.
#pragma once

#include "../machine/arch.cuh"

#if defined(__CUDACC__)
#define BF_TRACKED 0
#define BF_TRACK(...)
#else
#define BF_TRACKED 1
#define BF_TRACK(...) __VA_ARGS__
#include <cstdio>
#include <cstdlib>
#endif

namespace blindfold {
namespace bounds {

// Multiples of p that twelve limbs hold.
constexpr int LIMBS_HOLD = 9;
// Multiples of p², of either sign, that 768 bits hold in two's complement.
constexpr int WIDE_HOLDS = 48;
// Multiples of p², of either sign, that `wide::reduce` takes: p·R is 9.8 of them.
constexpr int REDUCIBLE = 9;

#if BF_TRACKED
inline void require(bool holds, const char *what) {
    if (holds) return;
    std::fprintf(stderr, "out of bounds: %s\n", what);
    std::abort();
}
#endif

} // namespace bounds
} // namespace blindfold
