//! From phase 1 to a circuit: the key with δ = σ = 1.

use ark_ec::{AffineRepr, CurveGroup, pairing::Pairing};
use ark_ff::{Field, PrimeField, Zero};
use ark_poly::{EvaluationDomain, Radix2EvaluationDomain};

use super::{PowersCeremony, SetupError};
use crate::key::{Origin, PhaseOrigin, ProvingKey, Specific, VerifyingKey, query};
use crate::points::msm;
use crate::r1cs::{Matrix, R1cs};
use crate::{hash, par, qap, tags};

/// The key with which phase 2 of a circuit begins: δ = σ = 1, so anyone can forge under it. The same for everyone who
/// computes it. Costs [`LagrangePoints::new`] and [`LagrangePoints::prepare`].
///
/// # Errors
/// [`SetupError::TooFewPowers`], [`SetupError::Domain`].
pub fn prepare<E: Pairing>(
    ceremony: &PowersCeremony<E>,
    r1cs: &R1cs<E::ScalarField>,
) -> Result<ProvingKey<E>, SetupError> {
    LagrangePoints::new(ceremony, r1cs)?.prepare(r1cs)
}

/// The powers of a domain in its Lagrange basis: for all circuits whose rows fill the same domain.
#[derive(Debug, Clone)]
pub struct LagrangePoints<E: Pairing> {
    /// Hash of all powers that it was made from.
    powers: [u8; 32],
    /// How the powers came to be.
    origin: PhaseOrigin,
    /// \[Lⱼ(τ)\]₁
    one: Vec<E::G1Affine>,
    /// \[α·Lⱼ(τ)\]₁
    alpha: Vec<E::G1Affine>,
    /// \[β·Lⱼ(τ)\]₁
    beta: Vec<E::G1Affine>,
    /// \[Lⱼ(τ)\]₂
    two: Vec<E::G2Affine>,
    /// \[τⁱ·Z(τ)\]₁, i ≤ n − 2
    quotient: Vec<E::G1Affine>,
    /// \[α\]₁, \[β\]₁
    secrets: [E::G1Affine; 2],
    /// \[β\]₂
    beta_g2: E::G2Affine,
}

impl<E: Pairing> LagrangePoints<E> {
    /// The points for the domain of `r1cs`. Four transforms of points, 2·n·log₂ n multiplications in all for a domain
    /// of n rows: minutes for n = 2^16.
    ///
    /// # Errors
    /// [`SetupError::TooFewPowers`], [`SetupError::Domain`].
    pub fn new(ceremony: &PowersCeremony<E>, r1cs: &R1cs<E::ScalarField>) -> Result<Self, SetupError> {
        let powers = ceremony.powers();
        let domain = qap::domain(r1cs)?;
        let n = domain.size();
        if powers.rows() < n {
            return Err(SetupError::TooFewPowers { got: powers.rows(), want: n });
        }
        let ((one, alpha), (beta, two)) = par::join(
            || {
                par::join(
                    || lagrange(&domain, &powers.tau_g1[..n]),
                    || lagrange(&domain, &powers.alpha_tau_g1[..n]),
                )
            },
            || {
                par::join(
                    || lagrange(&domain, &powers.beta_tau_g1[..n]),
                    || lagrange(&domain, &powers.tau_g2[..n]),
                )
            },
        );
        let quotient: Vec<E::G1> =
            (0..n - 1).map(|i| powers.tau_g1[i + n].into_group() - powers.tau_g1[i]).collect();
        Ok(Self {
            powers: powers.hash(),
            origin: ceremony.origin(),
            one,
            alpha,
            beta,
            two,
            quotient: E::G1::normalize_batch(&quotient),
            secrets: [powers.alpha_tau_g1[0], powers.beta_tau_g1[0]],
            beta_g2: powers.beta_g2,
        })
    }

    /// How many rows the domain has.
    pub fn rows(&self) -> usize {
        self.one.len()
    }

    /// The key with which phase 2 of the circuit begins, as [`prepare`]. An addition of points for each of the circuit's
    /// coefficients that is 1 or −1, a sum over the others for each variable.
    ///
    /// # Errors
    /// [`SetupError::TooFewPowers`] for a circuit of another domain, [`SetupError::Domain`].
    pub fn prepare(&self, r1cs: &R1cs<E::ScalarField>) -> Result<ProvingKey<E>, SetupError> {
        let n = qap::domain(r1cs)?.size();
        if self.rows() != n {
            return Err(SetupError::TooFewPowers { got: self.rows(), want: n });
        }
        Ok(prepared(self, r1cs))
    }
}

