//! Keys, ciphertexts and totals of invoices: one of each for each plaintext modulus.

use std::fmt;
use std::sync::Arc;

use rand_core::CryptoRng;
use zeroize::Zeroizing;

use super::InvoiceError;
use super::residues::{MAX_LINES, MODULI, price_message, quantities, quantity_message, whole};
use crate::ring::{DecodeError, Modulus};
use crate::rlwe::{
    EncryptionWitness, Parameters, ParametersError, PublicKey, PublicPolynomial, SEED_BYTES, SecretKey,
};
use crate::schemes::compute::{Compute, ComputeCiphertext, RelinearizationKey};

/// Coefficients of a product that are kept.
const KEPT: usize = 1;
/// Sets of parameters.
const PARTS: usize = MODULI.len();

/// What every party of a deployment shares: parameters, public polynomials and tables, for each plaintext modulus.
#[derive(Debug)]
pub struct Invoices([Part; PARTS]);

#[derive(Debug)]
struct Part {
    modulus: Modulus,
    public: Arc<PublicPolynomial>,
    compute: Compute,
}

/// The payer's secret for one order. Wiped, printed redacted.
pub struct InvoiceSecret {
    seed: Zeroizing<[u8; SEED_BYTES]>,
    keys: [SecretKey; PARTS],
}

impl fmt::Debug for InvoiceSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InvoiceSecret").finish_non_exhaustive()
    }
}

/// What others need of it: to encrypt for the payer, and to multiply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvoiceKey([(PublicKey, RelinearizationKey); PARTS]);

/// Prices, or quantities: fresh encryptions to the payer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvoiceCiphertext([ComputeCiphertext; PARTS]);

/// A masked total, for the payer to open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvoiceTotal([ComputeCiphertext; PARTS]);

impl Invoices {
    /// For the seed of a deployment. Costs the tables of three sets and as many expanded polynomials.
    ///
    /// # Errors
    /// None in practice: the numbers are fixed.
    pub fn new(seed: &[u8; SEED_BYTES]) -> Result<Self, InvoiceError> {
        let part = |t: u64| -> Result<Part, InvoiceError> {
            let parameters = Parameters::compute_modulo(t)?;
            let modulus = Modulus::new(t).map_err(ParametersError::from)?;
            let public = PublicPolynomial::new(&parameters, seed)?;
            Ok(Part { modulus, public, compute: Compute::new(&parameters)? })
        };
        let [first, second, third] = MODULI;
        Ok(Self([part(first)?, part(second)?, part(third)?]))
    }

    /// The secret of a seed, which belongs to one order: see the module. About 6·N hashed bytes.
    #[must_use]
    pub fn secret(&self, seed: &[u8; SEED_BYTES]) -> InvoiceSecret {
        let keys = self.0.each_ref().map(|part| SecretKey::derive(&part.public, seed));
        InvoiceSecret { seed: Zeroizing::new(*seed), keys }
    }

    /// The key of a secret: always the same. For each modulus, about fifty transforms and 16·N residues from a hash.
    #[must_use]
    pub fn key(&self, secret: &InvoiceSecret) -> InvoiceKey {
        let of = |key: &SecretKey| (key.public_key(), RelinearizationKey::derive(key, &secret.seed));
        InvoiceKey(secret.keys.each_ref().map(of))
    }

    /// Encrypts a supplier's prices, in base units, to a payer. For each modulus, ten transforms.
    ///
    /// # Errors
    /// [`InvoiceError::Lines`].
    pub fn encrypt_prices(
        &self,
        key: &InvoiceKey,
        prices: &[u32],
        rng: &mut (impl CryptoRng + ?Sized),
    ) -> Result<InvoiceCiphertext, InvoiceError> {
        self.encrypt(key, prices.len(), rng, |modulus, degree| price_message(prices, modulus, degree))
    }

    /// Encrypts a payer's quantities to himself. Costs as [`encrypt_prices`](Self::encrypt_prices).
    ///
    /// # Errors
    /// [`InvoiceError::Lines`].
    pub fn encrypt_quantities(
        &self,
        key: &InvoiceKey,
        quantities: &[u16],
        rng: &mut (impl CryptoRng + ?Sized),
    ) -> Result<InvoiceCiphertext, InvoiceError> {
        self.encrypt(key, quantities.len(), rng, |modulus, degree| {
            quantity_message(quantities, modulus, degree)
        })
    }

