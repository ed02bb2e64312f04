//! Powers of τ that were made elsewhere, with the proof that many people made them.
//!
//! The format is that of Zcash's ceremony for BLS12-381 of 2017/2018 (Bowe, Gabizon, Miers: ePrint 2017/1050): the file
//! `transcript` that `verify.rs` of <https://github.com/ebfull/powersoftau> reads, in which one round follows the other:
//!
//! | | points | bytes |
//! |---|---|---|
//! | \[τⁱ\]₁, i < 2n − 1 | 2n − 1 | 96 each |
//! | \[τⁱ\]₂, i < n | n | 192 each |
//! | \[α·τⁱ\]₁ and \[β·τⁱ\]₁, i < n | 2n | 96 each |
//! | \[β\]₂ | 1 | 192 |
//! | for τ, α and β: \[s\]₁, \[s·x\]₁ with the contributor's factor x | 6 | 96 each |
//! | for τ, α and β: \[s'·x\]₂, \[s'\] being the hash of the two before | 3 | 192 each |
//!
//! Points are uncompressed, as Zcash encodes them; n = 2^21 there. Each round's hash is the BLAKE2b of what its contributor
//! sent (the challenge's hash, the same points compressed, then his nine); a challenge's hash is that of the round
//! before and of its points. The one that `verify.rs` prints last is that of the whole transcript.
//!
//! Checked are all rounds' proofs and the chain of secrets, and of the last round the powers that are kept. Powers that
//! are not kept are hashed only: nothing rests on them. A round that leaves one of its secrets as it was is refused.

use std::io::{self, ErrorKind, Read, Seek, SeekFrom};

use ark_bls12_381::{Bls12_381, Fq, G1Affine, G2Affine};
use ark_ec::AffineRepr;
use ark_ff::{BigInteger, PrimeField};
use ark_serialize::Compress;
use blake2::{Blake2b512, Digest};
use rand_core::CryptoRng;

use super::hash_to_g2::hash_to_g2;
use super::powers::{Imported, same_ratio};
use super::{Powers, PowersCeremony, SetupError};
use crate::points;

const G1_BYTES: usize = 96;
const G2_BYTES: usize = 192;
/// Points hashed at a time.
const CHUNK_POINTS: usize = 1 << 12;
/// Largest n, as a power of two.
const MAX_LOG_SIZE: u8 = 28;
/// In the first byte of a compressed point: that it is one, and that y is the larger root.
const COMPRESSED: u8 = 0x80;
const LARGER: u8 = 0x20;
/// In the first byte of an uncompressed point there is none of these.
const FLAGS: u8 = 0xe0;

/// What is wrong with a round of a transcript.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TranscriptError {
    /// Not an uncompressed point of the group, or the one at infinity.
    #[error("a point is not one of the group, or is the one at infinity")]
    Point,
    /// The zeroth powers are not the generators.
    #[error("the zeroth powers are not the generators")]
    Generators,
    /// A factor is not proved known for the transcript before.
    #[error("the factor of secret {0} is not proved on top of the round before")]
    Knowledge(usize),
    /// A secret is not the one before times the factor.
    #[error("secret {0} is not the last one times the factor that is proved")]
    Secret(usize),
    /// A secret is what it was: its factor is 1.
    #[error("secret {0} is multiplied by 1: this contributes nothing")]
    One(usize),
    /// \[β\]₁ and \[β\]₂ differ.
    #[error("the two points of β differ")]
    Beta,
}

/// Why a transcript is not imported. Fetch it again from where it is published, or look for its real size.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The transcript's file cannot be read.
    #[error("the transcript cannot be read: {0}")]
    Read(#[from] io::Error),
    /// Sizes that make no sense.
    #[error(
        "powers for 2^{log_rows} rows out of a transcript for 2^{log_size}: choose at most as many, and 2^28 at most"
    )]
    Size {
        /// log₂ of the rows that the transcript is for.
        log_size: u8,
        /// log₂ of the rows that were asked for.
        log_rows: u8,
    },
    /// The transcript has no round.
    #[error("the transcript is empty")]
    Empty,
    /// It ends within a round.
    #[error("the transcript ends within round {0}: it is cut short, or of another size")]
    Cut(u32),
    /// A round that does not hold.
    #[error("round {round} of the transcript: {fault}")]
    Round {
        /// Which round it is, from 1.
        round: u32,
        /// What is wrong with the round.
        fault: TranscriptError,
    },
    /// The powers at its end do not hang together.
    #[error("the transcript's last powers: {0}")]
    Powers(#[from] SetupError),
}

