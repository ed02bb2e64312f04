// What gpu/host/tests/pairing.rs calls.
#include "../field/batch_inverse.cuh"
#include "../pairing/kernels.cuh"

using namespace blindfold;

extern "C" {

// Miller loops and easy parts of `count` points; `scratch` has `count` elements, as have the denominators.
void blindfold_test_miller_easy(const Fp *points, uint32_t point_step, const Line *lines, uint32_t first_lines,
                                int32_t lines_step, Fp2 *out, Fp *denominators, Fp *scratch, uint32_t count) {
    launch_groups(Stream{}, MillerLoops{points, point_step, lines, first_lines, lines_step, out, denominators}, count);
    uint32_t threads = InvertAll::threads_for(count, 16);
    launch(Stream{}, InvertAll{denominators, scratch, count, threads}, threads);
    launch(Stream{}, Divide{out, denominators}, count * gt::COEFFICIENTS);
}

// The same up to the inversion, then the blinding factors with the cross-terms given.
void blindfold_test_blindings(const Fp *point, const Line *lines, uint32_t first_lines, int32_t lines_step,
                              const Fp2 *cross, Fp2 *numerators, Fp *denominators, Fp *scratch, Fp2 *out,
                              uint32_t count) {
    launch_groups(Stream{}, MillerLoops{point, 0, lines, first_lines, lines_step, numerators, denominators}, count);
    uint32_t threads = InvertAll::threads_for(count, 16);
    launch(Stream{}, InvertAll{denominators, scratch, count, threads}, threads);
    launch_groups(Stream{}, Blindings{numerators, denominators, cross, out}, count);
}

void blindfold_test_hard_parts(Fp2 *elements, bool conjugates, uint32_t count) {
    launch_groups(Stream{}, HardParts{elements, conjugates}, count);
}

void blindfold_test_invert_all(Fp *elements, Fp *scratch, uint32_t count, uint32_t each) {
    uint32_t threads = InvertAll::threads_for(count, each);
    launch(Stream{}, InvertAll{elements, scratch, count, threads}, threads);
}
}
