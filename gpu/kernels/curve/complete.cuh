// Complete homogeneous projective formulas for y² = x³ + b (Renes, Costello and Batina, "Complete addition formulas for prime
// order elliptic curves", 2015/1060, algorithms 7 to 9 with a = 0): no case differs, so equal, opposite and identity operands
// neither need a branch nor split a warp. An addition costs 12 field products, of an affine point 11, a doubling 8.
//
// `Curve` names its field, `Element` with mul, add and sub, and times_b3, the product with 3b. Points have x, y and z.
#pragma once

#include "../machine/arch.cuh"

namespace blindfold {
namespace complete {

// The end that additions share: with x₁x₂, y₁y₂, z₁z₂ and the sums x₁y₂ + x₂y₁, y₁z₂ + y₂z₁, x₁z₂ + x₂z₁. Six products.
template <class Curve, class Point, class Element>
BF_INLINE Point sum_of(const Element &xx, const Element &yy, const Element &zz, const Element &xy, const Element &yz,
                       const Element &xz) {
    Element three_xx = Curve::add(Curve::add(xx, xx), xx);
    Element b3_zz = Curve::times_b3(zz), b3_xz = Curve::times_b3(xz);
    Element plus = Curve::add(yy, b3_zz), minus = Curve::sub(yy, b3_zz);
    Point sum;
    sum.x = Curve::sub(Curve::mul(xy, minus), Curve::mul(yz, b3_xz));
    sum.y = Curve::add(Curve::mul(minus, plus), Curve::mul(b3_xz, three_xx));
    sum.z = Curve::add(Curve::mul(plus, yz), Curve::mul(three_xx, xy));
    return sum;
}

// a·d + b·c for the products a·c and b·d: (a + b)(c + d) − ac − bd.
template <class Curve, class Element>
BF_INLINE Element cross(const Element &a, const Element &b, const Element &c, const Element &d, const Element &ac,
                        const Element &bd) {
    return Curve::sub(Curve::mul(Curve::add(a, b), Curve::add(c, d)), Curve::add(ac, bd));
}

template <class Curve, class Point> BF_INLINE Point add(const Point &a, const Point &b) {
    auto xx = Curve::mul(a.x, b.x), yy = Curve::mul(a.y, b.y), zz = Curve::mul(a.z, b.z);
    return sum_of<Curve, Point>(xx, yy, zz, cross<Curve>(a.x, a.y, b.x, b.y, xx, yy),
                                cross<Curve>(a.y, a.z, b.y, b.z, yy, zz), cross<Curve>(a.x, a.z, b.x, b.z, xx, zz));
}

// b is not the identity.
template <class Curve, class Point, class Affine> BF_INLINE Point add_affine(const Point &a, const Affine &b) {
    auto xx = Curve::mul(a.x, b.x), yy = Curve::mul(a.y, b.y);
    auto yz = Curve::add(Curve::mul(b.y, a.z), a.y), xz = Curve::add(Curve::mul(b.x, a.z), a.x);
    return sum_of<Curve, Point>(xx, yy, a.z, cross<Curve>(a.x, a.y, b.x, b.y, xx, yy), yz, xz);
}

template <class Curve, class Point> BF_INLINE Point twice(const Point &a) {
    auto yy = Curve::mul(a.y, a.y), yz = Curve::mul(a.y, a.z), xy = Curve::mul(a.x, a.y);
    auto b3_zz = Curve::times_b3(Curve::mul(a.z, a.z));
    auto two_yy = Curve::add(yy, yy), four_yy = Curve::add(two_yy, two_yy), eight_yy = Curve::add(four_yy, four_yy);
    auto minus = Curve::sub(yy, Curve::add(Curve::add(b3_zz, b3_zz), b3_zz));
    auto half = Curve::mul(minus, xy);
    Point r;
    r.x = Curve::add(half, half);
    r.y = Curve::add(Curve::mul(minus, Curve::add(yy, b3_zz)), Curve::mul(b3_zz, eight_yy));
    r.z = Curve::mul(yz, eight_yy);
    return r;
}

} // namespace complete
} // namespace blindfold
