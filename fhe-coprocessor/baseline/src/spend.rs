//! Transfers and withdrawals, and their proofs.

use curve25519_dalek::{RistrettoPoint, Scalar, ristretto::CompressedRistretto};
use rand_core::CryptoRng;
use tari_bulletproofs_plus::{
    Transcript,
    commitment_opening::CommitmentOpening,
    errors::ProofError,
    range_proof::{RangeProof, VerifyAction},
    range_statement::RangeStatement,
    range_witness::RangeWitness,
    ristretto::RistrettoRangeProof,
};
use zeroize::Zeroizing;

use crate::elgamal::{Ciphertext, Generators, PublicKey, SecretKey};
pub use crate::encoding::MessageError;
use crate::encoding::Reader;
use crate::sigma::{Equation, SigmaProof, WeightedSum};
use crate::{Address, tags};

/// Who can read the amount of a transfer: sender, receiver, auditor, in this order.
pub const RECIPIENTS: usize = 3;

/// Places of the witness: the secret t, then (r*, b*) of what is left, then (r, v) of the amount.
const SECRET: usize = 0;
const LEFT_BLINDING: usize = 1;
const LEFT: usize = 2;
const BLINDING: usize = 3;
const AMOUNT: usize = 4;

type Point = (CompressedRistretto, RistrettoPoint);

fn point(point: RistrettoPoint) -> Point {
    (point.compress(), point)
}

/// A hidden amount for [`RECIPIENTS`] keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HiddenAmount {
    pub(crate) handles: [Point; RECIPIENTS],
    pub(crate) commitment: Point,
}

impl HiddenAmount {
    /// What one recipient gets; `None` past the last.
    #[must_use]
    pub fn for_recipient(&self, recipient: usize) -> Option<Ciphertext> {
        let (_, handle) = self.handles.get(recipient)?;
        Some(Ciphertext { handle: *handle, commitment: self.commitment.1 })
    }
}

/// What is spent, and for whom.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outlay {
    /// A hidden amount for another account; the public amount of the [`Spend`] is the fee.
    Transfer {
        /// The account that is paid.
        receiver: Address,
        /// The amount, hidden, with its range proof.
        amount: Box<HiddenAmount>,
    },
    /// The public amount, into the public ledger.
    Withdraw {
        /// The account that is paid.
        recipient: Address,
    },
}

/// A transfer or a withdrawal.
#[derive(Debug, Clone, PartialEq)]
pub struct Spend {
    /// The account that pays.
    pub account: Address,
    /// The account's nonce that it uses.
    pub nonce: u64,
    /// The fee, or what is withdrawn, in base units.
    pub public: u64,
    /// The rest.
    pub outlay: Outlay,
    pub(crate) left: Point,
    pub(crate) sigma: SigmaProof,
    pub(crate) range: RistrettoRangeProof,
}

/// What a proof is about beside the transaction: taken from the state, never from the sender's word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Premises {
    /// The sender's public key.
    pub sender: PublicKey,
    /// The sender's available balance.
    pub available: Ciphertext,
    /// The receiver's key, of a transfer.
    pub receiver: Option<PublicKey>,
    /// The auditor's public key.
    pub auditor: PublicKey,
}

/// A spend that its sender cannot make.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SpendError {
    /// The balance does not cover it.
    #[error("amount and fee exceed the balance: spend less")]
    Balance,
    /// The premises of a transfer name its receiver's key.
    #[error("the receiver has no key: it must register first")]
    Receiver,
    /// The library refused its own input.
    #[error("the range proof could not be made: this is a fault of ours")]
    RangeProof,
}

/// What the sender wants, and knows.
pub struct Order {
    /// The deployment that it is for, in bytes.
    pub domain: Vec<u8>,
    /// The account that pays.
    pub account: Address,
    /// The account's nonce that it uses.
    pub nonce: u64,
    /// The fee, or what is withdrawn.
    pub public: u64,
    /// Who is paid, the hidden amount if it is a transfer.
    pub to: (Address, Option<u64>),
    /// What is available, decrypted.
    pub balance: u64,
}

