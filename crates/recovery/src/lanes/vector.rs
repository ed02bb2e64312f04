//! Eight words of 64 bits, and the only intrinsics that are used.

use core::arch::x86_64::*;

/// Words of one vector.
pub(super) const LANES: usize = 8;
/// The low 52 bits, which products take of their factors.
pub(super) const MASK: u64 = (1 << 52) - 1;

/// Eight words.
pub(super) type Vector = __m512i;

/// Declares functions and methods that run with AVX-512 IFMA enabled: safe to call from each other, `unsafe` to call from
/// where the features are not known to be there.
macro_rules! lanes {
    (impl $type:ident { $($(#[$meta:meta])* $vis:vis fn $name:ident $(<const $generic:ident: $of:ty>)? ($($args:tt)*) $(-> $out:ty)? $body:block)* }) => {
        impl $type { $(
            $(#[$meta])*
            #[target_feature(enable = "avx512f,avx512dq,avx512ifma,bmi2,adx")]
            $vis fn $name $(<const $generic: $of>)? ($($args)*) $(-> $out)? $body
        )* }
    };
    ($($(#[$meta:meta])* $vis:vis fn $name:ident $(<const $generic:ident: $of:ty>)? ($($args:tt)*) $(-> $out:ty)? $body:block)*) => { $(
        $(#[$meta])*
        #[target_feature(enable = "avx512f,avx512dq,avx512ifma,bmi2,adx")]
        $vis fn $name $(<const $generic: $of>)? ($($args)*) $(-> $out)? $body
    )* };
}
pub(super) use lanes;

lanes! {
    #[inline]
    pub(super) fn splat(value: u64) -> Vector {
        _mm512_set1_epi64(value as i64)
    }

    #[inline]
    pub(super) fn zero() -> Vector {
        _mm512_setzero_si512()
    }

    #[inline]
    pub(super) fn load(words: &[u64; LANES]) -> Vector {
        // SAFETY: the pointer is to 64 bytes.
        unsafe { _mm512_loadu_si512(words.as_ptr().cast()) }
    }

    #[inline]
    pub(super) fn store(vector: Vector) -> [u64; LANES] {
        let mut out = [0; LANES];
        // SAFETY: the pointer is to 64 bytes.
        unsafe { _mm512_storeu_si512(out.as_mut_ptr().cast(), vector) };
        out
    }

    #[inline]
    pub(super) fn add(a: Vector, b: Vector) -> Vector {
        _mm512_add_epi64(a, b)
    }

    #[inline]
    pub(super) fn sub(a: Vector, b: Vector) -> Vector {
        _mm512_sub_epi64(a, b)
    }

    /// sum + the low half of a·b; both factors below 2^52.
    #[inline]
    pub(super) fn low(sum: Vector, a: Vector, b: Vector) -> Vector {
        _mm512_madd52lo_epu64(sum, a, b)
    }

    /// sum + the high half of a·b; both factors below 2^52.
    #[inline]
    pub(super) fn high(sum: Vector, a: Vector, b: Vector) -> Vector {
        _mm512_madd52hi_epu64(sum, a, b)
    }

    #[inline]
    pub(super) fn and(a: Vector, b: Vector) -> Vector {
        _mm512_and_si512(a, b)
    }

    #[inline]
    pub(super) fn shift_left<const BITS: u32>(a: Vector) -> Vector {
        _mm512_slli_epi64::<BITS>(a)
    }

    /// Of unsigned words.
    #[inline]
    pub(super) fn shift_right<const BITS: u32>(a: Vector) -> Vector {
        _mm512_srli_epi64::<BITS>(a)
    }

    #[inline]
    pub(super) fn abs(a: Vector) -> Vector {
        _mm512_abs_epi64(a)
    }

    /// a where the mask has a 1, b elsewhere.
    #[inline]
    pub(super) fn select(mask: u8, a: Vector, b: Vector) -> Vector {
        _mm512_mask_mov_epi64(b, mask, a)
    }

    #[inline]
    pub(super) fn equal(a: Vector, b: Vector) -> u8 {
        _mm512_cmpeq_epi64_mask(a, b)
    }

    /// Lanes below 0.
    #[inline]
    pub(super) fn negative(a: Vector) -> u8 {
        _mm512_movepi64_mask(a)
    }

    /// Lanes that are 0.
    #[inline]
    pub(super) fn vanishing(a: Vector) -> u8 {
        _mm512_testn_epi64_mask(a, a)
    }

    /// Transposes 8×8 words.
    #[inline]
    pub(super) fn transpose(r: [Vector; LANES]) -> [Vector; LANES] {
        let pair = |i: usize| {
            (_mm512_unpacklo_epi64(r[i], r[i + 1]), _mm512_unpackhi_epi64(r[i], r[i + 1]))
        };
        let ((a0, a1), (b0, b1), (c0, c1), (d0, d1)) = (pair(0), pair(2), pair(4), pair(6));
        // Each of a…d holds two rows; columns 2k and 2k + 1 sit in 128-bit block k.
        let quad = |x: Vector, y: Vector| {
            (_mm512_shuffle_i64x2::<0x88>(x, y), _mm512_shuffle_i64x2::<0xdd>(x, y))
        };
        let ((p0, p1), (q0, q1)) = (quad(a0, b0), quad(c0, d0));
        let ((s0, s1), (t0, t1)) = (quad(a1, b1), quad(c1, d1));
        let ((o0, o4), (o2, o6)) = (quad(p0, q0), quad(p1, q1));
        let ((o1, o5), (o3, o7)) = (quad(s0, t0), quad(s1, t1));
        [o0, o1, o2, o3, o4, o5, o6, o7]
    }

    /// States that every lane is below 2^bits.
    #[inline]
    pub(super) fn require(what: &str, a: Vector, bits: u32) {
        if cfg!(debug_assertions) {
            let words = store(a);
            assert!(words.iter().all(|word| word >> bits == 0), "{what}: {words:x?} is not below 2^{bits}");
        }
    }
}
