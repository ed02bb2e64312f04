// What the tests of secp256k1 call.
#include "../machine/launch.cuh"
#include "../secp256k1/recover.cuh"

using namespace blindfold;

namespace secp256k1_tests {

template <class Prime> struct Field {
    const uint8_t *a, *b;
    uint8_t *out;

    BF_INLINE void operator()(uint32_t) const {
        Limbs256 left = pseudo_mersenne::from_bytes(a), right = pseudo_mersenne::from_bytes(b);
        pseudo_mersenne::to_bytes(out, pseudo_mersenne::add<Prime>(left, right));
        pseudo_mersenne::to_bytes(out + 32, pseudo_mersenne::sub<Prime>(left, right));
        pseudo_mersenne::to_bytes(out + 64, pseudo_mersenne::mul<Prime>(left, right));
        pseudo_mersenne::to_bytes(out + 96, secp256k1::inverse<Prime>(left));
    }
};

} // namespace secp256k1_tests

extern "C" {

// a + b, a − b, a·b and 1/a modulo p, or modulo n where `scalars`; 32 big-endian bytes each.
void blindfold_test_secp256k1_field(const uint8_t *a, const uint8_t *b, bool scalars, uint8_t *out) {
    if (scalars)
        launch(Stream(), secp256k1_tests::Field<secp256k1::Scalars>{a, b, out}, 1);
    else
        launch(Stream(), secp256k1_tests::Field<secp256k1::Coordinates>{a, b, out}, 1);
}

void blindfold_test_secp256k1_recover(const uint8_t *signatures, const uint8_t *digests, uint8_t *keys, uint32_t *valid,
                                      uint32_t count) {
    launch(Stream(), secp256k1::Recover{signatures, digests, keys, valid}, count);
}

} // extern "C"
