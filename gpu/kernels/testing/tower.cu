// What gpu/host/tests/tower.rs calls.
#include "../machine/launch.cuh"
#include "../tower/cyclotomic.cuh"

using namespace blindfold;

// The tests' units are one where they are compiled to PTX: each has its names for itself.
namespace tower_tests {

struct Fp2Operation {
    uint32_t operation;
    const Fp2 *a, *b;
    Fp2 *out;

    BF_INLINE void operator()(uint32_t i) const {
        switch (operation) {
        case 0: out[i] = fp2::add(a[i], b[i]); break;
        case 1: out[i] = fp2::sub(a[i], b[i]); break;
        case 2: out[i] = fp2::mul(a[i], b[i]); break;
        case 3: out[i] = fp2::square(a[i]); break;
        case 4: out[i] = fp2::inverse(a[i]); break;
        case 5: out[i] = fp2::mul_by_xi(a[i]); break;
        case 6: out[i] = fp2::conjugate(a[i]); break;
        case 7: out[i] = fp2::neg(a[i]); break;
        case 8: out[i] = fp2::mul_fp(a[i], b[i].c0); break;
        default: out[i] = fp2::select(fp2::equal(a[i], b[i]), fp2::one(), fp2::twice(a[i])); break;
        }
    }
};

struct Fp2Sum {
    const Fp2 *a, *b;
    Fp2 *out;

    BF_INLINE void operator()(uint32_t) const {
        Wide2 sum = fp2::mul_wide(a[0], b[0]);
        BF_ROLL
        for (int i = 1; i < 4; ++i) fp2::accumulate(sum, a[i], b[i]);
        *out = fp2::reduce(sum);
    }
};

// The lanes visited in either order; on a device they have none.
BF_INLINE Group ordered(Group group, bool backwards) {
#if BF_ON_DEVICE
    (void)backwards;
#else
    group.backwards = backwards;
#endif
    return group;
}

struct GtOperation {
    uint32_t operation;
    bool backwards;
    const Fp2 *a, *b;
    Fp2 *out;

    BF_INLINE void operator()(const Group &lanes, uint32_t, bool stores) const {
        Group group = ordered(lanes, backwards);
        Gt x = gt::load(group, a), y = gt::load(group, b), r = gt::one(group);
        switch (operation) {
        case 0: r = gt::mul(group, x, y); break;
        case 1: r = gt::square(group, x); break;
        case 2: r = gt::conjugate(group, x); break;
        case 3: r = gt::frobenius(group, x, 1); break;
        case 4: r = gt::frobenius(group, x, 2); break;
        case 5: r = gt::frobenius(group, x, 3); break;
        default: break;
        }
        gt::store(group, out, r, stores);
    }
};

struct CyclotomicSquares {
    bool backwards;
    Fp2 *a;
    uint32_t times;

    BF_INLINE void operator()(const Group &lanes, uint32_t, bool stores) const {
        Group group = ordered(lanes, backwards);
        Gt x = gt::load(group, a);
        BF_ROLL
        for (uint32_t i = 0; i < times; ++i) x = gt::cyclotomic_square(group, x);
        gt::store(group, a, x, stores);
    }
};

struct PowerOfZeta {
    uint32_t power;
    const Fp2 *a;
    Fp2 *out;

    BF_INLINE void operator()(const Group &group, uint32_t, bool stores) const {
        gt::store(group, out, gt::pow_zeta(group, gt::load(group, a), int(power)), stores);
    }
};

struct PowerOfX {
    const Fp2 *a;
    Fp2 *out;

    BF_INLINE void operator()(const Group &group, uint32_t, bool stores) const {
        gt::store(group, out, gt::power_x(group, gt::load(group, a)), stores);
    }
};

} // namespace tower_tests

extern "C" {

// out[i] = operation(a[i], b[i]); the operations are numbered as the test numbers them.
void blindfold_test_fp2(uint32_t operation, const Fp2 *a, const Fp2 *b, Fp2 *out, size_t count) {
    launch(Stream(), tower_tests::Fp2Operation{operation, a, b, out}, uint32_t(count));
}

// Four products in one sum, the most that its bounds allow.
void blindfold_test_fp2_sum(const Fp2 *a, const Fp2 *b, Fp2 *out) { launch(Stream(), tower_tests::Fp2Sum{a, b, out}, 1); }

// Whether a sum of so many products may be reduced, by the bounds that the host build proves; −1 where it proves none.
int blindfold_test_reducible(uint32_t products) {
#if BF_TRACKED
    Wide2 sum = fp2::mul_wide(fp2::one(), fp2::one());
    for (uint32_t i = 1; i < products; ++i) fp2::accumulate(sum, fp2::one(), fp2::one());
    return wide::reducible(sum.c0) && wide::reducible(sum.c1);
#else
    return (void)products, -1;
#endif
}

// out = operation(a, b) in F_p12, the lanes visited in either order.
void blindfold_test_gt(uint32_t operation, bool backwards, const Fp2 *a, const Fp2 *b, Fp2 *out) {
    launch_groups(Stream(), tower_tests::GtOperation{operation, backwards, a, b, out}, 1);
}

// a is squared so many times, in place, as an element of the cyclotomic subgroup.
void blindfold_test_gt_cyclotomic_squares(bool backwards, Fp2 *a, uint32_t times) {
    launch_groups(Stream(), tower_tests::CyclotomicSquares{backwards, a, times}, 1);
}

// a^(ζ^power) and a^x, in the cyclotomic subgroup.
void blindfold_test_gt_pow_zeta(const Fp2 *a, uint32_t power, Fp2 *out) {
    launch_groups(Stream(), tower_tests::PowerOfZeta{power, a, out}, 1);
}

void blindfold_test_gt_power_x(const Fp2 *a, Fp2 *out) { launch_groups(Stream(), tower_tests::PowerOfX{a, out}, 1); }
}
