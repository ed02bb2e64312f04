// What gpu/host/tests/gt.rs calls.
#include "../gt/comb.cuh"
#include "../gt/power.cuh"
#include "../gt/transform.cuh"

using namespace blindfold;

extern "C" {

void blindfold_test_gt_powers(Fp2 *elements, const uint32_t *jobs, uint32_t count, const uint32_t *codes,
                              uint32_t positions, uint32_t entries, bool odd) {
    launch_groups(Stream{}, Powers{elements, jobs, Exponents{codes, positions, entries, odd}}, count);
}

// `factors` has room for four times as many elements.
void blindfold_test_gt_digit_powers(Fp2 *elements, const uint32_t *jobs, uint32_t count, const uint32_t *codes,
                                    uint32_t positions, uint32_t entries, bool odd, Fp2 *factors) {
    DigitPowers powers{elements, jobs, count, Exponents{codes, positions, entries, odd}, factors};
    launch_groups(Stream{}, powers, gt::DIGITS * count);
    launch_groups(Stream{}, JoinPowers{elements, jobs, count, factors}, count);
}

uint32_t blindfold_test_comb_size(uint32_t window_bits) { return Comb{nullptr, window_bits}.size(); }

int blindfold_test_fill_comb(Fp2 *entries, uint32_t window_bits, const Fp2 *base) {
    return fill_comb(Stream{}, Comb{entries, window_bits}, base);
}

void blindfold_test_comb_powers(Fp2 *entries, uint32_t window_bits, const int32_t *codes, Fp2 *powers,
                                uint32_t count) {
    launch_groups(Stream{}, CombPowers{Comb{entries, window_bits}, codes, powers}, count);
}

void blindfold_test_butterflies(Fp2 *elements, const uint32_t *starts, uint32_t count) {
    launch_groups(Stream{}, Butterflies{elements, starts}, count);
}

void blindfold_test_combine(Fp2 *elements, const uint32_t *starts, uint32_t count, uint32_t quarter,
                            bool frobenius_is_fourth_root) {
    launch_groups(Stream{}, Combine{elements, starts, quarter, frobenius_is_fourth_root}, count * quarter);
}

void blindfold_test_unfold(const Fp2 *elements, uint32_t size, uint32_t cosets, Fp2 *outputs, uint32_t count) {
    launch_groups(Stream{}, Unfold{elements, size, cosets, outputs}, count);
}
}