/// A transcript to be read.
#[derive(Debug)]
pub struct PowersTranscript<R> {
    reader: R,
    log_size: u8,
}

/// The secrets after a round, as far as the next one is held against them.
#[derive(Clone, Copy)]
struct Secrets {
    one: [G1Affine; 3],
    beta_two: G2Affine,
}

/// A round's first powers, as bytes; [β]₂ is whole.
#[derive(Default)]
struct Kept {
    tau_g1: Vec<u8>,
    tau_g2: Vec<u8>,
    alpha_tau_g1: Vec<u8>,
    beta_tau_g1: Vec<u8>,
    beta_g2: Vec<u8>,
}

impl<R: Read + Seek> PowersTranscript<R> {
    /// The transcript of a ceremony for 2^log_size rows (Zcash's: 21) that begins where the reader stands.
    pub fn new(reader: R, log_size: u8) -> Self {
        Self { reader, log_size }
    }

    /// Checks every round, and keeps the powers for 2^log_rows rows of the last. Tells each round when it is done. For
    /// each, its bytes are read twice and hashed three halves of a time, and twelve pairings; then what
    /// [`Powers::check`] costs.
    ///
    /// # Errors
    /// [`ImportError`].
    pub fn import(
        mut self,
        log_rows: u8,
        rng: &mut (impl CryptoRng + ?Sized),
        done: &mut dyn FnMut(u32),
    ) -> Result<PowersCeremony<Bls12_381>, ImportError> {
        let log_size = self.log_size;
        if !(1..=log_size.min(MAX_LOG_SIZE)).contains(&log_rows) || log_size > MAX_LOG_SIZE {
            return Err(ImportError::Size { log_size, log_rows });
        }
        let mut last: [u8; 64] = Blake2b512::digest([]).into();
        let mut secrets = Secrets { one: [G1Affine::generator(); 3], beta_two: G2Affine::generator() };
        let mut challenge = self.first_challenge(&last);
        let mut kept = None;
        let mut round = 0;
        while !self.at_end()? {
            round += 1;
            let cut = |error: io::Error| match error.kind() {
                ErrorKind::UnexpectedEof => ImportError::Cut(round),
                _ => ImportError::Read(error),
            };
            let at = self.reader.stream_position()?;
            let mut response = Blake2b512::new_with_prefix(challenge);
            let powers = self.compressed(1 << log_rows, &mut response).map_err(|fault| match fault {
                Stop::Read(error) => cut(error),
                Stop::Fault(fault) => ImportError::Round { round, fault },
            })?;
            let mut key = [0; 6 * G1_BYTES + 3 * G2_BYTES];
            self.reader.read_exact(&mut key).map_err(cut)?;
            response.update(key);
            last = response.finalize().into();
            let verified = verified(&secrets, &powers, &key, &challenge);
            secrets = verified.map_err(|fault| ImportError::Round { round, fault })?;
            self.reader.seek(SeekFrom::Start(at))?;
            let mut next = Blake2b512::new_with_prefix(last);
            self.raw(&mut next).map_err(cut)?;
            challenge = next.finalize().into();
            self.reader.seek(SeekFrom::Current(key.len() as i64))?;
            kept = Some(powers);
            done(round);
        }
        let powers = kept.ok_or(ImportError::Empty)?.decoded();
        let powers = powers.map_err(|fault| ImportError::Round { round, fault })?;
        powers.check(rng)?;
        let imported = Imported { hash: last, contributions: round, secrets: secrets.one };
        Ok(PowersCeremony::of(powers, Some(imported)))
    }

