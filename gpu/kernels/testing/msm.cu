// What the tests of multi-scalar multiplication call.
#include "../msm/msm.cuh"

using namespace blindfold;

// `window_bits` and `share` 0 are the plan's own.
static msm::Plan test_plan(uint32_t points, bool split, uint32_t window_bits, uint32_t share) {
    msm::Plan plan = msm::plan(points, split);
    if (window_bits != 0) plan.layout.window_bits = window_bits;
    if (plan.log_stretch > plan.layout.log_buckets()) plan.log_stretch = plan.layout.log_buckets();
    if (share != 0) plan.share = share;
    return plan;
}

extern "C" {

// Bytes of the room that a multiplication takes.
uint64_t blindfold_test_msm_bytes(uint32_t points, bool split, uint32_t window_bits, uint32_t share) {
    return msm::workspace(test_plan(points, split, window_bits, share), nullptr).bytes;
}

void blindfold_test_msm(const G1Affine *points, const uint32_t *scalars, uint32_t count, bool split, uint32_t window_bits,
                        uint32_t share, uint8_t *block, G1 *out) {
    msm::run(Stream(), test_plan(count, split, window_bits, share), points, scalars, block, out);
}

// `digits` has 258 bytes a point.
void blindfold_test_msm_directly(const G1Affine *points, const uint32_t *scalars, uint32_t count, bool split, int8_t *digits,
                                 G1 *products) {
    msm::run_directly(Stream(), count, split, points, scalars, digits, products);
}

} // extern "C"
