//! Groth16 (ePrint 2016/260) with a commitment to a chosen part of the witness, from which the verifier's challenges
//! follow: a circuit may check a polynomial identity at a random point although it has no rounds of interaction.
//! Generic over the pairings of arkworks ([`Curve`]); Blindfold uses BLS12-381, by `blst` where time is spent. Sources for
//! the extension: LegoSNARK (ePrint 2019/142, ccGroth16), and BSB22 (ePrint 2022/1072) with the proof of knowledge that
//! goes with it.
//!
//! | step | who | here |
//! |---|---|---|
//! | write a circuit | developer | [`Circuit`], [`Statement`], [`Synthesis`] |
//! | make its keys | contributors, anyone checks | [`setup`] |
//! | prove | client | [`Prover::prove`] |
//! | verify one | anyone | [`Verifier::verify`] |
//! | verify many, of several circuits | service | [`verify_batch`] |
//!
//! # Construction
//! The assignment is z = (1, public, committed, private). With uᵢ, vᵢ, wᵢ the polynomials of variable i at τ (Groth16,
//! section 3.2), write Kᵢ = β·uᵢ + α·vᵢ + wᵢ. γ is 1. η is the unknown logarithm of a point hashed to the curve, σ a
//! secret of the key. Square brackets mean points. The key has
//!
//! - \[Kᵢ\]₁ for public and committed variables, \[Kᵢ/δ\]₁ for private ones, \[τⁱ·Z(τ)/δ\]₁;
//! - \[η\]₁ and \[η/δ\]₁ for the blinding of the commitment;
//! - \[σ·Kᵢ\]₁ for committed variables, \[σ·η\]₁ and \[σ\]₂, and **not** \[σ\]₁.
//!
//! The prover picks ρ, r, s and computes, with sums over the kinds of variables named below them,
//!
//! ```text
//! D = Σ zᵢ·Kᵢ + ρ·η             π = σ·D                     the commitment, and that its opening is known
//!     committed
//! challenges = H(key, circuit, statement, inputs, D)        then the private part of z
//! A = α + Σ zᵢ·uᵢ + r·δ         B = β + Σ zᵢ·vᵢ + s·δ
//!         all                           all
//! C = Σ zᵢ·Kᵢ/δ + h(τ)·Z(τ)/δ + s·A + r·B − r·s·δ − ρ·η/δ
//!     private
//! ```
//!
//! and the verifier, who computes the challenges again, checks
//!
//! ```text
//! e(A, B) = e(α, β) · e(X + D, 1) · e(C, δ)       X = Σ zᵢ·Kᵢ over public variables
//! e(D, σ) = e(π, 1)
//! ```
//!
//! *Complete*: C·δ holds everything that A·B has beyond α·β and the Kᵢ outside the private part, as in Groth16, and
//! −ρ·η besides, which takes the blinding of D out again. *Zero-knowledge*, perfectly: A, B and D are uniform by r, s
//! and ρ, whatever the witness, and then the two equations determine C and π.
//!
//! *Sound* in the algebraic group model with SHA-256 as random oracle: every element of the key with a factor σ is
//! σ·Kᵢ or σ·η, so the second equation leaves only Σ dᵢ·Kᵢ + ρ·η for D, with dᵢ known **before** the challenges, which
//! are a hash of D. Without it D could be anything, and a forgery is easy because γ = 1: take A and B freely and let D
//! be what is missing (a test does). With it the argument of Groth16 with γ = 1 (BGM17, ePrint 2017/1050) gives a
//! satisfying z whose committed part is d. Committed variables whose columns depend on each other are fixed only as
//! far as any row can tell them apart, at any challenge.
//!
//! # Not guaranteed
//! Proofs can be made again: from (A, B, C, D, π) anyone makes another proof of the same statement. Statements must
//! name what they are for. Whoever knows the secrets of a key can forge; see [`setup`]. Proving takes variable time in
//! the witness: multi-scalar multiplication skips zeros and groups small values, so it belongs on a machine that only
//! its owner watches. What is cited was analysed without η and σ in the key; the argument above is ours. BLS12-381 is at some 120 bits, BN254 near 100 and here for tests. Unaudited.
//!
//! # Example
//! x·(x + c) = y at a challenge c, with x committed:
//! ```
//! use ark_bls12_381::{Bls12_381, Fr};
//! use blindfold_groth16::*;
//! # use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};
//! struct Example;
//! struct Public;
//!
//! impl Statement<Fr> for Public {
//!     fn digest(&self) -> [u8; 32] { [0; 32] } // nothing is public here
//!     fn inputs(&self) -> Vec<Fr> { vec![] }
//!     fn derived(&self, challenges: &[Fr]) -> Vec<Fr> { vec![Fr::from(3) * (Fr::from(3) + challenges[0])] }
//! }
//!
//! impl Circuit<Fr> for Example {
//!     type Statement = Public;
//!     type Witness = Fr;
//!     type Committed = Variable;
//!     fn shape(&self) -> Shape { Shape { id: [1; 32], inputs: 0, challenges: 1, derived: 1 } }
//!     fn commit(&self, cs: &mut Synthesis<Fr>, x: Option<&Fr>) -> Result<Variable, SynthesisError> {
//!         cs.witness(x.copied())
//!     }
//!     fn constrain(&self, cs: &mut Synthesis<Fr>, x: Variable, _: Option<&Fr>) -> Result<(), SynthesisError> {
//!         cs.enforce(x, LinearCombination::from(x) + cs.challenge(0), cs.derived(0))
//!     }
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let mut rng = ChaCha20Rng::seed_from_u64(1);
//! let key = setup::development::<Bls12_381, _>(&Example, &[7; 32])?; // anyone with the seed can forge
//! let verifier = Verifier::new(key.verifying().clone());
//! let proof = Prover::new(Example, key)?.prove(&Public, &Fr::from(3), &mut rng)?;
//! let received = Proof::decode(&proof.encode())?; // 288 bytes
//! verifier.verify(&Public, &received)?;
//! # Ok(())
//! # }
//! ```

mod batch;
mod challenge;
mod circuit;
mod curve;
mod hash;
mod key;
mod par;
mod points;
mod proof;
mod prover;
mod qap;
mod r1cs;
pub mod setup;
mod tags;
#[cfg(test)]
mod tests;
mod verifier;
mod windows;

pub use batch::{BatchItem, Recent, batch_verdicts, verify_batch};
pub use challenge::StatementError;
pub use circuit::{Circuit, Shape, Statement};
pub use curve::Curve;
pub use key::{KeyError, Origin, OriginError, PhaseOrigin, ProvingKey, VerifyingKey};
pub use points::PointError;
pub use proof::{Element, Proof, ProofDecodeError};
pub use prover::{ProveError, Prover, ProverError, Stage};
pub use qap::DomainError;
pub use r1cs::{LinearCombination, R1cs, Synthesis, SynthesisError, Variable};
pub use verifier::{Verifier, VerifyError};