    /// Lengths of the lists, and of their points.
    fn lists(&self) -> [(usize, usize); 5] {
        let n = 1usize << self.log_size;
        [(2 * n - 1, G1_BYTES), (n, G2_BYTES), (n, G1_BYTES), (n, G1_BYTES), (1, G2_BYTES)]
    }

    /// The hash of what the first contributor got: no file before it, and secrets that are 1.
    fn first_challenge(&self, blank: &[u8; 64]) -> [u8; 64] {
        let mut hash = Blake2b512::new_with_prefix(blank);
        let (mut one, mut two) = (Vec::new(), Vec::new());
        points::write(&mut one, &G1Affine::generator(), Compress::No);
        points::write(&mut two, &G2Affine::generator(), Compress::No);
        for (count, size) in self.lists() {
            for _ in 0..count {
                hash.update(if size == G1_BYTES { &one } else { &two });
            }
        }
        hash.finalize().into()
    }

    fn at_end(&mut self) -> io::Result<bool> {
        let at = self.reader.stream_position()?;
        let end = self.reader.seek(SeekFrom::End(0))?;
        self.reader.seek(SeekFrom::Start(at))?;
        Ok(at == end)
    }

    /// Hashes a round's powers as their contributor sent them, and keeps those for so many rows.
    fn compressed(&mut self, rows: usize, hash: &mut Blake2b512) -> Result<Kept, Stop> {
        let mut kept = Kept::default();
        let wanted = [2 * rows - 1, rows, rows, rows, 1];
        let into = [
            &mut kept.tau_g1,
            &mut kept.tau_g2,
            &mut kept.alpha_tau_g1,
            &mut kept.beta_tau_g1,
            &mut kept.beta_g2,
        ];
        for (((count, size), wanted), into) in self.lists().into_iter().zip(wanted).zip(into) {
            in_chunks(&mut self.reader, count, size, &mut |bytes| {
                let missing = (wanted * size).saturating_sub(into.len());
                into.extend_from_slice(&bytes[..missing.min(bytes.len())]);
                let mut sent = Vec::with_capacity(bytes.len() / 2);
                bytes.chunks_exact(size).try_for_each(|point| compress(point, &mut sent))?;
                hash.update(&sent);
                Ok(())
            })?;
        }
        Ok(kept)
    }

    /// Hashes a round's powers as they stand here.
    fn raw(&mut self, hash: &mut Blake2b512) -> io::Result<()> {
        for (count, size) in self.lists() {
            let read = in_chunks(&mut self.reader, count, size, &mut |bytes| {
                hash.update(bytes);
                Ok(())
            });
            if let Err(Stop::Read(error)) = read {
                return Err(error);
            }
        }
        Ok(())
    }
}

/// Why reading a round ended early.
enum Stop {
    Read(io::Error),
    Fault(TranscriptError),
}

impl From<TranscriptError> for Stop {
    fn from(fault: TranscriptError) -> Self {
        Self::Fault(fault)
    }
}

/// Reads points, some thousands at a time.
fn in_chunks(
    reader: &mut impl Read,
    count: usize,
    size: usize,
    take: &mut dyn FnMut(&[u8]) -> Result<(), TranscriptError>,
) -> Result<(), Stop> {
    let mut buffer = vec![0; CHUNK_POINTS.min(count) * size];
    let mut left = count * size;
    while left > 0 {
        let chunk = &mut buffer[..left.min(CHUNK_POINTS * size)];
        reader.read_exact(chunk).map_err(Stop::Read)?;
        take(chunk)?;
        left -= chunk.len();
    }
    Ok(())
}

