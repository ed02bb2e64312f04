// What the tests of affine forms and of scalars call.
#include "../curve/affine.cuh"
#include "../curve/scalars.cuh"
#include "../machine/launch.cuh"

using namespace blindfold;

namespace affine_tests {

// Eight limbs each to the four of the low and the four of the high half.
struct Split {
    const uint32_t *k;
    uint32_t *halves;

    BF_INLINE void operator()(uint32_t i) const {
        scalars::Halves split = scalars::split(k + 8 * i);
        for (uint32_t limb = 0; limb < 4; ++limb) {
            halves[8 * i + limb] = split.low.limb[limb];
            halves[8 * i + 4 + limb] = split.high.limb[limb];
        }
    }
};

struct AllDigits {
    const uint32_t *k;
    uint32_t window_bits;
    int32_t *digits;

    BF_INLINE void operator()(uint32_t) const {
        scalars::Reader reader(k, scalars::LIMBS, window_bits);
        for (uint32_t i = 0; i < scalars::windows(255, window_bits); ++i) digits[i] = reader.next();
    }
};

} // namespace affine_tests

extern "C" {

void blindfold_test_g1_normalise(const G1 *points, G1Affine *out, uint32_t count) {
    uint32_t items = g1::Normalise::items(count);
    launch(Stream(), g1::Normalise{points, count, items, out}, items);
}

void blindfold_test_scalars_split(const uint32_t *k, uint32_t *halves, uint32_t count) {
    launch(Stream(), affine_tests::Split{k, halves}, count);
}

// All signed digits of a scalar of eight limbs.
void blindfold_test_scalars_digits(const uint32_t *k, uint32_t window_bits, int32_t *digits) {
    launch(Stream(), affine_tests::AllDigits{k, window_bits, digits}, 1);
}

} // extern "C"
