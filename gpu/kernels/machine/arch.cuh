// What differs between a GPU and the processor that tests the same code.
//
// Every function of these headers compiles twice: by nvcc to device code, and by any C++17 compiler to host code. The
// host build emulates three things: the carry flag (this file), the exchange between the lanes of a warp (lanes.cuh) and
// the grid (launch.cuh). Nothing else is written twice.
#pragma once

#include <cstddef>
#include <cstdint>

#if defined(__CUDA_ARCH__)
#define BF_ON_DEVICE 1
#else
#define BF_ON_DEVICE 0
#endif

#if defined(__CUDACC__)
#define BF_INLINE __host__ __device__ __forceinline__
// A call that the compiler must not inline: whole towers inlined take nvcc minutes and spill. Arguments go by value, in
// registers; a reference would put them in local memory.
#define BF_CALL __host__ __device__ __noinline__
#else
#define BF_INLINE inline
#define BF_CALL __attribute__((noinline)) inline
#endif

#if BF_ON_DEVICE
#define BF_UNROLL _Pragma("unroll")
// A loop whose body is large enough that one copy must do.
#define BF_ROLL _Pragma("unroll 1")
#else
#define BF_UNROLL
#define BF_ROLL
#endif

namespace blindfold {

// One-instruction arithmetic with the carry flag, named after the PTX instructions. A chain starts with an instruction
// that sets the flag (`…_cc` without `c` before it) and uses it in the next ones; additions and subtractions do not mix
// in a chain. On the host the flag is a variable.
namespace ptx {

#if BF_ON_DEVICE

#define BF_PTX3(name, instruction)                                                                                     \
    BF_INLINE uint32_t name(uint32_t a, uint32_t b, uint32_t c) {                                                      \
        uint32_t r;                                                                                                    \
        asm volatile(instruction " %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(c));                               \
        return r;                                                                                                      \
    }
#define BF_PTX2(name, instruction)                                                                                     \
    BF_INLINE uint32_t name(uint32_t a, uint32_t b) {                                                                  \
        uint32_t r;                                                                                                    \
        asm volatile(instruction " %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));                                           \
        return r;                                                                                                      \
    }

BF_PTX3(mad_lo_cc, "mad.lo.cc.u32")
BF_PTX3(madc_lo_cc, "madc.lo.cc.u32")
BF_PTX3(mad_hi_cc, "mad.hi.cc.u32")
BF_PTX3(madc_hi_cc, "madc.hi.cc.u32")
BF_PTX3(madc_lo, "madc.lo.u32")
BF_PTX3(madc_hi, "madc.hi.u32")
BF_PTX2(mul_lo, "mul.lo.u32")
BF_PTX2(mul_hi, "mul.hi.u32")
BF_PTX2(add_cc, "add.cc.u32")
BF_PTX2(addc_cc, "addc.cc.u32")
BF_PTX2(addc, "addc.u32")
BF_PTX2(sub_cc, "sub.cc.u32")
BF_PTX2(subc_cc, "subc.cc.u32")
BF_PTX2(subc, "subc.u32")

#undef BF_PTX3
#undef BF_PTX2

#else

// The carry, or borrow, flag.
inline uint32_t &flag() {
    static thread_local uint32_t value = 0;
    return value;
}

inline uint32_t emulated_add(uint32_t a, uint32_t b, uint32_t carry_in, bool sets) {
    uint64_t sum = uint64_t(a) + b + carry_in;
    if (sets) flag() = uint32_t(sum >> 32);
    return uint32_t(sum);
}

inline uint32_t emulated_sub(uint32_t a, uint32_t b, uint32_t borrow_in, bool sets) {
    uint64_t difference = uint64_t(a) - b - borrow_in;
    if (sets) flag() = uint32_t(difference >> 32) & 1;
    return uint32_t(difference);
}

inline uint32_t mul_lo(uint32_t a, uint32_t b) { return a * b; }
inline uint32_t mul_hi(uint32_t a, uint32_t b) { return uint32_t((uint64_t(a) * b) >> 32); }
inline uint32_t mad_lo_cc(uint32_t a, uint32_t b, uint32_t c) { return emulated_add(mul_lo(a, b), c, 0, true); }
inline uint32_t madc_lo_cc(uint32_t a, uint32_t b, uint32_t c) { return emulated_add(mul_lo(a, b), c, flag(), true); }
inline uint32_t mad_hi_cc(uint32_t a, uint32_t b, uint32_t c) { return emulated_add(mul_hi(a, b), c, 0, true); }
inline uint32_t madc_hi_cc(uint32_t a, uint32_t b, uint32_t c) { return emulated_add(mul_hi(a, b), c, flag(), true); }
inline uint32_t madc_lo(uint32_t a, uint32_t b, uint32_t c) { return emulated_add(mul_lo(a, b), c, flag(), false); }
inline uint32_t madc_hi(uint32_t a, uint32_t b, uint32_t c) { return emulated_add(mul_hi(a, b), c, flag(), false); }
inline uint32_t add_cc(uint32_t a, uint32_t b) { return emulated_add(a, b, 0, true); }
inline uint32_t addc_cc(uint32_t a, uint32_t b) { return emulated_add(a, b, flag(), true); }
inline uint32_t addc(uint32_t a, uint32_t b) { return emulated_add(a, b, flag(), false); }
inline uint32_t sub_cc(uint32_t a, uint32_t b) { return emulated_sub(a, b, 0, true); }
inline uint32_t subc_cc(uint32_t a, uint32_t b) { return emulated_sub(a, b, flag(), true); }
inline uint32_t subc(uint32_t a, uint32_t b) { return emulated_sub(a, b, flag(), false); }

#endif

} // namespace ptx
} // namespace blindfold
