// What the tests of fixed-base multiplication, splitting and affine forms call.
#include "../curve/comb.cuh"
#include "../machine/launch.cuh"

using namespace blindfold;

namespace comb_tests {

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

} // namespace comb_tests

extern "C" {

void blindfold_test_g1_normalise(const G1 *points, G1Affine *out, uint32_t count) {
    uint32_t items = g1::Normalise::items(count);
    launch(Stream(), g1::Normalise{points, count, items, out}, items);
}

void blindfold_test_scalars_split(const uint32_t *k, uint32_t *halves, uint32_t count) {
    launch(Stream(), comb_tests::Split{k, halves}, count);
}

// All signed digits of a scalar of eight limbs.
void blindfold_test_scalars_digits(const uint32_t *k, uint32_t window_bits, int32_t *digits) {
    launch(Stream(), comb_tests::AllDigits{k, window_bits, digits}, 1);
}

// `room` and `table` have rows·columns entries.
void blindfold_test_comb_table(const G1Affine *base, uint32_t window_bits, G1 *room, G1Affine *table) {
    launch(Stream(), comb::FirstColumn{base, window_bits, room}, 1);
    for (uint32_t known = 1; known < comb::columns(window_bits); known *= 2)
        launch(Stream(), comb::NextColumns{window_bits, known, room}, comb::rows(window_bits) * known);
    blindfold_test_g1_normalise(room, table, comb::rows(window_bits) * comb::columns(window_bits));
}

void blindfold_test_comb_multiply(const G1Affine *table, uint32_t window_bits, const uint32_t *k, G1 *out, uint32_t count) {
    launch(Stream(), comb::Multiply{table, window_bits, k, out}, count);
}

void blindfold_test_comb_verify(const G1Affine *table, uint32_t window_bits, const uint32_t *k, const G1Affine *points,
                                uint32_t *out, uint32_t count) {
    launch(Stream(), comb::Verify{table, window_bits, k, points, out}, count);
}

} // extern "C"
