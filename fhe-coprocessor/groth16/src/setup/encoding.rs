//! Ceremonies as bytes: integers big-endian, points uncompressed, every list with its length (4) in front.

use ark_ec::{AffineRepr, pairing::Pairing};
use ark_ff::{BigInteger, PrimeField};
use ark_serialize::Compress;

use super::chain::{Beacon, Contribution, Knowledge};
use super::powers::{Imported, first_secrets};
use super::{KeyCeremony, Powers, PowersCeremony, Transcript};
use crate::key::{KeyError, Reader, Specific, curve_mark, write_points};
use crate::points;

const POWERS_MAGIC: &[u8; 8] = b"BFG16P12";
const CEREMONY_MAGIC: &[u8; 8] = b"BFG16P21";

/// Why bytes are not a ceremony's state; ask whoever sent them to send them again.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SetupDecodeError {
    /// Malformed points, lengths or header.
    #[error(transparent)]
    Bytes(#[from] KeyError),
    /// A response that is not below the group's order.
    #[error("a proof's response is not a canonical scalar")]
    Scalar,
    /// Neither a contributor nor a beacon.
    #[error("unknown kind of contribution: {0}")]
    Kind(u8),
}

impl<E: Pairing> Powers<E> {
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        write_points(out, &self.tau_g1);
        write_points(out, &self.tau_g2);
        write_points(out, &self.alpha_tau_g1);
        write_points(out, &self.beta_tau_g1);
        write_points(out, &[self.beta_g2]);
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, SetupDecodeError> {
        let tau_g1 = reader.counted("[τⁱ]₁", true)?;
        let tau_g2 = reader.counted("[τⁱ]₂", true)?;
        let alpha_tau_g1 = reader.counted("[ατⁱ]₁", true)?;
        let beta_tau_g1 = reader.counted("[βτⁱ]₁", true)?;
        let beta_g2: Vec<E::G2Affine> = reader.counted("[β]₂", true)?;
        let [beta_g2] = beta_g2[..] else {
            return Err(KeyError::Header("[β]₂ is one point").into());
        };
        Ok(Self { tau_g1, tau_g2, alpha_tau_g1, beta_tau_g1, beta_g2 })
    }
}

impl<E: Pairing> Imported<E> {
    /// 1 ‖ hash of the transcript (64) ‖ its contributions (4) ‖ \[τ\]₁ ‖ \[α\]₁ ‖ \[β\]₁ at its end.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        out.push(1);
        out.extend(self.hash);
        out.extend(self.contributions.to_be_bytes());
        for secret in &self.secrets {
            points::write(out, secret, Compress::No);
        }
    }

    /// None where the first byte is 0.
    fn read(reader: &mut Reader<'_>) -> Result<Option<Self>, SetupDecodeError> {
        match reader.array::<1>()? {
            [0] => return Ok(None),
            [1] => {}
            _ => return Err(KeyError::Header("neither begun here nor imported").into()),
        }
        let (hash, contributions) = (reader.array()?, reader.u32()?);
        let mut secrets = [E::G1Affine::zero(); 3];
        for secret in &mut secrets {
            *secret = reader.point("an imported secret's point", Compress::No)?;
        }
        Ok(Some(Self { hash, contributions, secrets }))
    }
}

impl<E: Pairing> PowersCeremony<E> {
    /// The state that contributors send each other.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = POWERS_MAGIC.to_vec();
        out.extend(curve_mark::<E>());
        match &self.imported {
            Some(imported) => imported.write(&mut out),
            None => out.push(0),
        }
        self.transcript.write(&mut out);
        self.powers.write(&mut out);
        out
    }

    /// Decodes a state and checks every point; [`Self::verify`] checks the rest.
    ///
    /// # Errors
    /// [`SetupDecodeError`].
    pub fn decode(bytes: &[u8]) -> Result<Self, SetupDecodeError> {
        let mut reader = Reader(bytes);
        header::<E>(&mut reader, POWERS_MAGIC, "state of a phase-1 ceremony")?;
        let imported = Imported::read(&mut reader)?;
        let first = first_secrets::<E>(imported.as_ref());
        let transcript = Transcript::read(&mut reader, first)?;
        let powers = Powers::read(&mut reader)?;
        reader.end()?;
        Ok(Self { powers, transcript, imported })
    }
}

