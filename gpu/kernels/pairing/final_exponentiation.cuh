// The final exponentiation, as the reference does it, so that results are the same bytes.
//
// Its inversion is one in F_p, which by Fermat costs what sixty products over six lanes cost; so the easy part leaves a
// fraction, whose denominators are inverted many at a time (field/batch_inverse.cuh).
#pragma once

#include "../tower/cyclotomic.cuh"

namespace blindfold {

// numerator/denominator; every lane holds the denominator, which is in F_p.
struct GtFraction {
    Gt numerator;
    Spread<Fp> denominator;
};

namespace pairing {

// f^((p⁶−1)(p²+1)): from a Miller value, which is not zero, into the cyclotomic subgroup.
//
// With f̄ = f^(p⁶): n = f·f̄ is in F_p6, m = n^(p²)·n^(p⁴), t = n·m in F_p2 and d = t·t̄ in F_p, so that
// f^(p⁶−1) = f̄/f = f̄²·m·t̄/d.
BF_INLINE GtFraction easy_part(const Group &group, const Gt &f) {
    Gt conjugate = gt::conjugate(group, f);
    Gt n = gt::mul(group, f, conjugate);
    Gt m = gt::frobenius(group, n, 2);
    m = gt::mul(group, m, gt::frobenius(group, m, 2));
    Gt t = gt::mul(group, n, m);
    Gt g = gt::mul(group, gt::square(group, conjugate), m);
    g = each_lane(group, [&](int slot, int) {
        return fp2::mul(g.own[slot], fp2::conjugate(exchange(group, t, 0)));
    });
    GtFraction r;
    r.denominator = each_lane(group, [&](int, int) {
        Fp2 in_fp2 = exchange(group, t, 0);
        return fp::square(fp::add(fp::square(in_fp2.c0), fp::square(in_fp2.c1))); // d^(p²+1)
    });
    r.numerator = gt::mul(group, gt::frobenius(group, g, 2), g);
    return r;
}

// From the cyclotomic subgroup into GT, in place: the exponent is 3·(p⁴−p²+1)/r, as in the reference (Hayashida, Hayasaka
// and Teruya, ePrint 2020/875: (x−1)²·(x+p)·(x²+p²−1) + 3). The element waits in memory for the last factor.
BF_INLINE void hard_part(const Group &group, Fp2 *element, bool stores) {
    warp_barrier(); // the element has been stored
    Gt t = gt::load(group, element), power = t;
    // One copy of the loop over the bits of x for its five runs.
    BF_ROLL
    for (int step = 0; step < 5; ++step) {
        power = gt::power_x(group, power);
        if (step == 3) continue; // x² of the last factor
        Gt other = step == 2 ? gt::frobenius(group, t, 1) : gt::conjugate(group, t);
        power = gt::mul(group, power, other); // x − 1, x − 1, x + p, x² − 1
        if (step == 4) power = gt::mul(group, power, gt::frobenius(group, t, 2)); // + p²
        t = power;
    }
    Gt f = gt::load(group, element);
    t = gt::mul(group, t, f);
    t = gt::mul(group, t, gt::cyclotomic_square(group, gt::load(group, element)));
    gt::store(group, element, t, stores);
}

} // namespace pairing
} // namespace blindfold
