//! Keys, ciphertexts and witnesses in plain integers, by the school method: what the circuits are compared with, in tests
//! and in the benchmark.

use alloy_primitives::Address;
use blindfold_confidential::circuits::{
    Randomness, RefreshStatement, RefreshWitness, RegistrationStatement, RegistrationWitness,
    TransferStatement, TransferWitness, WithdrawalStatement, WithdrawalWitness,
};
use blindfold_confidential::statement::{Ciphertext, Domain, FreshCiphertext, Holding};
use blindfold_confidential::{ERROR_BOUND, LIMBS, Polynomial, Ring, secret_commitment};
use rand_chacha::ChaCha20Rng;
use rand_core::{Rng, SeedableRng};
use zeroize::Zeroizing;

/// The owner of an account, or the auditor.
pub struct Owner {
    /// The account.
    pub account: Address,
    /// s.
    pub secret: Zeroizing<Vec<i8>>,
    /// e.
    pub error: Zeroizing<Vec<i8>>,
    /// b = −a·s + e.
    pub key: Polynomial,
}

/// A deployment with three keys.
pub struct World {
    /// The ring.
    pub ring: Ring,
    /// The deployment.
    pub domain: Domain,
    /// a.
    pub a: Polynomial,
    /// Sender, receiver, auditor.
    pub owners: [Owner; 3],
    /// Where randomness comes from.
    pub rng: ChaCha20Rng,
}

/// Limbs of an amount.
pub fn limbs(amount: u64) -> [i64; LIMBS] {
    amount.to_le_bytes().map(i64::from)
}

/// x·w modulo X^N + 1 over the integers.
pub fn negacyclic(x: &[u64], w: &[i8]) -> Vec<i128> {
    let degree = x.len();
    let mut product = vec![0i128; degree];
    for (i, x) in x.iter().enumerate() {
        for (j, w) in w.iter().enumerate() {
            let term = i128::from(*x) * i128::from(*w);
            if i + j < degree { product[i + j] += term } else { product[i + j - degree] -= term }
        }
    }
    product
}

/// The residue modulo q.
pub fn reduce(ring: &Ring, value: i128) -> u64 {
    value.rem_euclid(i128::from(ring.modulus())) as u64
}

/// Uniform integers of [−bound, bound].
pub fn small(rng: &mut ChaCha20Rng, count: usize, bound: i8) -> Zeroizing<Vec<i8>> {
    let width = 2 * bound as u32 + 1;
    Zeroizing::new((0..count).map(|_| (rng.next_u32() % width) as i8 - bound).collect())
}

/// Integers modulo q as an element of the ring.
fn polynomial(ring: &Ring, coefficients: impl Iterator<Item = i128>) -> Polynomial {
    Polynomial::new(ring, coefficients.map(|c| reduce(ring, c)).collect()).expect("reduced")
}

impl Owner {
    /// A key of given secrets.
    pub fn new(
        ring: &Ring,
        a: &Polynomial,
        account: u8,
        secret: Zeroizing<Vec<i8>>,
        error: Zeroizing<Vec<i8>>,
    ) -> Self {
        let product = negacyclic(a.coefficients(), &secret);
        let key = polynomial(ring, product.iter().zip(error.iter()).map(|(p, e)| i128::from(*e) - p));
        Self { account: Address::repeat_byte(account), secret, error, key }
    }
}

impl World {
    /// A deployment, all of it from a seed, which is printed.
    pub fn new(ring: Ring, seed: u64) -> Self {
        println!("seed {seed}, N = {}", ring.degree());
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        let coefficients = (0..ring.degree()).map(|_| i128::from(rng.next_u64()));
        let a = polynomial(&ring, coefficients);
        let domain = Domain { l1_chain_id: 1, chain_id: 7_001, contract: Address::repeat_byte(0xc0) };
        let owners = [1, 2, 3].map(|account| {
            let secret = small(&mut rng, ring.degree(), 1);
            let error = small(&mut rng, ring.degree(), ERROR_BOUND);
            Owner::new(&ring, &a, account, secret, error)
        });
        Self { ring, domain, a, owners, rng }
    }