/// Appends the compressed encoding of an uncompressed one: x, and which root y is. Nothing else is looked at.
fn compress(point: &[u8], out: &mut Vec<u8>) -> Result<(), TranscriptError> {
    let (x, y) = point.split_at(point.len() / 2);
    if point[0] & FLAGS != 0 {
        return Err(TranscriptError::Point);
    }
    let at = out.len();
    out.extend_from_slice(x);
    // Of two coordinates the upper one stands first and decides, unless it is 0.
    let coordinates = y.chunks_exact(G1_BYTES / 2);
    let deciding = coordinates.clone().find(|coordinate| coordinate.iter().any(|byte| *byte != 0));
    let larger = deciding.is_some_and(|coordinate| coordinate > &upper_half()[..]);
    out[at] |= COMPRESSED | if larger { LARGER } else { 0 };
    Ok(())
}

/// (p − 1)/2.
fn upper_half() -> [u8; G1_BYTES / 2] {
    let mut bytes = [0; G1_BYTES / 2];
    bytes.copy_from_slice(&Fq::MODULUS_MINUS_ONE_DIV_TWO.to_bytes_be());
    bytes
}

fn proper<G: AffineRepr>(bytes: &[u8]) -> Result<G, TranscriptError> {
    let point: G = points::read(bytes, Compress::No).map_err(|_| TranscriptError::Point)?;
    if point.is_zero() { Err(TranscriptError::Point) } else { Ok(point) }
}

fn all<G: AffineRepr>(bytes: &[u8], size: usize) -> Result<Vec<G>, TranscriptError> {
    bytes.chunks_exact(size).map(proper).collect()
}

/// The secrets after a round, if its contributor knew the factors between them and those before: `verify_transform` of
/// the reference, without the powers. Unlike there a factor of 1 is refused, as it is among contributions of our own.
fn verified(
    before: &Secrets,
    powers: &Kept,
    key: &[u8],
    challenge: &[u8; 64],
) -> Result<Secrets, TranscriptError> {
    let (pairs, factors) = key.split_at(6 * G1_BYTES);
    let (tau, tau_two) = (&powers.tau_g1[..2 * G1_BYTES], &powers.tau_g2[..G2_BYTES]);
    let generators = (G1Affine::generator(), G2Affine::generator());
    if (proper::<G1Affine>(&tau[..G1_BYTES])?, proper::<G2Affine>(tau_two)?) != generators {
        return Err(TranscriptError::Generators);
    }
    let after = Secrets {
        one: [
            proper(&tau[G1_BYTES..])?,
            proper(&powers.alpha_tau_g1[..G1_BYTES])?,
            proper(&powers.beta_tau_g1[..G1_BYTES])?,
        ],
        beta_two: proper(&powers.beta_g2)?,
    };
    for (which, (pair, factor)) in pairs.chunks(2 * G1_BYTES).zip(factors.chunks(G2_BYTES)).enumerate() {
        let (base, times) = (proper(&pair[..G1_BYTES])?, proper(&pair[G1_BYTES..])?);
        let hashed = Blake2b512::new_with_prefix([which as u8]).chain_update(challenge).chain_update(pair);
        let twin = hash_to_g2(&hashed.finalize().into());
        let factor: G2Affine = proper(factor)?;
        if !same_ratio::<Bls12_381>((base, factor), (times, twin)) {
            return Err(TranscriptError::Knowledge(which));
        }
        if !same_ratio::<Bls12_381>((before.one[which], factor), (after.one[which], twin)) {
            return Err(TranscriptError::Secret(which));
        }
        if after.one[which] == before.one[which] {
            return Err(TranscriptError::One(which));
        }
    }
    if !same_ratio::<Bls12_381>((before.one[2], after.beta_two), (after.one[2], before.beta_two)) {
        return Err(TranscriptError::Beta);
    }
    Ok(after)
}

impl Kept {
    fn decoded(&self) -> Result<Powers<Bls12_381>, TranscriptError> {
        Ok(Powers {
            tau_g1: all(&self.tau_g1, G1_BYTES)?,
            tau_g2: all(&self.tau_g2, G2_BYTES)?,
            alpha_tau_g1: all(&self.alpha_tau_g1, G1_BYTES)?,
            beta_tau_g1: all(&self.beta_tau_g1, G1_BYTES)?,
            beta_g2: proper(&self.beta_g2)?,
        })
    }
}
