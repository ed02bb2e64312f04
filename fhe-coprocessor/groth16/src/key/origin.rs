//! Where a key comes from.

/// What is counted of one phase of a ceremony.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PhaseOrigin {
    /// Contributions, a beacon not counted.
    pub contributions: u32,
    /// Whether a public beacon closed the transcript.
    pub beacon: bool,
    /// Hash of the transcript, which names what the phase began with.
    pub transcript: [u8; 32],
}

/// Where a key comes from; part of its encoding and of its hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// Made from a seed by one party, who can forge proofs. The encoding begins with the word `development`.
    Development,
    /// Made by a ceremony: nobody can forge if one contributor of each phase was honest.
    Ceremony {
        /// Phase 1: τ, α, β.
        powers: PhaseOrigin,
        /// Phase 2: δ, σ. Its transcript names phase 1 and the circuit.
        keys: PhaseOrigin,
    },
}

/// Why a key is not one for production; the operator takes the key of the ceremony.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum OriginError {
    /// The key was made from a seed.
    #[error("this is a development key: whoever made it can forge proofs; use a key from a ceremony")]
    Development,
    /// From a ceremony with too few contributors.
    #[error("phase {phase} of the key's ceremony has {got} contributions, {want} are required")]
    Contributions {
        /// The phase of the set-up, 1 or 2.
        phase: u8,
        /// How many contributions were made.
        got: u32,
        /// How many contributions are required.
        want: u32,
    },
    /// From a ceremony that no beacon closed.
    #[error("phase {phase} of the key's ceremony was not closed by a beacon")]
    NoBeacon {
        /// The phase of the set-up, 1 or 2.
        phase: u8,
    },
}

const PHASE_BYTES: usize = 4 + 1 + 32;
pub(crate) const ORIGIN_BYTES: usize = 16 + 2 * PHASE_BYTES;
const DEVELOPMENT: &[u8; 16] = b"development\0\0\0\0\0";
const CEREMONY: &[u8; 16] = b"ceremony\0\0\0\0\0\0\0\0";

impl PhaseOrigin {
    /// Refuses a phase with fewer contributions, with none at all, or without a beacon.
    ///
    /// # Errors
    /// [`OriginError::Contributions`], [`OriginError::NoBeacon`].
    pub fn require(&self, phase: u8, least_contributions: u32) -> Result<(), OriginError> {
        let want = least_contributions.max(1);
        if self.contributions < want {
            return Err(OriginError::Contributions { phase, got: self.contributions, want });
        }
        if self.beacon { Ok(()) } else { Err(OriginError::NoBeacon { phase }) }
    }

    /// contributions (4) ‖ beacon (1) ‖ hash of the transcript (32).
    pub(crate) fn encode(&self) -> [u8; PHASE_BYTES] {
        let mut out = [0; PHASE_BYTES];
        out[..4].copy_from_slice(&self.contributions.to_be_bytes());
        out[4] = u8::from(self.beacon);
        out[5..].copy_from_slice(&self.transcript);
        out
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let (contributions, rest) = bytes.split_first_chunk::<4>()?;
        let (beacon, transcript) = rest.split_first()?;
        Some(Self {
            contributions: u32::from_be_bytes(*contributions),
            beacon: *beacon == 1,
            transcript: transcript.try_into().ok()?,
        })
    }
}

impl Origin {
    /// Refuses what production settings must refuse: each phase needs so many contributions, at least one, and a beacon at
    /// its end. A key whose phase 1 has none is made of τ = α = β = 1, and anyone can forge under it.
    ///
    /// # Errors
    /// [`OriginError`] for a development key, a phase with fewer contributions, or one without a beacon.
    pub fn require_ceremony(&self, least_contributions: u32) -> Result<(), OriginError> {
        match self {
            Self::Development => Err(OriginError::Development),
            Self::Ceremony { powers, keys } => {
                powers.require(1, least_contributions)?;
                keys.require(2, least_contributions)
            }
        }
    }

    pub(crate) fn encode(&self) -> [u8; ORIGIN_BYTES] {
        let mut out = [0; ORIGIN_BYTES];
        match self {
            Self::Development => out[..16].copy_from_slice(DEVELOPMENT),
            Self::Ceremony { powers, keys } => {
                out[..16].copy_from_slice(CEREMONY);
                out[16..16 + PHASE_BYTES].copy_from_slice(&powers.encode());
                out[16 + PHASE_BYTES..].copy_from_slice(&keys.encode());
            }
        }
        out
    }

    /// The origin with exactly this encoding.
    pub(crate) fn decode(bytes: &[u8; ORIGIN_BYTES]) -> Option<Self> {
        let (powers, keys) = bytes[16..].split_at(PHASE_BYTES);
        let (powers, keys) = (PhaseOrigin::decode(powers)?, PhaseOrigin::decode(keys)?);
        let known = [Self::Development, Self::Ceremony { powers, keys }];
        known.into_iter().find(|origin| origin.encode() == *bytes)
    }
}