impl Spend {
    /// Proves: about 20 multiplications, and a range proof of one or two values of 64 bits.
    ///
    /// # Errors
    /// [`SpendError`].
    pub fn new(
        generators: &Generators,
        order: &Order,
        premises: &Premises,
        secret: &SecretKey,
        rng: &mut impl CryptoRng,
    ) -> Result<Self, SpendError> {
        let (to, hidden) = order.to;
        let spent = order.public.checked_add(hidden.unwrap_or(0)).ok_or(SpendError::Balance)?;
        let left = order.balance.checked_sub(spent).ok_or(SpendError::Balance)?;
        let left_blinding = Scalar::random(rng);
        let blinding = Scalar::random(rng);
        let outlay = match hidden {
            Some(amount) => {
                let receiver = premises.receiver.ok_or(SpendError::Receiver)?;
                let handles =
                    [premises.sender, receiver, premises.auditor].map(|key| point(key.0 * blinding));
                let commitment = point(generators.commit(amount, &blinding));
                Outlay::Transfer { receiver: to, amount: Box::new(HiddenAmount { handles, commitment }) }
            }
            None => Outlay::Withdraw { recipient: to },
        };
        let mut witness = Zeroizing::new(vec![secret.0, left_blinding, Scalar::from(left)]);
        let mut openings = vec![CommitmentOpening::new(left, vec![left_blinding])];
        if let Some(amount) = hidden {
            witness.extend([blinding, Scalar::from(amount)]);
            openings.push(CommitmentOpening::new(amount, vec![blinding]));
        }
        let left = point(generators.commit(left, &left_blinding));
        let (account, nonce, public) = (order.account, order.nonce, order.public);
        let terms = Terms { account, nonce, public, outlay: &outlay, left: &left };
        let mut transcript = terms.transcript(&order.domain, premises);
        let equations = terms.equations(generators, premises).ok_or(SpendError::Receiver)?;
        let sigma = SigmaProof::new(&mut transcript, &equations, &witness, rng);
        let fault = |_: ProofError| SpendError::RangeProof;
        let statement = terms.ranges(generators).map_err(fault)?;
        let witness = RangeWitness::init(openings).map_err(fault)?;
        let range = RangeProof::prove_with_rng(&mut transcript, &statement, &witness, rng).map_err(fault)?;
        Ok(Self { account, nonce, public, outlay, left, sigma, range })
    }