fn prepared<E: Pairing>(points: &LagrangePoints<E>, r1cs: &R1cs<E::ScalarField>) -> ProvingKey<E> {
    let LagrangePoints { one, alpha, beta, two, .. } = points;
    let [rows_a, rows_b, rows_c] = &r1cs.matrices;
    let variables = r1cs.variables();
    let mut u = columns(rows_a, one, variables);
    let mut k = columns(rows_a, beta, variables);
    let input_rows = r1cs.constraints()..r1cs.constraints() + r1cs.shape().public();
    for (variable, row) in input_rows.enumerate() {
        u[variable] += one[row];
        k[variable] += beta[row];
    }
    let v = columns(rows_b, one, variables);
    let v_two = columns(rows_b, two, variables);
    for (sum, more) in k.iter_mut().zip(columns(rows_b, alpha, variables)) {
        *sum += more;
    }
    for (sum, more) in k.iter_mut().zip(columns(rows_c, one, variables)) {
        *sum += more;
    }
    let k = E::G1::normalize_batch(&k);
    let (public, witness) = k.split_at(r1cs.shape().public());
    let (committed, private) = witness.split_at(r1cs.committed());
    let b = query(E::G2::normalize_batch(&v_two));
    let v = E::G1::normalize_batch(&v);
    let blinding_base = ProvingKey::<E>::blinding_base();
    let keys = PhaseOrigin {
        contributions: 0,
        beacon: false,
        transcript: start(&points.powers, &points.origin, r1cs.digest()),
    };
    let [alpha, beta] = points.secrets;
    ProvingKey {
        verifying: VerifyingKey {
            origin: Origin::Ceremony { powers: points.origin, keys },
            shape: *r1cs.shape(),
            circuit: *r1cs.digest(),
            alpha,
            beta: points.beta_g2,
            delta: E::G2Affine::generator(),
            sigma: E::G2Affine::generator(),
            public: public.to_vec(),
        },
        beta,
        delta: E::G1Affine::generator(),
        a: query(E::G1::normalize_batch(&u)),
        b_g1: b.variables.iter().map(|variable| v[*variable as usize]).collect(),
        b,
        committed: committed.to_vec(),
        specific: Specific {
            quotient: points.quotient.clone(),
            private: private.to_vec(),
            unblind: blinding_base,
            knowledge: committed.to_vec(),
            knowledge_blinding: blinding_base,
        },
    }
}

/// Start of the phase-2 transcript: it names phase 1, who made it, and the circuit.
fn start(powers: &[u8; 32], origin: &PhaseOrigin, circuit: &[u8; 32]) -> [u8; 32] {
    hash::sha256(&[tags::TRANSCRIPT, b"key", powers, &origin.encode(), circuit])
}

/// \[Lⱼ(τ)\] from \[τⁱ\].
fn lagrange<G: AffineRepr>(domain: &Radix2EvaluationDomain<G::ScalarField>, powers: &[G]) -> Vec<G> {
    let powers: Vec<G::Group> = powers.iter().map(|point| point.into_group()).collect();
    G::Group::normalize_batch(&domain.ifft(&powers))
}

/// Of each variable the sum over rows of its coefficient times the row's point.
fn columns<G: AffineRepr>(matrix: &Matrix<G::ScalarField>, points: &[G], variables: usize) -> Vec<G::Group> {
    let mut terms: Vec<Vec<(usize, G::ScalarField)>> = vec![Vec::new(); variables];
    for row in 0..matrix.rows() {
        for (coefficient, column) in matrix.row(row) {
            terms[column].push((row, coefficient));
        }
    }
    par::pieces(variables, 4, 64, |range| {
        terms[range].iter().map(|terms| column(terms, points)).collect::<Vec<_>>()
    })
    .concat()
}

/// Most coefficients are 1 or −1, and those cost an addition only.
fn column<G: AffineRepr>(terms: &[(usize, G::ScalarField)], points: &[G]) -> G::Group {
    let minus_one = -G::ScalarField::ONE;
    let (mut sum, mut bases, mut scalars) = (G::Group::zero(), Vec::new(), Vec::new());
    for (row, coefficient) in terms {
        if *coefficient == G::ScalarField::ONE {
            sum += points[*row];
        } else if *coefficient == minus_one {
            sum -= points[*row];
        } else {
            bases.push(points[*row]);
            scalars.push(coefficient.into_bigint());
        }
    }
    sum + msm(&bases, &scalars)
}
