// G1 with a point over the six lanes of a group, for launches with fewer points than a device has room for threads.
//
// Lane k holds coordinate k mod 3 of (x : y : z). The formulas are those of complete.cuh; products that do not wait for each
// other are done at once, so that a doubling and an addition last as long as two products instead of eight and twelve.
#pragma once

#include "../machine/lanes.cuh"
#include "g1.cuh"

namespace blindfold {

// A point.
using G1Lanes = Spread<Fp>;

namespace g1_lanes {

// Coordinates of a point in memory.
constexpr int COORDINATES = 3;

BF_INLINE G1Lanes load(const Group &group, const G1 *point) {
    const Fp *coordinates = reinterpret_cast<const Fp *>(point);
    return each_lane(group, [&](int, int lane) { return coordinates[lane % COORDINATES]; });
}

// Writes where `stores`. All lanes of the warp take part.
BF_INLINE void store(const Group &group, G1 *point, const G1Lanes &value, bool stores) {
    Fp *coordinates = reinterpret_cast<Fp *>(point);
    warp_barrier();
    BF_EACH_LANE(slot) {
        if (stores && group.lane(slot) < COORDINATES) coordinates[group.lane(slot)] = value.own[slot];
    }
}

BF_INLINE G1Lanes identity(const Group &group) {
    return each_lane(group, [&](int, int lane) { return fp::select(lane % COORDINATES == 1, fp::one(), fp::zero()); });
}

// `yes` where `which`, else `no`.
BF_INLINE G1Lanes select(const Group &group, bool which, const G1Lanes &yes, const G1Lanes &no) {
    return each_lane(group, [&](int slot, int) { return fp::select(which, yes.own[slot], no.own[slot]); });
}

BF_INLINE G1Lanes negate_where(const Group &group, bool which, const G1Lanes &a) {
    return each_lane(group, [&](int slot, int lane) {
        return fp::select(which && lane % COORDINATES == 1, fp::neg(a.own[slot]), a.own[slot]);
    });
}

// x²·a, x the curve parameter. Only for points of the subgroup.
BF_INLINE G1Lanes times_x_squared(const Group &group, const G1Lanes &a) {
    return each_lane(group, [&](int slot, int lane) {
        int coordinate = lane % COORDINATES;
        Fp other = fp::select(coordinate == 1, fp::neg(a.own[slot]), a.own[slot]);
        return fp::select(coordinate == 0, fp::mul(a.own[slot], g1::beta()), other);
    });
}

// Which of six values each lane takes: hexadecimal digit k from the right is that of lane k.
BF_INLINE int chosen(uint32_t by_lane, int lane) { return int(by_lane >> 4 * lane & 15); }

// The sum of what lanes k and k + 3 hold.
BF_INLINE G1Lanes add_opposite(const Group &group, const Spread<Fp> &products) {
    Published<Fp> published = publish<0>(group, products);
    return each_lane(group, [&](int slot, int lane) {
        return fp::add(products.own[slot], exchange(group, published, (lane + 3) % GROUP_LANES));
    });
}

BF_CALL G1Lanes twice(Group group, G1Lanes a) {
    Published<Fp> point = publish<0>(group, a);
    // xy, yy, 12zz, yz, 8yy, 36zz: the factors of each as multiples by 1, 2, 4 or 6 of coordinates.
    Published<Fp> first = publish<1>(group, each_lane(group, [&](int, int lane) {
        Fp left = exchange(group, point, chosen(0x211210, lane)), right = exchange(group, point, chosen(0x212211, lane));
        Fp two = fp::twice(left), four = fp::twice(two), six = fp::add(four, two);
        left = fp::select(lane == 4, four, fp::select(lane == 2 || lane == 5, six, left));
        right = fp::select(lane == 5, six, fp::select(lane == 2 || lane == 4, two, right));
        return fp::mul(left, right);
    }));
    // With minus = yy − 36zz and plus = yy + 12zz: minus·xy twice, for x; minus·plus and 12zz·8yy, for y; yz·8yy and 0.
    return add_opposite(group, each_lane(group, [&](int, int lane) {
        Fp left = exchange(group, first, chosen(0x521311, lane));
        left = fp::sub(left, fp::select(lane == 2 || lane == 4, fp::zero(), exchange(group, first, 5)));
        Fp right = exchange(group, first, chosen(0x040410, lane));
        right = fp::add(right, fp::select(lane == 1, exchange(group, first, 2), fp::zero()));
        return fp::mul(left, right);
    }));
}

BF_CALL G1Lanes add(Group group, G1Lanes a, G1Lanes b) {
    Published<Fp> of_a = publish<0>(group, a), of_b = publish<1>(group, b);
    // xx, yy, zz; (x + y)(x' + y'), (y + z)(y' + z'), (z + x)(z' + x').
    Published<Fp> first = publish<2>(group, each_lane(group, [&](int slot, int lane) {
        int next = (lane + 1) % COORDINATES;
        Fp left = fp::select(lane < 3, fp::zero(), exchange(group, of_a, next));
        Fp right = fp::select(lane < 3, fp::zero(), exchange(group, of_b, next));
        return fp::mul(fp::add(a.own[slot], left), fp::add(b.own[slot], right));
    }));
    // With xy for x·y' + x'·y and so on: xy, yz, 12xz; 3xx, plus = yy + 12zz, minus = yy − 12zz.
    Published<Fp> second = publish<1>(group, each_lane(group, [&](int, int lane) {
        bool crossed = lane < 3;
        Fp part = exchange(group, first, chosen(0x220543, lane));
        part = fp::sub(part, fp::select(crossed, exchange(group, first, lane % COORDINATES), fp::zero()));
        part = fp::sub(part, fp::select(crossed, exchange(group, first, (lane + 1) % COORDINATES), fp::zero()));
        Fp three = fp::add(fp::twice(part), part), twelve = fp::twice(fp::twice(three));
        part = fp::select(lane < 2, part, fp::select(lane == 3, three, twelve));
        part = fp::select(lane == 5, fp::neg(part), part);
        return fp::add(part, fp::select(lane > 3, exchange(group, first, 1), fp::zero()));
    }));
    // xy·minus − yz·12xz; minus·plus + 12xz·3xx; plus·yz + 3xx·xy.
    return add_opposite(group, each_lane(group, [&](int, int lane) {
        Fp left = exchange(group, second, chosen(0x321450, lane));
        left = fp::select(lane == 3, fp::neg(left), left);
        return fp::mul(left, exchange(group, second, chosen(0x032145, lane)));
    }));
}

// The scalar of that number times the point, which is in the subgroup, in variable time. Costs a doubling for each position
// and an addition for each digit that is not 0 in some group of the warp.
BF_INLINE G1Lanes multiply(const Group &group, const G1Lanes &point, const g1::Digits &recoded, uint32_t scalar) {
    // Of the point, and of x² times it.
    G1Lanes multiples[2][g1::MULTIPLES];
    G1Lanes step = point, next = point;
    if (recoded.odd) step = twice(group, point);
    BF_ROLL
    for (int i = 0; i < g1::MULTIPLES; ++i) {
        if (i > 0) next = add(group, next, step);
        multiples[0][i] = next;
        multiples[1][i] = times_x_squared(group, next);
    }
    const int8_t *digits = recoded.digits + size_t(scalar) * recoded.positions * 2;
    G1Lanes sum = identity(group);
    bool started = false; // the same in all lanes of the warp
    BF_ROLL
    for (uint32_t position = recoded.positions; position-- > 0;) {
        if (started) sum = twice(group, sum);
        BF_ROLL
        for (int half = 0; half < 2; ++half) {
            int digit = digits[2 * position + half];
            if (!warp_any(each_lane(group, [&](int, int) { return digit != 0; }))) continue;
            int magnitude = digit < 0 ? -digit : digit;
            int place = digit == 0 ? 0 : recoded.odd ? magnitude >> 1 : magnitude - 1;
            G1Lanes other = negate_where(group, digit < 0, multiples[half][place]);
            other = select(group, digit == 0, identity(group), other);
            sum = started ? add(group, sum, other) : other;
            started = true;
        }
    }
    return sum;
}

} // namespace g1_lanes
} // namespace blindfold
