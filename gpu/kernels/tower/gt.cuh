// F_p12 = F_p2[w]/(w^6 − ξ), ξ = 1 + u, over six lanes: lane k holds the coefficient of w^k.
//
// Named after GT, which lives in it. What holds in the cyclotomic subgroup only says "cyclotomic"; there conjugation
// inverts.
#pragma once

#include "../field/fp2.cuh"
#include "../machine/lanes.cuh"

namespace blindfold {

// An element of F_p12.
using Gt = Spread<Fp2>;

namespace gt {

// Coefficients of an element in memory, and the place of that of w^k: tower order c0.c0, c0.c1, c0.c2, c1.c0, c1.c1,
// c1.c2 with v = w², as the reference has it.
constexpr int COEFFICIENTS = GROUP_LANES;
BF_INLINE int place(int lane) { return lane / 2 + lane % 2 * 3; }

BF_INLINE Gt load(const Group &group, const Fp2 *element) {
    return each_lane(group, [&](int, int lane) { return element[place(lane)]; });
}

// Writes where `stores`: lanes that repeat another's element do not, but they have read it. Whoever loads it again comes
// behind a barrier. All lanes of the warp take part.
BF_INLINE void store(const Group &group, Fp2 *element, const Gt &value, bool stores) {
    warp_barrier();
    BF_EACH_LANE(slot) {
        if (stores) element[place(group.lane(slot))] = value.own[slot];
    }
}

BF_INLINE Gt one(const Group &group) {
    return each_lane(group, [&](int, int lane) { return fp2::select(lane == 0, fp2::one(), fp2::zero()); });
}

// `yes` where `which`, else `no`.
BF_INLINE Gt select(const Group &group, bool which, const Gt &yes, const Gt &no) {
    return each_lane(group, [&](int slot, int) { return fp2::select(which, yes.own[slot], no.own[slot]); });
}

// a^(p^6). Cyclotomic: the inverse.
BF_INLINE Gt conjugate(const Group &group, const Gt &a) {
    return each_lane(group, [&](int slot, int lane) {
        return fp2::select(lane % 2 == 1, fp2::neg(a.own[slot]), a.own[slot]);
    });
}

// The conjugate where `which`.
BF_INLINE Gt conjugate_if(const Group &group, bool which, const Gt &a) {
    return each_lane(group, [&](int slot, int lane) {
        return fp2::select(which && lane % 2 == 1, fp2::neg(a.own[slot]), a.own[slot]);
    });
}

BF_INLINE Gt mul_fp(const Group &group, const Gt &a, const Fp &b) {
    return each_lane(group, [&](int slot, int) { return fp2::mul_fp(a.own[slot], b); });
}

// Which coefficients i and j make up that of w^k: i + j = k, or k + 6 where `wraps`.
//
// Of an odd k there are three pairs of different i and j, turns 0 to 2. Of an even k there are two, turns 1 and 2, and two
// squares: that of k/2, in turn 0 as a pair with itself, and that of k/2 + 3.
struct Pair {
    int i, j;
    bool wraps;
};

BF_INLINE Pair pair(int k, int turn) {
    Pair r;
    r.i = (k + 1) / 2 + turn;
    r.j = k / 2 - turn;
    r.wraps = r.j < 0;
    r.j += r.wraps ? COEFFICIENTS : 0;
    return r;
}

// ξ times what lanes hold.
BF_INLINE Gt mul_by_xi(const Group &group, const Gt &a) {
    return each_lane(group, [&](int slot, int) { return fp2::mul_by_xi(a.own[slot]); });
}

// From v_i = a_i·b_i in lane i: what a sum of (a_i + a_j)(b_i + b_j) over the turns has too much. v_i + v_j for each pair;
// of an even k the pair of k/2 with itself has v_(k/2) too much besides, and the square of k/2 + 3 is missing.
BF_INLINE Gt surplus(const Group &group, const Gt &products) {
    Published<Fp2> v = publish<0>(group, products), xi_v = publish<1>(group, mul_by_xi(group, products));
    Gt sum = each_lane(group, [&](int, int k) {
        Fp2 square = fp2::sub(exchange(group, v, k / 2), exchange(group, xi_v, k / 2 + 3));
        return fp2::select(k % 2 == 0, square, fp2::zero());
    });
    BF_ROLL
    for (int turn = 0; turn < 3; ++turn) {
        sum = each_lane(group, [&](int slot, int k) {
            Pair at = pair(k, turn);
            const Published<Fp2> &from = at.wraps ? xi_v : v;
            Fp2 part = fp2::add(exchange(group, from, at.i), exchange(group, from, at.j));
            return fp2::add(sum.own[slot], part);
        });
    }
    return sum;
}

BF_INLINE Spread<Wide2> no_sum(const Group &group) {
    return each_lane(group, [&](int, int) {
        Wide2 r;
        BF_UNROLL
        for (int i = 0; i < wide::LIMBS; ++i) r.c0.limb[i] = r.c1.limb[i] = 0;
        return r;
    });
}

BF_INLINE Gt reduce(const Group &group, const Spread<Wide2> &sum) {
    return each_lane(group, [&](int slot, int) { return fp2::reduce(sum.own[slot]); });
}

BF_INLINE Gt sub(const Group &group, const Gt &a, const Gt &b) {
    return each_lane(group, [&](int slot, int) { return fp2::sub(a.own[slot], b.own[slot]); });
}

// left·right: four products in F_p2 a lane, three of them in one sum (c1 below 6p²).
BF_CALL Gt mul(Group group, Gt left, Gt right) {
    Published<Fp2> a = publish<0>(group, left), b = publish<1>(group, right);
    Published<Fp2> xi_b = publish<2>(group, mul_by_xi(group, right));
    Spread<Wide2> sum = no_sum(group);
    BF_ROLL
    for (int turn = 0; turn < 3; ++turn) {
        sum = each_lane(group, [&](int slot, int k) {
            Pair at = pair(k, turn);
            const Published<Fp2> &from = at.wraps ? xi_b : b;
            Fp2 x = fp2::add(exchange(group, a, at.i), exchange(group, a, at.j));
            Fp2 y = fp2::add(exchange(group, from, at.i), exchange(group, from, at.j));
            Wide2 r = sum.own[slot];
            fp2::accumulate(r, x, y);
            return r;
        });
    }
    Gt v = each_lane(group, [&](int, int k) { return fp2::mul(exchange(group, a, k), exchange(group, b, k)); });
    return sub(group, reduce(group, sum), surplus(group, v));
}

// base²: four squarings in F_p2 a lane. At most two of the three in one sum wrap: c1 is below 3p² + 3p² + 2p².
BF_CALL Gt square(Group group, Gt base) {
    Published<Fp2> a = publish<0>(group, base);
    Spread<Wide2> sum = no_sum(group);
    BF_ROLL
    for (int turn = 0; turn < 3; ++turn) {
        sum = each_lane(group, [&](int slot, int k) {
            Pair at = pair(k, turn);
            Fp2 x = fp2::add(exchange(group, a, at.i), exchange(group, a, at.j));
            Wide2 r = sum.own[slot];
            fp2::accumulate_square(r, x, at.wraps);
            return r;
        });
    }
    Gt v = each_lane(group, [&](int, int k) { return fp2::square(exchange(group, a, k)); });
    return sub(group, reduce(group, sum), surplus(group, v));
}

// value·(l_0 + l_2·w² + l_3·w³), l_3 in F_p; every lane holds l_0 and l_2. Two and a half products in F_p2 a lane, in one sum
// (c1 below 5p²).
BF_CALL Gt mul_line(Group group, Gt value, Spread<Fp2> l_0, Spread<Fp2> l_2, Fp l_3) {
    Published<Fp2> f = publish<0>(group, value);
    Spread<Wide2> sum =
        each_lane(group, [&](int slot, int k) { return fp2::mul_wide(exchange(group, f, k), l_0.own[slot]); });
    sum = each_lane(group, [&](int slot, int k) {
        Fp2 x = exchange(group, f, (k + 4) % 6);
        Wide2 r = sum.own[slot];
        fp2::accumulate(r, fp2::select(k < 2, fp2::mul_by_xi(x), x), l_2.own[slot]);
        return r;
    });
    sum = each_lane(group, [&](int slot, int k) {
        Fp2 x = exchange(group, f, (k + 3) % 6);
        Wide2 r = sum.own[slot];
        fp2::accumulate_fp(r, fp2::select(k < 3, fp2::mul_by_xi(x), x), l_3);
        return r;
    });
    return reduce(group, sum);
}

} // namespace gt
} // namespace blindfold
