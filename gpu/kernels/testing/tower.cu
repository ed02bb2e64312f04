// What gpu/host/tests/tower.rs calls.
#include "../machine/launch.cuh"
#include "../tower/cyclotomic.cuh"

using namespace blindfold;

extern "C" {

// out[i] = operation(a[i], b[i]); the operations are numbered as the test numbers them.
void blindfold_test_fp2(uint32_t operation, const Fp2 *a, const Fp2 *b, Fp2 *out, size_t count) {
    for (size_t i = 0; i < count; ++i) {
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
}

// Four products in one sum, the most that its bounds allow.
void blindfold_test_fp2_sum(const Fp2 *a, const Fp2 *b, Fp2 *out) {
    Wide2 sum = fp2::mul_wide(a[0], b[0]);
    for (int i = 1; i < 4; ++i) fp2::accumulate(sum, a[i], b[i]);
    *out = fp2::reduce(sum);
}

// out = operation(a, b) in F_p12, the lanes visited in either order.
void blindfold_test_gt(uint32_t operation, bool backwards, const Fp2 *a, const Fp2 *b, Fp2 *out) {
    Group group;
    group.backwards = backwards;
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
    gt::store(group, out, r, true);
}

// a is squared so many times, in place, as an element of the cyclotomic subgroup.
void blindfold_test_gt_cyclotomic_squares(bool backwards, Fp2 *a, uint32_t times) {
    Group group;
    group.backwards = backwards;
    Gt x = gt::load(group, a);
    for (uint32_t i = 0; i < times; ++i) x = gt::cyclotomic_square(group, x);
    gt::store(group, a, x, true);
}

// a^(ζ^power) and a^x, in the cyclotomic subgroup.
void blindfold_test_gt_pow_zeta(const Fp2 *a, uint32_t power, Fp2 *out) {
    Group group;
    gt::store(group, out, gt::pow_zeta(group, gt::load(group, a), int(power)), true);
}

void blindfold_test_gt_power_x(const Fp2 *a, Fp2 *out) {
    Group group;
    gt::store(group, out, gt::power_x(group, gt::load(group, a)), true);
}
}