    fn encrypt(
        &self,
        key: &InvoiceKey,
        lines: usize,
        rng: &mut (impl CryptoRng + ?Sized),
        message: impl Fn(&Modulus, usize) -> Zeroizing<Vec<i64>>,
    ) -> Result<InvoiceCiphertext, InvoiceError> {
        if lines > MAX_LINES {
            return Err(InvoiceError::Lines { lines });
        }
        Ok(InvoiceCiphertext(three(|index| {
            let (part, (owner, _)) = (&self.0[index], &key.0[index]);
            let parameters = part.public.parameters();
            let message = message(&part.modulus, parameters.degree());
            let witness = EncryptionWitness::sample(parameters, 1, &message, rng)?;
            Ok(ComputeCiphertext::fresh(&witness.encrypt(&part.public, &[owner])?, 0)?)
        })?))
    }

    /// The masked total: the same bytes wherever it is computed. The seed is the supplier's; everything that goes in is
    /// the mask's context, so that one seed gives two invoices two masks. For each modulus one product and one mask:
    /// about fifty transforms.
    ///
    /// # Errors
    /// [`InvoiceError::Compute`]: none in practice, as key and ciphertexts are of these sets and fresh.
    pub fn total(
        &self,
        key: &InvoiceKey,
        quantities: &InvoiceCiphertext,
        prices: &InvoiceCiphertext,
        mask_seed: &[u8; SEED_BYTES],
    ) -> Result<InvoiceTotal, InvoiceError> {
        let context = [key.encode(), quantities.encode(), prices.encode()];
        let context = context.each_ref().map(Vec::as_slice);
        Ok(InvoiceTotal(three(|index| {
            let (part, (owner, relinearization)) = (&self.0[index], &key.0[index]);
            let (prices, quantities) = (&prices.0[index], &quantities.0[index]);
            let mut product = part.compute.multiply(prices, quantities, relinearization)?;
            product.keep(KEPT);
            part.compute.mask(&mut product, (&part.public, owner), mask_seed, &context)?;
            Ok(product)
        })?))
    }

    /// The total in base units. The payer's own quantities are opened, too: they say how large it can be, which finds
    /// almost every total that was altered or made for another order. Do not let others learn whether one opens.
    ///
    /// # Errors
    /// [`InvoiceError::Compute`] for another secret, [`InvoiceError::Message`].
    pub fn open(
        &self,
        secret: &InvoiceSecret,
        quantities: &InvoiceCiphertext,
        total: &InvoiceTotal,
    ) -> Result<u64, InvoiceError> {
        let most = self.most(secret, quantities)?;
        let residues = three(|index| {
            let part = &self.0[index];
            let (message, _) = part.compute.open(&secret.keys[index], &total.0[index])?;
            Ok(part.modulus.lift(*message.first().ok_or(InvoiceError::Message)?))
        })?;
        let total = whole(residues)?;
        if total > most { Err(InvoiceError::Message) } else { Ok(total) }
    }

    /// The total if everything cost the most there is.
    fn most(&self, secret: &InvoiceSecret, ordered: &InvoiceCiphertext) -> Result<u64, InvoiceError> {
        let opened = three(|index| {
            let part = &self.0[index];
            let (message, _) = part.compute.open(&secret.keys[index], &ordered.0[index])?;
            quantities(&message, &part.modulus).ok_or(InvoiceError::Message)
        })?;
        if opened.iter().any(|other| *other != opened[0]) {
            return Err(InvoiceError::Message);
        }
        // 2^8 numbers of 16 bits and one of 32.
        Ok(opened[0].iter().map(|&quantity| u64::from(quantity)).sum::<u64>() * u64::from(u32::MAX))
    }

    /// Length of a key: 829,440 bytes.
    #[must_use]
    pub fn key_bytes(&self) -> usize {
        self.0.iter().map(Part::key_bytes).sum()
    }

    /// Length of prices, and of quantities: 331,830 bytes.
    #[must_use]
    pub fn ciphertext_bytes(&self) -> usize {
        self.0.iter().map(|part| part.ciphertext_bytes(part.public.parameters().degree())).sum()
    }

    /// Length of a total: 165,984 bytes.
    #[must_use]
    pub fn total_bytes(&self) -> usize {
        self.0.iter().map(|part| part.ciphertext_bytes(KEPT)).sum()
    }

