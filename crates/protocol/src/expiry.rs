//! Until when an envelope is valid: up to a batch number, and within one generation of headers.

/// Low bits of an expiry that are a batch number; the bits above are the generation.
const NUMBER_BITS: u32 = 48;

/// The `expiry` of an envelope's header, one `u64`: the generation in its top 16 bits, the batch number in the others.
/// Rule G-2.
///
/// The chain's **generation** counts the headers that L1 made, modulo 65,536. A header that L1 made may stand in the
/// place of batches that were certified and opened, so envelopes of the generations before it are never accepted again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Expiry(u64);

impl Expiry {
    /// The last batch number that an expiry can name.
    pub const MAX_NUMBER: u64 = (1 << NUMBER_BITS) - 1;

    /// An expiry at `number` in `generation`. A number above [`Expiry::MAX_NUMBER`] counts as that.
    pub const fn new(generation: u16, number: u64) -> Self {
        let number = if number > Self::MAX_NUMBER { Self::MAX_NUMBER } else { number };
        Self((generation as u64) << NUMBER_BITS | number)
    }

    /// The expiry with this encoding; every `u64` is one.
    pub const fn from_u64(encoded: u64) -> Self {
        Self(encoded)
    }

    /// As it is encoded and hashed.
    pub const fn to_u64(self) -> u64 {
        self.0
    }

    /// The generation whose batches alone may hold the envelope.
    pub const fn generation(self) -> u16 {
        (self.0 >> NUMBER_BITS) as u16
    }

    /// The last batch number that may hold the envelope.
    pub const fn number(self) -> u64 {
        self.0 & Self::MAX_NUMBER
    }

    /// Whether a chain of this generation is past that of the envelope, by less than half of all generations: none of
    /// its batches from here on accepts it.
    pub const fn is_before(self, generation: u16) -> bool {
        let passed = generation.wrapping_sub(self.generation());
        passed != 0 && passed <= u16::MAX / 2
    }
}
