//! Keccak-f\[1600\] (FIPS 202, section 3) on eight states at once: word i of all eight in one vector.

use std::arch::x86_64::{
    __m512i, _mm512_loadu_epi64, _mm512_rolv_epi64, _mm512_set1_epi64, _mm512_setzero_si512,
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

/// Rotations of ρ and places of π for word x + 5y: it goes to y + 5·(2x + 3y).
const PLACES: [(usize, u64); WORDS] = places();

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

const fn places() -> [(usize, u64); WORDS] {
    let mut places = [(0, 0); WORDS];
    let (mut x, mut y, mut step) = (1, 0, 0);
    while step < 24 {
        let rotation = ((step + 1) * (step + 2) / 2) % 64;
        places[x + 5 * y] = (y + 5 * ((2 * x + 3 * y) % 5), rotation);
        (x, y) = (y, (2 * x + 3 * y) % 5);
        step += 1;
    }
    places
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
        let mut lanes = [0i64; LANES];
        for (lane, block) in lanes.iter_mut().zip(blocks) {
            let mut bytes = [0; 8];
            bytes.copy_from_slice(&block[8 * word..][..8]);
            *lane = i64::from_le_bytes(bytes);
        }
        // SAFETY: 64 bytes are read, and there are 64.
        *vector = _mm512_xor_si512(*vector, unsafe { _mm512_loadu_epi64(lanes.as_ptr()) });
    }
    permute(state);
}

#[target_feature(enable = "avx512f")]
fn permute(state: &mut [__m512i; WORDS]) {
    let xor3 = |x, y, z| _mm512_ternarylogic_epi64::<XOR>(x, y, z);
    let rotate = |x, by: u64| _mm512_rolv_epi64(x, _mm512_set1_epi64(by as i64));
    let mut a = *state;
    for constant in ROUND_CONSTANTS {
        // θ
        let mut parity = [_mm512_setzero_si512(); 5];
        for x in 0..5 {
            parity[x] = xor3(xor3(a[x], a[x + 5], a[x + 10]), a[x + 15], a[x + 20]);
        }
        let mut turned = [_mm512_setzero_si512(); 5];
        for x in 0..5 {
            turned[x] = rotate(parity[x], 1);
        }
        // θ's last step, ρ and π
        let mut b = [_mm512_setzero_si512(); WORDS];
        for (i, (place, rotation)) in PLACES.into_iter().enumerate() {
            b[place] = rotate(xor3(a[i], parity[(i + 4) % 5], turned[(i + 1) % 5]), rotation);
        }
        // χ
        for y in 0..5 {
            for x in 0..5 {
                let row = 5 * y;
                a[row + x] =
                    _mm512_ternarylogic_epi64::<CHI>(b[row + x], b[row + (x + 1) % 5], b[row + (x + 2) % 5]);
            }
        }
        // ι
        a[0] = _mm512_xor_si512(a[0], _mm512_set1_epi64(constant as i64));
    }
    *state = a;
}
