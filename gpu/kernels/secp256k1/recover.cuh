// Public keys from ECDSA signatures over secp256k1, as crates/protocol recovers signers: r‖s‖v in 65 bytes, v 27 or 28, s in
// the lower half of the order. In variable time; signatures and keys are public.
#pragma once

#include "../curve/scalars.cuh"
#include "point.cuh"

namespace blindfold {
namespace secp256k1 {

constexpr uint32_t SIGNATURE_BYTES = 65;
constexpr uint32_t DIGEST_BYTES = 32;
constexpr uint32_t KEY_BYTES = 64;

constexpr uint32_t WINDOW_BITS = 4;
// Multiples of a point that a multiplication keeps.
constexpr int MULTIPLES = 1 << (WINDOW_BITS - 1);
constexpr uint32_t WINDOWS = 256 / WINDOW_BITS + 1;

// out_i = (i + 1)·point.
BF_INLINE void multiples(const Point &point, Point *out) {
    out[0] = point;
    BF_ROLL
    for (int i = 1; i < MULTIPLES; ++i) out[i] = add(out[i - 1], point);
}

BF_INLINE void signed_digits(const Limbs256 &k, int8_t *digits) {
    scalars::Reader reader(k.limb, 8, WINDOW_BITS);
    for (uint32_t i = 0; i < WINDOWS; ++i) digits[i] = int8_t(reader.next());
}

BF_INLINE Point add_multiple(const Point &sum, const Point *table, int digit) {
    if (digit == 0) return sum;
    Point multiple = table[(digit < 0 ? -digit : digit) - 1];
    if (digit < 0) multiple.y = Curve::sub(pseudo_mersenne::word(0), multiple.y);
    return add(sum, multiple);
}

// a·G + b·point: 256 doublings, 130 additions and 14 for the tables.
BF_CALL Point multiply_both(const Limbs256 &a, const Limbs256 &b, const Point &point) {
    Point of_generator[MULTIPLES], of_point[MULTIPLES];
    int8_t first[WINDOWS], second[WINDOWS];
    multiples(generator(), of_generator);
    multiples(point, of_point);
    signed_digits(a, first);
    signed_digits(b, second);
    Point sum = identity();
    BF_ROLL
    for (uint32_t window = WINDOWS; window-- > 0;) {
        BF_ROLL
        for (uint32_t i = 0; i < WINDOW_BITS; ++i) sum = twice(sum);
        sum = add_multiple(sum, of_generator, first[window]);
        sum = add_multiple(sum, of_point, second[window]);
    }
    return sum;
}

// Reads r and s; whether both are from 1 to n − 1, s at most n/2, and v 27 or 28.
BF_INLINE bool read_signature(const uint8_t *bytes, Limbs256 &r, Limbs256 &s) {
    r = pseudo_mersenne::from_bytes(bytes);
    s = pseudo_mersenne::from_bytes(bytes + 32);
    const Limbs256 order = below_modulus<Scalars>(0);
    bool low = !pseudo_mersenne::less(pseudo_mersenne::sub<Scalars>(pseudo_mersenne::word(0), s), s);
    return !pseudo_mersenne::is_zero(r) && !pseudo_mersenne::is_zero(s) && pseudo_mersenne::less(r, order) &&
           pseudo_mersenne::less(s, order) && low && (bytes[64] == 27 || bytes[64] == 28);
}

// The key of one signature of one digest: Q = (s·R − z·G)/r for the point R of x-coordinate r and the parity of v. Writes
// x‖y, big-endian, and 1 to `valid`; or 0 where no key fits. Two inversions, a root and a multiplication of two points.
struct Recover {
    const uint8_t *signatures;
    const uint8_t *digests;
    uint8_t *keys;
    uint32_t *valid;

    BF_INLINE void operator()(uint32_t item) const {
        const uint8_t *signature = signatures + size_t(item) * SIGNATURE_BYTES;
        valid[item] = 0;
        Limbs256 r, s;
        if (!read_signature(signature, r, s)) return;
        // r < n < p is a coordinate; that of R before its reduction modulo n may also have been r + n, which v excludes.
        Limbs256 right = Curve::add(Curve::mul(Curve::mul(r, r), r), pseudo_mersenne::word(7));
        Point nonce{r, square_root(right), pseudo_mersenne::word(1)};
        if (!pseudo_mersenne::equal(Curve::mul(nonce.y, nonce.y), right)) return;
        bool odd = (nonce.y.limb[0] & 1) != 0; // y ≠ 0: the order is odd
        if (odd != (signature[64] == 28)) nonce.y = Curve::sub(pseudo_mersenne::word(0), nonce.y);

        Limbs256 digest = pseudo_mersenne::from_bytes(digests + size_t(item) * DIGEST_BYTES);
        digest = pseudo_mersenne::reduce_once<Scalars>(digest, 0);
        Limbs256 inverse_r = inverse<Scalars>(r);
        Limbs256 of_nonce = pseudo_mersenne::mul<Scalars>(s, inverse_r);
        Limbs256 of_generator = pseudo_mersenne::mul<Scalars>(
            pseudo_mersenne::sub<Scalars>(pseudo_mersenne::word(0), digest), inverse_r);
        Point key = multiply_both(of_generator, of_nonce, nonce);
        if (pseudo_mersenne::is_zero(key.z)) return;
        Limbs256 inverse_z = inverse<Coordinates>(key.z);
        pseudo_mersenne::to_bytes(keys + size_t(item) * KEY_BYTES, Curve::mul(key.x, inverse_z));
        pseudo_mersenne::to_bytes(keys + size_t(item) * KEY_BYTES + 32, Curve::mul(key.y, inverse_z));
        valid[item] = 1;
    }
};

} // namespace secp256k1
} // namespace blindfold
