//! Where a key comes from.

/// Where a key comes from; part of its encoding and of its hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// Made from a seed by one party, who can forge proofs. The encoding begins with the word `development`.
    Development,
    /// Made by a ceremony: nobody can forge if one contributor of each phase was honest.
    Ceremony {
        /// Contributions to phase 2, a beacon not counted.
        contributions: u32,
        /// Whether a public beacon closed the transcript.
        beacon: bool,
        /// Hash of the phase-2 transcript, which names phase 1 and the circuit.
        transcript: [u8; 32],
    },
}

/// Why a key is not one for production; the operator takes the key of the ceremony.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum OriginError {
    /// From a seed.
    #[error("this is a development key: whoever made it can forge proofs; use a key from a ceremony")]
    Development,
    /// From a ceremony with too few contributors.
    #[error("the key's ceremony has {got} contributions, {want} are required")]
    Contributions {
        /// Contributions made.
        got: u32,
        /// Contributions required.
        want: u32,
    },
    /// From a ceremony that no beacon closed.
    #[error("the key's ceremony was not closed by a beacon")]
    NoBeacon,
}

pub(crate) const ORIGIN_BYTES: usize = 16 + 4 + 1 + 32;
const DEVELOPMENT: &[u8; 16] = b"development\0\0\0\0\0";
const CEREMONY: &[u8; 16] = b"ceremony\0\0\0\0\0\0\0\0";

impl Origin {
    /// Refuses what production settings must refuse.
    ///
    /// # Errors
    /// [`OriginError`] for a development key, a transcript with fewer contributions, or one without a beacon.
    pub fn require_ceremony(&self, least_contributions: u32) -> Result<(), OriginError> {
        match *self {
            Self::Development => Err(OriginError::Development),
            Self::Ceremony { contributions, .. } if contributions < least_contributions => {
                Err(OriginError::Contributions { got: contributions, want: least_contributions })
            }
            Self::Ceremony { beacon: false, .. } => Err(OriginError::NoBeacon),
            Self::Ceremony { .. } => Ok(()),
        }
    }

    pub(crate) fn encode(&self) -> [u8; ORIGIN_BYTES] {
        let mut out = [0; ORIGIN_BYTES];
        match self {
            Self::Development => out[..16].copy_from_slice(DEVELOPMENT),
            Self::Ceremony { contributions, beacon, transcript } => {
                out[..16].copy_from_slice(CEREMONY);
                out[16..20].copy_from_slice(&contributions.to_be_bytes());
                out[20] = u8::from(*beacon);
                out[21..].copy_from_slice(transcript);
            }
        }
        out
    }

    /// The origin with exactly this encoding.
    pub(crate) fn decode(bytes: &[u8; ORIGIN_BYTES]) -> Option<Self> {
        let mut contributions = [0; 4];
        contributions.copy_from_slice(&bytes[16..20]);
        let mut transcript = [0; 32];
        transcript.copy_from_slice(&bytes[21..]);
        let ceremony = Self::Ceremony {
            contributions: u32::from_be_bytes(contributions),
            beacon: bytes[20] == 1,
            transcript,
        };
        [Self::Development, ceremony].into_iter().find(|origin| origin.encode() == *bytes)
    }
}