    /// Randomness of a ciphertext.
    pub fn randomness<const K: usize>(&mut self) -> Randomness<K> {
        let degree = self.ring.degree();
        let mut errors = |count| small(&mut self.rng, count, ERROR_BOUND);
        let e1 = errors(degree);
        let e0 = [(); K].map(|()| Zeroizing::new(errors(LIMBS).as_slice().try_into().expect("so many")));
        Randomness { u: small(&mut self.rng, degree, 1), e1, e0 }
    }

    /// c1 = a·u + e1 and c0 = b·u + e0 + Δ·limbs for each owner asked for.
    pub fn encrypt<const K: usize>(
        &self,
        to: [usize; K],
        limbs: &[i64; LIMBS],
        randomness: &Randomness<K>,
    ) -> FreshCiphertext<K> {
        let (ring, delta) = (&self.ring, i128::from(self.ring.delta()));
        let product = negacyclic(self.a.coefficients(), &randomness.u);
        let c1 = polynomial(ring, product.iter().zip(randomness.e1.iter()).map(|(p, e)| p + i128::from(*e)));
        let keys = to.map(|owner| self.owners[owner].key.clone());
        let c0 = std::array::from_fn(|i| {
            let product = negacyclic(keys[i].coefficients(), &randomness.u);
            let terms = |j: usize| i128::from(randomness.e0[i][j]) + delta * i128::from(limbs[j]);
            std::array::from_fn(|j| reduce(ring, product[j] + terms(j)))
        });
        FreshCiphertext { a: self.a.clone(), keys, c1, c0 }
    }

    /// What the sender holds: a credit of `balance` + 300, and a debit of 300, so that limbs are of either sign.
    pub fn holding(&mut self, balance: u64) -> Holding {
        let [credit, debit] = [balance + 300, 300].map(|amount| {
            let randomness = self.randomness();
            self.encrypt([0], &limbs(amount), &randomness)
        });
        let difference = |x: &[u64], y: &[u64]| -> Vec<u64> {
            x.iter().zip(y).map(|(x, y)| reduce(&self.ring, i128::from(*x) - i128::from(*y))).collect()
        };
        let c1 = difference(credit.c1.coefficients(), debit.c1.coefficients());
        let c0 = difference(&credit.c0[0], &debit.c0[0]);
        let available = Ciphertext {
            c1: Polynomial::new(&self.ring, c1).expect("reduced"),
            c0: c0.try_into().expect("as many"),
        };
        Holding {
            domain: self.domain,
            account: self.owners[0].account,
            nonce: 5,
            secret_commitment: secret_commitment(&self.owners[0].secret),
            available,
        }
    }

    /// The sender's registration.
    pub fn registration(&self) -> RegistrationWitness {
        let owner = &self.owners[0];
        let statement = RegistrationStatement {
            domain: self.domain,
            account: owner.account,
            a: self.a.clone(),
            key: owner.key.clone(),
            secret_commitment: secret_commitment(&owner.secret),
        };
        RegistrationWitness { statement, secret: owner.secret.clone(), error: owner.error.clone() }
    }

    /// A transfer from sender to receiver.
    pub fn transfer(&mut self, balance: u64, amount: u64, fee: u64) -> TransferWitness {
        let sender = self.holding(balance);
        let randomness = self.randomness();
        let encrypted = self.encrypt([0, 1, 2], &limbs(amount), &randomness);
        let statement =
            TransferStatement { sender, receiver: self.owners[1].account, fee, amount: encrypted };
        let secret = self.owners[0].secret.clone();
        TransferWitness { statement, secret, amount: Zeroizing::new(amount), randomness }
    }

    /// The sender's refresh.
    pub fn refresh(&mut self, balance: u64) -> RefreshWitness {
        let owner = self.holding(balance);
        let randomness = self.randomness();
        let statement = RefreshStatement { owner, balance: self.encrypt([0], &limbs(balance), &randomness) };
        RefreshWitness { statement, secret: self.owners[0].secret.clone(), randomness }
    }

    /// The sender's withdrawal.
    pub fn withdrawal(&mut self, balance: u64, amount: u64) -> WithdrawalWitness {
        let owner = self.holding(balance);
        let statement = WithdrawalStatement { owner, recipient: Address::repeat_byte(0x77), amount };
        WithdrawalWitness { statement, secret: self.owners[0].secret.clone() }
    }
}
