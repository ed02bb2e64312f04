//! Memory of the device: which of this process's memory it is, and what blocks and threads have of it.

use std::collections::BTreeMap;

use crate::fault::Wrong;
use crate::lanes::{LANES, Words};

/// Bytes around every allocation that belong to none.
pub(crate) const MARGIN: u64 = 256;
/// What is in memory that nothing has written.
pub(crate) const POISON: u8 = 0xa5;
/// Local memory of a thread.
const LOCAL_WORDS: usize = 1 << 14;

/// What is known of an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Known {
    /// In an allocation, from and up to.
    Allocated(u64, u64),
    /// Beside one, or in one that was freed.
    Forbidden,
    /// Memory that this process has otherwise, if any.
    Elsewhere,
}

/// The allocations in global memory.
#[derive(Debug, Default)]
pub(crate) struct Allocations(BTreeMap<u64, (u64, bool)>);

impl Allocations {
    pub(crate) fn add(&mut self, address: u64, bytes: u64) {
        // What was freed there before is gone.
        let from = address.saturating_sub(2 * MARGIN);
        let overlaps: Vec<u64> = self
            .0
            .range(..address + bytes + MARGIN)
            .rev()
            .take_while(|(old, (length, _))| **old + length + MARGIN > from)
            .filter(|(_, (_, live))| !live)
            .map(|(old, _)| *old)
            .collect();
        overlaps.iter().for_each(|old| {
            self.0.remove(old);
        });
        self.0.insert(address, (bytes, true));
    }

    /// Whether it was allocated and is not yet freed.
    pub(crate) fn free(&mut self, address: u64) -> bool {
        match self.0.get_mut(&address) {
            Some((_, live)) => std::mem::replace(live, false),
            None => false,
        }
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.0.values().filter(|(_, live)| *live).map(|(bytes, _)| bytes).sum()
    }

    pub(crate) fn of(&self, address: u64) -> Known {
        if let Some((start, (bytes, live))) = self.0.range(..=address).next_back() {
            if address < start + bytes {
                return if *live { Known::Allocated(*start, start + bytes) } else { Known::Forbidden };
            }
            if address < start + bytes + MARGIN {
                return Known::Forbidden;
            }
        }
        match self.0.range(address..).next() {
            Some((start, _)) if address + MARGIN >= *start => Known::Forbidden,
            _ => Known::Elsewhere,
        }
    }
}

/// Local memory of a warp: words of all lanes side by side, since lanes mostly use the same addresses.
pub(crate) struct Local {
    words: Vec<Words>,
    /// Bytes in use by the functions that are being executed.
    top: u32,
}

impl Local {
    pub(crate) fn new() -> Self {
        Self { words: vec![Words::of(0); LOCAL_WORDS], top: 0 }
    }

    /// A frame for a function; returns where the last one's began.
    pub(crate) fn enter(&mut self, bytes: u32) -> Result<u32, Wrong> {
        let before = self.top;
        let start = before.next_multiple_of(16) as usize / 4;
        let end = start + bytes.div_ceil(4) as usize;
        let frame = self.words.get_mut(start..end).ok_or(Wrong::Stack)?;
        frame.fill(Words::of(u32::from_ne_bytes([POISON; 4])));
        self.top = end as u32 * 4;
        Ok(before)
    }

    /// Where the frame of the function that was entered last begins, given its bytes.
    pub(crate) fn base(&self, bytes: u32) -> u64 {
        u64::from(self.top - bytes.next_multiple_of(4))
    }

    pub(crate) fn leave(&mut self, before: u32) {
        self.top = before;
    }

    fn outside(&self, lane: usize, address: u64, bytes: usize) -> Result<(), Wrong> {
        if address.checked_add(bytes as u64).is_some_and(|end| end <= u64::from(self.top)) {
            return Ok(());
        }
        Err(Wrong::Outside { lane, bytes, space: "local", address })
    }

    /// A whole word at one address for all lanes.
    pub(crate) fn word(&mut self, address: u64) -> Result<&mut Words, Wrong> {
        self.outside(0, address, 4)?;
        Ok(&mut self.words[address as usize / 4])
    }

    /// Up to eight aligned bytes.
    pub(crate) fn read(&self, lane: usize, address: u64, bytes: usize) -> Result<u64, Wrong> {
        self.outside(lane, address, bytes)?;
        let word = address as usize / 4;
        let low = u64::from(self.words[word].0[lane]);
        Ok(match bytes {
            8 => low | u64::from(self.words[word + 1].0[lane]) << 32,
            4 => low,
            _ => low >> (address % 4 * 8) & ((1 << (8 * bytes)) - 1),
        })
    }

    pub(crate) fn write(&mut self, lane: usize, address: u64, bytes: usize, value: u64) -> Result<(), Wrong> {
        self.outside(lane, address, bytes)?;
        let word = address as usize / 4;
        match bytes {
            8 => {
                self.words[word].0[lane] = value as u32;
                self.words[word + 1].0[lane] = (value >> 32) as u32;
            }
            4 => self.words[word].0[lane] = value as u32,
            _ => {
                let shift = address % 4 * 8;
                let mask = ((1u32 << (8 * bytes)) - 1) << shift;
                let at = &mut self.words[word].0[lane];
                *at = *at & !mask | (value as u32) << shift & mask;
            }
        }
        Ok(())
    }
}

/// Up to eight bytes of a slice.
#[inline(always)]
pub(crate) fn read(from: &[u8]) -> u64 {
    if let Ok(word) = from.try_into() {
        return u64::from(u32::from_le_bytes(word));
    }
    let mut bytes = [0; 8];
    bytes[..from.len()].copy_from_slice(from);
    u64::from_le_bytes(bytes)
}

const _: () = assert!(LANES * 4 == size_of::<Words>(), "words of all lanes side by side");
