// F_r, the scalar field of BLS12-381, in eight 32-bit limbs, in Montgomery form with R = 2^256: in memory the same bytes as
// four 64-bit limbs of the same form on a little-endian host.
#pragma once

#include "montgomery.cuh"

namespace blindfold {

// An element, fully reduced: 0 ≤ value < r.
struct alignas(16) Fr {
    uint32_t limb[8];
};

namespace fr {

constexpr int LIMBS = 8;
// Largest k with 2^k dividing r − 1.
constexpr uint32_t TWO_ADICITY = 32;

struct Prime {
    static constexpr int LIMBS = fr::LIMBS;
    static constexpr uint32_t FACTOR = 0xffffffffu;
    BF_INLINE static uint32_t modulus(int i) {
        constexpr uint32_t limbs[8] = {0x00000001u, 0xffffffffu, 0xfffe5bfeu, 0x53bda402u,
                                       0x09a1d805u, 0x3339d808u, 0x299d7d48u, 0x73eda753u};
        return limbs[i];
    }
};

BF_INLINE Fr zero() {
    Fr r;
    BF_UNROLL
    for (int i = 0; i < LIMBS; ++i) r.limb[i] = 0;
    return r;
}

// R mod r.
BF_INLINE Fr one() {
    constexpr uint32_t limbs[8] = {0xfffffffeu, 0x00000001u, 0x00034802u, 0x5884b7fau,
                                   0xecbc4ff5u, 0x998c4fefu, 0xacc5056fu, 0x1824b159u};
    Fr r;
    BF_UNROLL
    for (int i = 0; i < LIMBS; ++i) r.limb[i] = limbs[i];
    return r;
}

BF_INLINE Fr add(const Fr &a, const Fr &b) {
    Fr r;
    montgomery::add<Prime>(r.limb, a.limb, b.limb);
    return r;
}

BF_INLINE Fr sub(const Fr &a, const Fr &b) {
    Fr r;
    montgomery::sub<Prime>(r.limb, a.limb, b.limb);
    return r;
}

BF_INLINE Fr mul(const Fr &a, const Fr &b) {
    Fr r;
    montgomery::mul<Prime>(r.limb, a.limb, b.limb);
    return r;
}

BF_INLINE Fr square(const Fr &a) { return mul(a, a); }

// The limbs of the value itself.
BF_INLINE Fr from_montgomery(const Fr &a) {
    Fr unit = zero();
    unit.limb[0] = 1;
    return mul(a, unit);
}

} // namespace fr
} // namespace blindfold