impl<E: Pairing> KeyCeremony<E> {
    /// The state that contributors send each other.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = CEREMONY_MAGIC.to_vec();
        out.extend(curve_mark::<E>());
        self.transcript.write(&mut out);
        write_points(&mut out, &[self.delta]);
        self.specific.write(&mut out);
        out
    }

    /// Decodes a state and checks every point; [`Self::verify`] checks the rest.
    ///
    /// # Errors
    /// [`SetupDecodeError`].
    pub fn decode(bytes: &[u8]) -> Result<Self, SetupDecodeError> {
        let mut reader = Reader(bytes);
        header::<E>(&mut reader, CEREMONY_MAGIC, "state of a phase-2 ceremony")?;
        let transcript = Transcript::read(&mut reader, [E::G2Affine::generator(); 2])?;
        let delta: Vec<E::G1Affine> = reader.counted("[δ]₁", true)?;
        let [delta] = delta[..] else {
            return Err(KeyError::Header("[δ]₁ is one point").into());
        };
        let specific = Specific::read(&mut reader, true)?;
        reader.end()?;
        Ok(Self { transcript, delta, specific })
    }
}

fn header<E: Pairing>(reader: &mut Reader<'_>, magic: &[u8; 8], name: &'static str) -> Result<(), KeyError> {
    if reader.array()? != *magic {
        return Err(KeyError::Magic(name));
    }
    if reader.array()? != curve_mark::<E>() { Err(KeyError::Curve) } else { Ok(()) }
}

impl<G: AffineRepr, const N: usize> Transcript<G, N> {
    fn write(&self, out: &mut Vec<u8>) {
        out.extend(self.start);
        out.extend((self.contributions.len() as u32).to_be_bytes());
        for contribution in &self.contributions {
            contribution.write(out);
        }
    }

    fn read(reader: &mut Reader<'_>, first: [G; N]) -> Result<Self, SetupDecodeError> {
        let start = reader.array()?;
        let count = reader.u32()?;
        let contributions = (0..count).map(|_| Contribution::read(reader)).collect::<Result<_, _>>()?;
        Ok(Self { start, first, contributions })
    }
}

impl<G: AffineRepr, const N: usize> Contribution<G, N> {
    /// Kind (0 contributor, 1 beacon), of a beacon its value and log₂ of its iterations, then secrets and proofs.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        out.push(u8::from(self.beacon.is_some()));
        if let Some(beacon) = &self.beacon {
            out.extend(beacon.value);
            out.push(beacon.log_iterations);
        }
        for secret in &self.secrets {
            points::write(out, secret, Compress::No);
        }
        for proof in &self.proofs {
            points::write(out, &proof.commitment, Compress::No);
            out.extend(proof.response.into_bigint().to_bytes_be());
        }
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, SetupDecodeError> {
        let beacon = match reader.array::<1>()? {
            [0] => None,
            [1] => {
                let value = reader.array()?;
                let [log_iterations] = reader.array()?;
                Some(Beacon { value, log_iterations })
            }
            [kind] => return Err(SetupDecodeError::Kind(kind)),
        };
        let mut secrets = [G::zero(); N];
        for secret in &mut secrets {
            *secret = reader.point("a secret's point", Compress::No)?;
        }
        let mut proofs = [Knowledge { commitment: G::zero(), response: G::ScalarField::default() }; N];
        for proof in &mut proofs {
            proof.commitment = reader.point("a proof's commitment", Compress::No)?;
            proof.response = scalar(reader)?;
        }
        Ok(Self { secrets, proofs, beacon })
    }
}

fn scalar<F: PrimeField>(reader: &mut Reader<'_>) -> Result<F, SetupDecodeError> {
    let length = F::MODULUS.to_bytes_be().len();
    let bytes = reader.take(length)?;
    let value = F::from_be_bytes_mod_order(bytes);
    if value.into_bigint().to_bytes_be() == bytes { Ok(value) } else { Err(SetupDecodeError::Scalar) }
}