    fn terms(&self) -> Terms<'_> {
        let Self { account, nonce, public, outlay, left, .. } = self;
        Terms { account: *account, nonce: *nonce, public: *public, outlay, left }
    }

    /// What the available balance becomes.
    #[must_use]
    pub fn remainder(&self, generators: &Generators, available: &Ciphertext) -> Ciphertext {
        self.terms().remainder(generators, available)
    }

    /// The one encoding: 1,242 bytes for a transfer.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let (kind, to) = match &self.outlay {
            Outlay::Transfer { receiver, .. } => (TRANSFER, receiver),
            Outlay::Withdraw { recipient } => (WITHDRAW, recipient),
        };
        let mut bytes = vec![kind];
        bytes.extend(self.account);
        bytes.extend(self.nonce.to_be_bytes());
        bytes.extend(self.public.to_be_bytes());
        bytes.extend(to);
        if let Outlay::Transfer { amount, .. } = &self.outlay {
            for (compressed, _) in amount.handles.iter().chain([&amount.commitment]) {
                bytes.extend(compressed.as_bytes());
            }
        }
        bytes.extend(self.left.0.as_bytes());
        self.encode_proof(&mut bytes);
        bytes
    }

    fn encode_proof(&self, bytes: &mut Vec<u8>) {
        for (compressed, _) in &self.sigma.commitments {
            bytes.extend(compressed.as_bytes());
        }
        for response in &self.sigma.responses {
            bytes.extend(response.as_bytes());
        }
        bytes.extend(self.range.to_bytes());
    }

    /// Bytes of the proofs: the commitment to what is left, the sigma protocol's part, the range proof.
    #[must_use]
    pub fn proof_bytes(&self) -> usize {
        let mut bytes = self.left.0.as_bytes().to_vec();
        self.encode_proof(&mut bytes);
        bytes.len()
    }

    /// Reads what [`encode`](Self::encode) wrote: up to 12 points are decompressed.
    ///
    /// # Errors
    /// [`MessageError`].
    pub fn decode(bytes: &[u8]) -> Result<Self, MessageError> {
        let mut reader = Reader(bytes);
        let [kind] = reader.take()?;
        let account = reader.take()?;
        let (nonce, public) = (reader.word()?, reader.word()?);
        let to = reader.take()?;
        let (outlay, equations, scalars) = match kind {
            TRANSFER => {
                let handles = [reader.point()?, reader.point()?, reader.point()?];
                let amount = Box::new(HiddenAmount { handles, commitment: reader.point()? });
                (Outlay::Transfer { receiver: to, amount }, 4 + RECIPIENTS, AMOUNT + 1)
            }
            WITHDRAW => (Outlay::Withdraw { recipient: to }, 3, LEFT + 1),
            unknown => return Err(MessageError::Kind(unknown)),
        };
        let left = reader.point()?;
        let commitments = (0..equations).map(|_| reader.point()).collect::<Result<_, _>>()?;
        let responses = (0..scalars).map(|_| reader.scalar()).collect::<Result<_, _>>()?;
        let sigma = SigmaProof { commitments, responses };
        let range = RangeProof::from_bytes(reader.0).map_err(|_| MessageError::RangeProof)?;
        Ok(Self { account, nonce, public, outlay, left, sigma, range })
    }
}

const TRANSFER: u8 = 3;
const WITHDRAW: u8 = 6;

/// A spend without its proofs.
struct Terms<'a> {
    account: Address,
    nonce: u64,
    public: u64,
    outlay: &'a Outlay,
    left: &'a Point,
}

impl Terms<'_> {
    fn remainder(&self, generators: &Generators, available: &Ciphertext) -> Ciphertext {
        let rest = *available - Ciphertext::public(generators, self.public);
        match self.outlay {
            Outlay::Transfer { amount, .. } => {
                let [(_, handle), ..] = amount.handles;
                rest - Ciphertext { handle, commitment: amount.commitment.1 }
            }
            Outlay::Withdraw { .. } => rest,
        }
    }

    /// All that is public, absorbed.
    fn transcript(&self, domain: &[u8], premises: &Premises) -> Transcript {
        let mut transcript = Transcript::new(tags::SPEND);
        transcript.append_message(b"domain", domain);
        transcript.append_message(b"account", &self.account);
        transcript.append_u64(b"nonce", self.nonce);
        transcript.append_u64(b"public", self.public);
        transcript.append_message(b"available", &premises.available.encode());
        transcript.append_message(b"sender", premises.sender.0.compress().as_bytes());
        match self.outlay {
            Outlay::Transfer { receiver, amount } => {
                transcript.append_message(b"receiver", receiver);
                for key in premises.receiver.iter().chain([&premises.auditor]) {
                    transcript.append_message(b"key", key.0.compress().as_bytes());
                }
                for (compressed, _) in amount.handles.iter().chain([&amount.commitment]) {
                    transcript.append_message(b"amount", compressed.as_bytes());
                }
            }
            Outlay::Withdraw { recipient } => transcript.append_message(b"recipient", recipient),
        }
        transcript.append_message(b"left", self.left.0.as_bytes());
        transcript
    }

    /// The table in the crate's documentation, row by row; `None` for a transfer without a receiver's key.
    fn equations(&self, generators: &Generators, premises: &Premises) -> Option<Vec<Equation>> {
        let (g, h) = (generators.blinding, generators.value);
        let key = premises.sender.0;
        let rest = self.remainder(generators, &premises.available);
        let mut equations = vec![
            Equation { image: key, terms: vec![(SECRET, g)] },
            Equation { image: self.left.1, terms: vec![(LEFT_BLINDING, g), (LEFT, h)] },
            Equation {
                image: rest.handle,
                terms: vec![(SECRET, rest.commitment - self.left.1), (LEFT_BLINDING, key)],
            },
        ];
        if let Outlay::Transfer { amount, .. } = self.outlay {
            let terms = vec![(BLINDING, g), (AMOUNT, h)];
            equations.push(Equation { image: amount.commitment.1, terms });
            let keys = [premises.sender, premises.receiver?, premises.auditor];
            equations.extend(
                keys.iter()
                    .zip(&amount.handles)
                    .map(|(key, (_, image))| Equation { image: *image, terms: vec![(BLINDING, key.0)] }),
            );
        }
        Some(equations)
    }

    fn ranges(&self, generators: &Generators) -> Result<RangeStatement<RistrettoPoint>, ProofError> {
        let mut commitments = vec![self.left.1];
        if let Outlay::Transfer { amount, .. } = self.outlay {
            commitments.push(amount.commitment.1);
        }
        let promises = vec![None; commitments.len()];
        RangeStatement::init(generators.range.clone(), commitments, promises, None)
    }
}

