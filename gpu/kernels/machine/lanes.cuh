// Groups of lanes of a warp that hold one element together.
//
// An element of F_p12 takes 144 registers; a thread that works on three of them spills. So six lanes hold one element, a
// coefficient in F_p2 each: five elements to a warp, two lanes idle. What the lanes hold is a `Spread<T>`: one T on the
// device, where the other five are in other lanes, and all six on the host. Code that works on spreads is written in
// phases, whose body knows its lane and reads what other lanes had *before* the phase by `exchange`. On the device a
// phase is one turn, on the host six.
// Functions of spreads are written with `each_lane`, whose body cannot see what it makes: no lane can read what another
// makes in the same phase.
//
// All lanes of a warp take part in every exchange, idle ones too: no exchange under a condition that lanes of one warp
// do not share.
#pragma once

#include "arch.cuh"

namespace blindfold {

// Lanes of one group.
constexpr int GROUP_LANES = 6;
// Groups of one warp.
constexpr int WARP_GROUPS = 5;
// Threads of a block: a multiple of the 32 lanes of a warp.
constexpr uint32_t BLOCK_THREADS = 128;

#if BF_ON_DEVICE
constexpr int GROUP_SLOTS = 1;
#else
constexpr int GROUP_SLOTS = GROUP_LANES;
#endif

#define BF_EACH_LANE(slot) for (int slot = 0; slot < ::blindfold::GROUP_SLOTS; ++slot)

// What the lanes of a group hold, one T each.
template <class T> struct Spread {
    T own[GROUP_SLOTS];
};

// Which lane this is.
struct Group {
#if BF_ON_DEVICE
    int first; // lane of the warp that is lane 0 of the group
    int mine;  // 0 … 5; the two idle lanes of a warp repeat lanes 0 and 1 of the last group
    __device__ __forceinline__ int lane(int) const { return mine; }
#else
    // Whether the host visits the lanes from the last to the first: nothing may depend on it.
    bool backwards = false;
    int lane(int slot) const { return slot; }
#endif
};

// One phase: what `body(slot, lane)` returns, in every lane.
template <class Body> BF_INLINE auto each_lane(const Group &group, const Body &body) -> Spread<decltype(body(0, 0))> {
    Spread<decltype(body(0, 0))> result;
#if BF_ON_DEVICE
    result.own[0] = body(0, group.mine);
#else
    for (int turn = 0; turn < GROUP_SLOTS; ++turn) {
        int slot = group.backwards ? GROUP_SLOTS - 1 - turn : turn;
        result.own[slot] = body(slot, group.lane(slot));
    }
#endif
    return result;
}

// What lane `source` of the group holds of `value`; each lane names its own source. T is made of 32-bit words.
template <class T> BF_INLINE T exchange(const Group &group, const Spread<T> &value, int source) {
    static_assert(sizeof(T) % sizeof(uint32_t) == 0, "exchanged word by word");
#if BF_ON_DEVICE
    T result;
    const uint32_t *from = reinterpret_cast<const uint32_t *>(&value.own[0]);
    uint32_t *to = reinterpret_cast<uint32_t *>(&result);
    BF_UNROLL
    for (size_t word = 0; word < sizeof(T) / sizeof(uint32_t); ++word)
        to[word] = __shfl_sync(0xffffffffu, from[word], group.first + source);
    return result;
#else
    (void)group;
    return value.own[source];
#endif
}

// What the lanes of a group hold, where each can read what it needs of the others when it needs it: in shared memory on
// the device. Unlike a spread that is exchanged it takes no registers, and it moves in pieces of 16 bytes.
template <class T> struct Published {
#if BF_ON_DEVICE
    // The padding keeps eight lanes that read 16 bytes each on different banks.
    struct Slot {
        T value;
        uint4 padding;
    };
    const Slot *first;
#else
    Spread<T> value;
#endif
};

// Publishes in one of the places of the kernel; what was published there before is gone. All lanes of the warp take part.
template <int PLACE, class T> BF_INLINE Published<T> publish(const Group &group, const Spread<T> &value) {
    Published<T> r;
#if BF_ON_DEVICE
    __shared__ typename Published<T>::Slot slots[BLOCK_THREADS];
    __syncwarp(); // others have read what was there
    slots[threadIdx.x].value = value.own[0];
    __syncwarp();
    r.first = slots + (threadIdx.x / 32 * 32 + group.first);
#else
    (void)group;
    r.value = value;
#endif
    return r;
}

template <class T> BF_INLINE T exchange(const Group &group, const Published<T> &value, int source) {
    (void)group;
#if BF_ON_DEVICE
    return value.first[source].value;
#else
    return value.value.own[source];
#endif
}

// What the lanes of the warp did to memory before this comes before what they do to it after. Exchanges by registers do not
// order memory.
BF_INLINE void warp_barrier() {
#if BF_ON_DEVICE
    __syncwarp();
#endif
}

// Whether `any` holds in any lane of the warp (on the host: of the group).
BF_INLINE bool warp_any(const Spread<bool> &any) {
#if BF_ON_DEVICE
    return __any_sync(0xffffffffu, any.own[0]) != 0;
#else
    bool result = false;
    BF_EACH_LANE(slot) result = result || any.own[slot];
    return result;
#endif
}

} // namespace blindfold
