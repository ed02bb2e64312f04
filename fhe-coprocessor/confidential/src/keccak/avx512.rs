//! Keccak-f\[1600\] (FIPS 202, section 3) on eight states at once: word i of all eight in one vector.

use std::arch::x86_64::{
    __m512i, _mm512_rol_epi64, _mm512_set_epi64, _mm512_set1_epi64, _mm512_setzero_si512,
    _mm512_storeu_epi64, _mm512_ternarylogic_epi64, _mm512_xor_si512,
};

use alloy_primitives::B256;

use super::LANES;

const WORDS: usize = 25;
/// Bytes and words of a block.
const RATE: usize = 136;
const RATE_WORDS: usize = RATE / 8;
const ROUNDS: usize = 24;

/// Truth tables of x ⊕ y ⊕ z and of x ⊕ (¬y ∧ z).
const XOR: i32 = 0x96;
const CHI: i32 = 0xd2;

/// Constants of ι: the output of the linear feedback shift register of FIPS 202, algorithm 5, at bits 2^j − 1.
const ROUND_CONSTANTS: [u64; ROUNDS] = round_constants();

const fn round_constants() -> [u64; ROUNDS] {
    let mut constants = [0; ROUNDS];
    let mut register = 1u8;
    let mut round = 0;
    while round < ROUNDS {
        let mut j = 0;
        while j < 7 {
            if register & 1 == 1 {
                constants[round] |= 1 << ((1u32 << j) - 1);
            }
            // x^8 + x^6 + x^5 + x^4 + 1.
            register = (register << 1) ^ if register >> 7 == 1 { 0x71 } else { 0 };
            j += 1;
        }
        round += 1;
    }
    constants
}

/// Whether this processor runs [`keccak256`].
pub(super) fn available() -> bool {
    std::arch::is_x86_feature_detected!("avx512f")
}

/// keccak256 of eight messages of one length.
///
/// # Panics
/// Where the lengths differ, and where the processor lacks AVX-512.
pub(super) fn keccak256(messages: &[&[u8]; LANES]) -> [B256; LANES] {
    assert!(available() && messages.iter().all(|message| message.len() == messages[0].len()));
    // SAFETY: the processor has the features.
    unsafe { absorb(messages) }
}

#[target_feature(enable = "avx512f")]
fn absorb(messages: &[&[u8]; LANES]) -> [B256; LANES] {
    let mut state = [_mm512_setzero_si512(); WORDS];
    let whole = messages[0].len() / RATE;
    for block in 0..whole {
        mix(&mut state, &messages.map(|message| &message[block * RATE..][..RATE]));
    }
    // Padding: 1, zeros, 1 (the Keccak of Ethereum, without the suffix of SHA-3).
    let last = messages.map(|message| {
        let rest = &message[whole * RATE..];
        let mut last = [0; RATE];
        last[..rest.len()].copy_from_slice(rest);
        last[rest.len()] = 1;
        last[RATE - 1] |= 0x80;
        last
    });
    mix(&mut state, &last.each_ref().map(|last| &last[..]));

    let mut hashes = [B256::ZERO; LANES];
    for (word, vector) in state.iter().take(4).enumerate() {
        let mut lanes = [0i64; LANES];
        // SAFETY: 64 bytes are written, and there are 64.
        unsafe { _mm512_storeu_epi64(lanes.as_mut_ptr(), *vector) };
        for (hash, lane) in hashes.iter_mut().zip(lanes) {
            hash.0[8 * word..][..8].copy_from_slice(&lane.to_le_bytes());
        }
    }
    hashes
}

/// Adds a block of each message to its state, and permutes.
#[target_feature(enable = "avx512f")]
fn mix(state: &mut [__m512i; WORDS], blocks: &[&[u8]; LANES]) {
    for (word, vector) in state.iter_mut().enumerate().take(RATE_WORDS) {
        let [a, b, c, d, e, f, g, h] = blocks.map(|block| {
            let mut bytes = [0; 8];
            bytes.copy_from_slice(&block[8 * word..][..8]);
            i64::from_le_bytes(bytes)
        });
        *vector = _mm512_xor_si512(*vector, _mm512_set_epi64(h, g, f, e, d, c, b, a));
    }
    permute(state);
}

/// Five words of the state after ρ and π, each from its place and turned, then χ. All indices are constants, so that the
/// state stays in registers.
macro_rules! row {
    ($from:ident, $to:ident, $row:literal, $($place:literal << $rotation:literal),*) => {
        let turned = [$(_mm512_rol_epi64::<$rotation>($from[$place])),*];
        $to[$row] = _mm512_ternarylogic_epi64::<CHI>(turned[0], turned[1], turned[2]);
        $to[$row + 1] = _mm512_ternarylogic_epi64::<CHI>(turned[1], turned[2], turned[3]);
        $to[$row + 2] = _mm512_ternarylogic_epi64::<CHI>(turned[2], turned[3], turned[4]);
        $to[$row + 3] = _mm512_ternarylogic_epi64::<CHI>(turned[3], turned[4], turned[0]);
        $to[$row + 4] = _mm512_ternarylogic_epi64::<CHI>(turned[4], turned[0], turned[1]);
    };
}

/// θ on one column: adds the parities of its neighbours, that of the right one turned.
macro_rules! column {
    ($a:ident, $left:expr, $right:expr, $($place:literal),*) => {
        let right = _mm512_rol_epi64::<1>($right);
        $($a[$place] = _mm512_ternarylogic_epi64::<XOR>($a[$place], $left, right);)*
    };
}

macro_rules! parity {
    ($a:ident, $x:literal) => {
        _mm512_ternarylogic_epi64::<XOR>(
            _mm512_ternarylogic_epi64::<XOR>($a[$x], $a[$x + 5], $a[$x + 10]),
            $a[$x + 15],
            $a[$x + 20],
        )
    };
}

#[target_feature(enable = "avx512f")]
fn permute(state: &mut [__m512i; WORDS]) {
    let mut a = *state;
    let mut b = a;
    for constant in ROUND_CONSTANTS {
        let parity = [parity!(a, 0), parity!(a, 1), parity!(a, 2), parity!(a, 3), parity!(a, 4)];
        column!(a, parity[4], parity[1], 0, 5, 10, 15, 20);
        column!(a, parity[0], parity[2], 1, 6, 11, 16, 21);
        column!(a, parity[1], parity[3], 2, 7, 12, 17, 22);
        column!(a, parity[2], parity[4], 3, 8, 13, 18, 23);
        column!(a, parity[3], parity[0], 4, 9, 14, 19, 24);
        row!(a, b, 0, 0 << 0, 6 << 44, 12 << 43, 18 << 21, 24 << 14);
        row!(a, b, 5, 3 << 28, 9 << 20, 10 << 3, 16 << 45, 22 << 61);
        row!(a, b, 10, 1 << 1, 7 << 6, 13 << 25, 19 << 8, 20 << 18);
        row!(a, b, 15, 4 << 27, 5 << 36, 11 << 10, 17 << 15, 23 << 56);
        row!(a, b, 20, 2 << 62, 8 << 55, 14 << 39, 15 << 41, 21 << 2);
        b[0] = _mm512_xor_si512(b[0], _mm512_set1_epi64(constant as i64));
        a = b;
    }
    *state = a;
}