/// Whether all spends are proved: one multiplication of many points for the equations, one for the ranges.
///
/// The weights come from `rng`, which nobody must foresee who makes proofs. True of none.
#[must_use]
pub fn verify_together(
    generators: &Generators,
    domain: &[u8],
    spends: &[(&Spend, &Premises)],
    rng: &mut impl CryptoRng,
) -> bool {
    let mut sum = WeightedSum::default();
    let (mut transcripts, mut statements, mut proofs) = (vec![], vec![], vec![]);
    for (spend, premises) in spends {
        let terms = spend.terms();
        let mut transcript = terms.transcript(domain, premises);
        let (Some(equations), Ok(ranges)) = (terms.equations(generators, premises), terms.ranges(generators))
        else {
            return false;
        };
        let weight = || Scalar::random(rng);
        if spend.sigma.collect(&mut transcript, &equations, weight, &mut sum).is_none() {
            return false;
        }
        transcripts.push(transcript);
        statements.push(ranges);
        proofs.push(spend.range.clone());
    }
    spends.is_empty()
        || sum.is_zero()
            && RangeProof::verify_batch(&mut transcripts, &statements, &proofs, VerifyAction::VerifyOnly)
                .is_ok()
}

#[cfg(test)]
impl Spend {
    /// This transfer with other values, given as (amount, left): the sigma protocol's part is proved for them, the range
    /// proof stays what it was.
    pub(crate) fn forge(
        &self,
        generators: &Generators,
        domain: &[u8],
        premises: &Premises,
        secret: &SecretKey,
        [amount, left]: [Scalar; 2],
        rng: &mut impl CryptoRng,
    ) -> Self {
        let mut forged = self.clone();
        let [left_blinding, blinding] = [(); 2].map(|()| Scalar::random(rng));
        forged.left = point(generators.blinding * left_blinding + generators.value * left);
        if let (Outlay::Transfer { amount: hidden, .. }, Some(receiver)) =
            (&mut forged.outlay, premises.receiver)
        {
            hidden.handles = [premises.sender, receiver, premises.auditor].map(|key| point(key.0 * blinding));
            hidden.commitment = point(generators.blinding * blinding + generators.value * amount);
        }
        let terms = forged.terms();
        let equations = terms.equations(generators, premises).unwrap();
        let witness = [secret.0, left_blinding, left, blinding, amount];
        forged.sigma = SigmaProof::new(&mut terms.transcript(domain, premises), &equations, &witness, rng);
        forged
    }

    /// Whether all but the ranges are proved.
    pub(crate) fn sigma_holds(
        &self,
        generators: &Generators,
        domain: &[u8],
        premises: &Premises,
        rng: &mut impl CryptoRng,
    ) -> bool {
        let terms = self.terms();
        let equations = terms.equations(generators, premises).unwrap();
        self.sigma.verify(&mut terms.transcript(domain, premises), &equations, rng)
    }
}
