// What the tests of G1 and of the transform of points call.
#include "../machine/launch.cuh"
#include "../transform/points.cuh"

using namespace blindfold;

namespace points_tests {

enum class Operation { Add, Sub, AddAffine, Twice, TimesXSquared };

// `b` or `affine`, as the operation wants it.
template <Operation OPERATION> struct Points {
    const G1 *a, *b;
    const G1Affine *affine;
    G1 *out;

    BF_INLINE void operator()(uint32_t i) const {
        if constexpr (OPERATION == Operation::Add) out[i] = g1::add(a[i], b[i]);
        if constexpr (OPERATION == Operation::Sub) out[i] = g1::sub(a[i], b[i]);
        if constexpr (OPERATION == Operation::AddAffine) out[i] = g1::add_affine(a[i], affine[i]);
        if constexpr (OPERATION == Operation::Twice) out[i] = g1::twice(a[i]);
        if constexpr (OPERATION == Operation::TimesXSquared) out[i] = g1::times_x_squared(a[i]);
    }
};

struct Equal {
    const G1 *a;
    const G1Affine *b;
    uint32_t *out;

    BF_INLINE void operator()(uint32_t i) const {
        out[i] = uint32_t(g1::equal(a[i], b[i]) && g1::equal(a[i], g1::from_affine(b[i])));
    }
};

// out_i = scalars_i·points_i.
struct Multiply {
    const G1 *points;
    g1::Digits scalars;
    G1 *out;

    BF_INLINE void operator()(uint32_t item) const { out[item] = g1::multiply(points[item], scalars, item); }
};

} // namespace points_tests

extern "C" {

void blindfold_test_g1_add(const G1 *a, const G1 *b, G1 *out, uint32_t count) {
    launch(Stream(), points_tests::Points<points_tests::Operation::Add>{a, b, nullptr, out}, count);
}

void blindfold_test_g1_sub(const G1 *a, const G1 *b, G1 *out, uint32_t count) {
    launch(Stream(), points_tests::Points<points_tests::Operation::Sub>{a, b, nullptr, out}, count);
}

void blindfold_test_g1_add_affine(const G1 *a, const G1Affine *b, G1 *out, uint32_t count) {
    launch(Stream(), points_tests::Points<points_tests::Operation::AddAffine>{a, nullptr, b, out}, count);
}

void blindfold_test_g1_twice(const G1 *a, G1 *out, uint32_t count) {
    launch(Stream(), points_tests::Points<points_tests::Operation::Twice>{a, nullptr, nullptr, out}, count);
}

void blindfold_test_g1_times_x_squared(const G1 *a, G1 *out, uint32_t count) {
    launch(Stream(), points_tests::Points<points_tests::Operation::TimesXSquared>{a, nullptr, nullptr, out}, count);
}

// 1 where equal, 0 where not.
void blindfold_test_g1_equal(const G1 *a, const G1Affine *b, uint32_t *out, uint32_t count) {
    launch(Stream(), points_tests::Equal{a, b, out}, count);
}

void blindfold_test_g1_multiply(const G1 *points, const int8_t *digits, uint32_t positions, bool odd, G1 *out,
                                uint32_t count) {
    launch(Stream(), points_tests::Multiply{points, g1::Digits{digits, positions, odd}, out}, count);
}

void blindfold_test_points_forward(uint32_t log_size, uint32_t cosets, const G1Affine *inputs, uint32_t count,
                                   const G1Affine *release, const int8_t *digits, uint32_t positions, bool odd,
                                   bool in_lanes, G1 *out) {
    transform::Shape shape{log_size, cosets};
    g1::Digits roots{digits, positions, odd};
    launch(Stream(), transform::Fold{shape, inputs, count, release, out}, shape.points());
    for (uint32_t half = shape.size() / 2; half > 0; half /= 2) {
        if (in_lanes) launch_groups(Stream(), transform::PointLevelInLanes{shape, half, roots, out}, shape.points() / 2);
        else launch(Stream(), transform::PointLevel{shape, half, roots, out}, shape.points() / 2);
    }
}

} // extern "C"
