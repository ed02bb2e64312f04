// What gpu/host/tests/tower.rs calls.
#include "../field/fp2.cuh"

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
}