    /// Reads what [`InvoiceKey::encode`] wrote, and nothing else. That it belongs to a secret is not checked. For each
    /// modulus, sixteen transforms and 8·N residues from a hash.
    ///
    /// # Errors
    /// [`InvoiceError::Decode`].
    pub fn decode_key(&self, bytes: &[u8]) -> Result<InvoiceKey, InvoiceError> {
        let parts = self.cut(bytes, self.0.each_ref().map(Part::key_bytes))?;
        Ok(InvoiceKey(three(|index| {
            let (public, bytes) = (&self.0[index].public, parts[index]);
            let (owner, relinearization) = bytes.split_at(PublicKey::encoded_bytes(public.parameters()));
            let owner = PublicKey::decode(public.parameters(), owner)?;
            Ok((owner, RelinearizationKey::decode(public, relinearization)?))
        })?))
    }

    /// Reads what [`InvoiceCiphertext::encode`] wrote, and nothing else. That it was encrypted, and not made otherwise,
    /// is not checked.
    ///
    /// # Errors
    /// [`InvoiceError::Decode`]; [`InvoiceError::NotFresh`] if it claims to be anything else.
    pub fn decode_ciphertext(&self, bytes: &[u8]) -> Result<InvoiceCiphertext, InvoiceError> {
        let parts = self.decode_parts(bytes, |part| part.public.parameters().degree())?;
        if parts.iter().all(ComputeCiphertext::is_fresh) {
            Ok(InvoiceCiphertext(parts))
        } else {
            Err(InvoiceError::NotFresh)
        }
    }

    /// Reads what [`InvoiceTotal::encode`] wrote, and nothing else.
    ///
    /// # Errors
    /// [`InvoiceError::Decode`].
    pub fn decode_total(&self, bytes: &[u8]) -> Result<InvoiceTotal, InvoiceError> {
        Ok(InvoiceTotal(self.decode_parts(bytes, |_| KEPT)?))
    }

    fn decode_parts(
        &self,
        bytes: &[u8],
        kept: impl Fn(&Part) -> usize,
    ) -> Result<[ComputeCiphertext; PARTS], InvoiceError> {
        let lengths = self.0.each_ref().map(|part| part.ciphertext_bytes(kept(part)));
        let parts = self.cut(bytes, lengths)?;
        three(|index| Ok(ComputeCiphertext::decode(self.0[index].public.parameters(), parts[index])?))
    }

    /// Cuts bytes of the right length into pieces; the length is checked before anything is allocated.
    fn cut<'a>(&self, bytes: &'a [u8], lengths: [usize; PARTS]) -> Result<[&'a [u8]; PARTS], InvoiceError> {
        let (expected, found) = (lengths.iter().sum(), bytes.len());
        if expected != found {
            return Err(DecodeError::Length { expected, found }.into());
        }
        let mut rest = bytes;
        Ok(lengths.map(|length| {
            let (piece, tail) = rest.split_at(length);
            rest = tail;
            piece
        }))
    }
}

impl Part {
    fn key_bytes(&self) -> usize {
        let parameters = self.public.parameters();
        PublicKey::encoded_bytes(parameters) + RelinearizationKey::encoded_bytes(parameters)
    }

    fn ciphertext_bytes(&self, kept: usize) -> usize {
        ComputeCiphertext::encoded_bytes(self.public.parameters(), kept)
    }
}

impl InvoiceKey {
    /// For each modulus: public key ‖ relinearization key.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let both = |(owner, relinearization): &(PublicKey, RelinearizationKey)| {
            [owner.encode(), relinearization.encode()].concat()
        };
        self.0.iter().flat_map(both).collect()
    }
}

impl InvoiceCiphertext {
    /// The three ciphertexts after each other.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        self.0.iter().flat_map(ComputeCiphertext::encode).collect()
    }
}

impl InvoiceTotal {
    /// The three ciphertexts after each other.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        self.0.iter().flat_map(ComputeCiphertext::encode).collect()
    }
}

/// One of each modulus.
fn three<T>(mut part: impl FnMut(usize) -> Result<T, InvoiceError>) -> Result<[T; PARTS], InvoiceError> {
    Ok([part(0)?, part(1)?, part(2)?])
}
