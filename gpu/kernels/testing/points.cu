// What the tests of G1 and of the transform of points call.
#include "../machine/launch.cuh"
#include "../transform/points.cuh"

using namespace blindfold;

extern "C" {

void blindfold_test_g1_add(const G1 *a, const G1 *b, G1 *out, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) out[i] = g1::add(a[i], b[i]);
}

void blindfold_test_g1_sub(const G1 *a, const G1 *b, G1 *out, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) out[i] = g1::sub(a[i], b[i]);
}

void blindfold_test_g1_add_affine(const G1 *a, const G1Affine *b, G1 *out, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) out[i] = g1::add_affine(a[i], b[i]);
}

void blindfold_test_g1_twice(const G1 *a, G1 *out, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) out[i] = g1::twice(a[i]);
}

void blindfold_test_g1_times_x_squared(const G1 *a, G1 *out, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) out[i] = g1::times_x_squared(a[i]);
}

// 1 where equal, 0 where not.
void blindfold_test_g1_equal(const G1 *a, const G1Affine *b, uint32_t *out, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i)
        out[i] = uint32_t(g1::equal(a[i], b[i]) && g1::equal(a[i], g1::from_affine(b[i])));
}

void blindfold_test_g1_multiply(const G1 *points, const int8_t *digits, uint32_t positions, bool odd, G1 *out,
                                uint32_t count) {
    launch(Stream(), g1::Multiply{points, g1::Digits{digits, positions, odd}, out}, count);
}

void blindfold_test_points_forward(uint32_t log_size, uint32_t cosets, const G1Affine *inputs, uint32_t count,
                                   const G1Affine *release, const int8_t *digits, uint32_t positions, bool odd, G1 *out) {
    transform::Shape shape{log_size, cosets};
    g1::Digits roots{digits, positions, odd};
    launch(Stream(), transform::Fold{shape, inputs, count, release, out}, shape.points());
    for (uint32_t half = shape.size() / 2; half > 0; half /= 2)
        launch(Stream(), transform::PointLevel{shape, half, roots, out}, shape.points() / 2);
}

} // extern "C"
