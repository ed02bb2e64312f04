// What the tests of F_r and of its transforms call.
#include "../transform/ntt.cuh"

using namespace blindfold;

namespace ntt_tests {

struct Field {
    const Fr *a, *b;
    Fr *sum, *difference, *product;

    BF_INLINE void operator()(uint32_t i) const {
        sum[i] = fr::add(a[i], b[i]);
        difference[i] = fr::sub(a[i], b[i]);
        product[i] = fr::mul(a[i], b[i]);
    }
};

} // namespace ntt_tests

extern "C" {

void blindfold_test_fr(const Fr *a, const Fr *b, Fr *sum, Fr *difference, Fr *product, uint32_t count) {
    launch(Stream(), ntt_tests::Field{a, b, sum, difference, product}, count);
}

// `roots` is room for N/2 elements (1 for N = 1), `squares` for 64.
void blindfold_test_ntt_forward(uint32_t log_size, const Fr *root, const Fr *offset, Fr *roots, Fr *squares, Fr *values) {
    uint32_t size = uint32_t(1) << log_size;
    Fr one = fr::one();
    launch(Stream(), transform::Squares{root, squares}, 1);
    launch(Stream(), transform::Powers{squares, roots}, size / 2);
    launch(Stream(), transform::Squares{offset, squares + 32}, 1);
    launch(Stream(), transform::Scale{squares + 32, &one, values}, size);
    transform::scalar_levels(Stream(), log_size, roots, values);
    launch(Stream(), transform::Reverse{log_size, values}, size);
}

// With the inverses of root, offset and N.
void blindfold_test_ntt_inverse(uint32_t log_size, const Fr *root, const Fr *offset, const Fr *scale, Fr *roots, Fr *squares,
                                Fr *values) {
    uint32_t size = uint32_t(1) << log_size;
    launch(Stream(), transform::Squares{root, squares}, 1);
    launch(Stream(), transform::Powers{squares, roots}, size / 2);
    launch(Stream(), transform::Squares{offset, squares + 32}, 1);
    transform::scalar_levels(Stream(), log_size, roots, values);
    launch(Stream(), transform::Reverse{log_size, values}, size);
    launch(Stream(), transform::Scale{squares + 32, scale, values}, size);
}

} // extern "C"
