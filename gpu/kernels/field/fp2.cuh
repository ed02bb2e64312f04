// F_p2 = F_p[u]/(u² + 1), over which the sextic twist and the tower are built with ξ = 1 + u.
#pragma once

#include "fp.cuh"
#include "inverse.cuh"
#include "wide.cuh"

namespace blindfold {

// c0 + c1·u.
struct Fp2 {
    Fp c0, c1;
};

// A sum of elements of F_p2 that is not reduced.
struct Sum2 {
    Sum c0, c1;

    BF_INLINE Sum2(const Sum &c0, const Sum &c1) : c0(c0), c1(c1) {}
    BF_INLINE Sum2(const Fp2 &a) : c0(a.c0), c1(a.c1) {}
};

// A sum of products of elements of F_p2 before its reduction.
struct Wide2 {
    Wide c0, c1;
};

namespace fp2 {

BF_INLINE Fp2 zero() { return {fp::zero(), fp::zero()}; }
BF_INLINE Fp2 one() { return {fp::one(), fp::zero()}; }
BF_INLINE bool is_zero(const Fp2 &a) { return fp::is_zero(a.c0) && fp::is_zero(a.c1); }
BF_INLINE bool equal(const Fp2 &a, const Fp2 &b) { return fp::equal(a.c0, b.c0) && fp::equal(a.c1, b.c1); }

// `yes` where `which`, else `no`.
BF_INLINE Fp2 select(bool which, const Fp2 &yes, const Fp2 &no) {
    return {fp::select(which, yes.c0, no.c0), fp::select(which, yes.c1, no.c1)};
}

BF_INLINE Fp2 add(const Fp2 &a, const Fp2 &b) { return {fp::add(a.c0, b.c0), fp::add(a.c1, b.c1)}; }
BF_INLINE Fp2 sub(const Fp2 &a, const Fp2 &b) { return {fp::sub(a.c0, b.c0), fp::sub(a.c1, b.c1)}; }
BF_INLINE Fp2 neg(const Fp2 &a) { return {fp::neg(a.c0), fp::neg(a.c1)}; }
BF_INLINE Fp2 twice(const Fp2 &a) { return add(a, a); }

// a^p.
BF_INLINE Fp2 conjugate(const Fp2 &a) { return {a.c0, fp::neg(a.c1)}; }

// ξ·a.
BF_INLINE Fp2 mul_by_xi(const Fp2 &a) { return {fp::sub(a.c0, a.c1), fp::add(a.c0, a.c1)}; }

BF_INLINE Fp2 mul_fp(const Fp2 &a, const Fp &b) { return {fp::mul(a.c0, b), fp::mul(a.c1, b)}; }

BF_INLINE Sum2 sum_unreduced(const Sum2 &a, const Sum2 &b) {
    return {wide::sum_unreduced(a.c0, b.c0), wide::sum_unreduced(a.c1, b.c1)};
}

#if BF_TRACKED
// c1 of a product, beside `before`: a0·b1 + a1·b0, which is never negative though its parts pass below zero.
inline Wide crossed(const Wide &c1, const Wide &before, const Sum2 &a, const Sum2 &b) {
    return wide::bounded(c1, before.least, before.most + a.c0.most * b.c1.most + a.c1.most * b.c0.most);
}
#endif

// a·b before reduction (Karatsuba): c0 between −p² and p², c1 between 0 and 2p²; four times that where both factors are
// unreduced sums of two. 432 multiply-adds.
BF_INLINE Wide2 mul_wide(const Sum2 &a, const Sum2 &b) {
    Wide2 r;
    Wide high = wide::mul(a.c1, b.c1);
    r.c1 = wide::sub(wide::mul(wide::sum_unreduced(a.c0, a.c1), wide::sum_unreduced(b.c0, b.c1)), high);
    Wide low = wide::mul(a.c0, b.c0);
    r.c0 = wide::sub(low, high);
    r.c1 = wide::sub(r.c1, low);
    BF_TRACK(r.c1 = crossed(r.c1, Wide(), a, b);)
    return r;
}

// sum += a·b; at most four products to one sum, for c1 grows by up to 2p² each.
BF_INLINE void accumulate(Wide2 &sum, const Fp2 &a, const Fp2 &b) {
    BF_TRACK(const Wide before = sum.c1;)
    Wide part = wide::mul(a.c0, b.c0);
    sum.c0 = wide::add(sum.c0, part);
    sum.c1 = wide::sub(sum.c1, part);
    part = wide::mul(a.c1, b.c1);
    sum.c0 = wide::sub(sum.c0, part);
    sum.c1 = wide::sub(sum.c1, part);
    part = wide::mul(wide::sum_unreduced(a.c0, a.c1), wide::sum_unreduced(b.c0, b.c1));
    sum.c1 = wide::add(sum.c1, part);
    BF_TRACK(sum.c1 = crossed(sum.c1, before, a, b);)
}

// sum += a², or ξ·a² where `by_xi`: c0 moves by up to p² (2p²), c1 grows by up to 2p² (3p²). 288 multiply-adds.
BF_INLINE void accumulate_square(Wide2 &sum, const Fp2 &a, bool by_xi) {
    uint32_t mask = by_xi ? 0xffffffffu : 0;
    Wide part = wide::mul(fp::add(a.c0, a.c1), fp::sub(a.c0, a.c1));
    sum.c0 = wide::add(sum.c0, part);
    sum.c1 = wide::add(sum.c1, wide::mask(part, mask));
    part = wide::mul(wide::sum_unreduced(a.c0, a.c0), a.c1);
    sum.c0 = wide::sub(sum.c0, wide::mask(part, mask));
    sum.c1 = wide::add(sum.c1, part);
}

// sum += a·b, b in F_p: both grow by up to p². 288 multiply-adds.
BF_INLINE void accumulate_fp(Wide2 &sum, const Fp2 &a, const Fp &b) {
    sum.c0 = wide::add(sum.c0, wide::mul(a.c0, b));
    sum.c1 = wide::add(sum.c1, wide::mul(a.c1, b));
}

BF_INLINE Fp2 reduce(const Wide2 &a) { return {wide::reduce(a.c0), wide::reduce(a.c1)}; }

// 744 multiply-adds.
BF_INLINE Fp2 mul(const Sum2 &a, const Sum2 &b) { return reduce(mul_wide(a, b)); }

// (c0 + c1)(c0 − c1) + 2·c0·c1·u. 600 multiply-adds.
BF_INLINE Fp2 square(const Fp2 &a) {
    Fp product = fp::mul(a.c0, a.c1);
    return {fp::mul(fp::add(a.c0, a.c1), fp::sub(a.c0, a.c1)), fp::twice(product)};
}

// The inverse, or 0 of 0: one inversion in F_p.
BF_INLINE Fp2 inverse(const Fp2 &a) {
    Fp norm = fp::add(fp::square(a.c0), fp::square(a.c1));
    return mul_fp(conjugate(a), fp::inverse(norm));
}

} // namespace fp2
} // namespace blindfold
