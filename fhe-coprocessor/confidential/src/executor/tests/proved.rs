//! The proof system in the place of its double, over the toy ring: what the encryption makes is what the circuits prove,
//! and what they prove is what the state asks for.

use ark_bls12_381::Bls12_381;
use blindfold_groth16::{Circuit, Prover, Recent, Verifier, setup};
use blindfold_rlwe::rlwe::EncryptionWitness;
use zeroize::Zeroizing;

use super::world::{MINIMUM_FEE, World};
use crate::Fr;
use crate::circuits::{
    Randomness, Refresh, RefreshWitness, Registration, RegistrationWitness, Transfer, TransferWitness,
    Withdrawal, WithdrawalWitness,
};
use crate::executor::{Groth16Proofs, Receipt, execute};
use crate::state::{Claim, Premises, Refusal};
use crate::transaction::{ConfidentialTransaction as T, EncodedProof, PROOF_BYTES};

struct Provers {
    registration: Prover<Bls12_381, Registration>,
    transfer: Prover<Bls12_381, Transfer>,
    refresh: Prover<Bls12_381, Refresh>,
    withdrawal: Prover<Bls12_381, Withdrawal>,
}

fn prover<C: Circuit<Fr>>(circuit: C) -> Prover<Bls12_381, C> {
    let key = setup::development(&circuit, &[8; 32]).unwrap();
    Prover::new(circuit, key).unwrap()
}

fn verifier<C: Circuit<Fr>>(prover: &Prover<Bls12_381, C>) -> Verifier<Bls12_381> {
    Verifier::new(prover.key().verifying().clone())
}

impl Provers {
    fn new(world: &World) -> Self {
        let ring = *world.settings.ring();
        Self {
            registration: prover(Registration(ring)),
            transfer: prover(Transfer(ring)),
            refresh: prover(Refresh(ring)),
            withdrawal: prover(Withdrawal(ring)),
        }
    }

    fn verifiers(&self) -> Groth16Proofs {
        Groth16Proofs {
            registration: verifier(&self.registration),
            transfer: verifier(&self.transfer),
            refresh: verifier(&self.refresh),
            withdrawal: verifier(&self.withdrawal),
            recent: Recent::default(),
        }
    }

    fn prove<C: Circuit<Fr>>(
        prover: &Prover<Bls12_381, C>,
        world: &mut World,
        statement: &C::Statement,
        witness: &C::Witness,
    ) -> EncodedProof {
        let proof = prover.prove(statement, witness, &mut world.rng).unwrap();
        EncodedProof(<[u8; PROOF_BYTES]>::try_from(proof.encode()).unwrap())
    }

    fn register(&self, world: &mut World, owner: usize) -> T {
        let T::Register(mut register) = world.register(owner) else { panic!("a registration") };
        let Claim::Registration(statement) = world.claim(&T::Register(register.clone()), &Premises::None)
        else {
            panic!("a registration")
        };
        let secret = &world.owners[owner].secret;
        let witness = RegistrationWitness {
            statement: *statement,
            secret: Zeroizing::new(secret.coefficients().to_vec()),
            error: Zeroizing::new(secret.error().to_vec()),
        };
        register.proof = Self::prove(&self.registration, world, &witness.statement, &witness);
        T::Register(register)
    }

    fn transfer(&self, world: &mut World, from: usize, to: usize, amount: u64) -> T {
        let sender = world.account(from);
        let (mut transfer, encryption) = world.unproved_transfer(from, to, amount, MINIMUM_FEE, sender.nonce);
        let premises = Premises::Payment(sender, world.account(to).identity.key.clone());
        let claim = world.claim(&T::Transfer(Box::new(transfer.clone())), &premises);
        let Claim::Transfer(statement) = claim else { panic!("a transfer") };
        let witness = TransferWitness {
            statement: *statement,
            secret: secret(world, from),
            amount: Zeroizing::new(amount),
            randomness: randomness(&encryption),
        };
        transfer.proof = Self::prove(&self.transfer, world, &witness.statement, &witness);
        T::Transfer(Box::new(transfer))
    }

    fn refresh(&self, world: &mut World, owner: usize) -> T {
        let (mut refresh, encryption) = world.unproved_refresh(owner);
        let premises = Premises::Account(world.account(owner));
        let claim = world.claim(&T::Refresh(Box::new(refresh.clone())), &premises);
        let Claim::Refresh(statement) = claim else { panic!("a refresh") };
        let witness = RefreshWitness {
            statement: *statement,
            secret: secret(world, owner),
            randomness: randomness(&encryption),
        };
        refresh.proof = Self::prove(&self.refresh, world, &witness.statement, &witness);
        T::Refresh(Box::new(refresh))
    }

    fn withdraw(&self, world: &mut World, owner: usize, amount: u64) -> T {
        let T::Withdraw(mut withdraw) = world.withdraw(owner, world.address(owner), amount) else {
            panic!("a withdrawal")
        };
        let premises = Premises::Account(world.account(owner));
        let claim = world.claim(&T::Withdraw(withdraw.clone()), &premises);
        let Claim::Withdrawal(statement) = claim else { panic!("a withdrawal") };
        let witness = WithdrawalWitness { statement: *statement, secret: secret(world, owner) };
        withdraw.proof = Self::prove(&self.withdrawal, world, &witness.statement, &witness);
        T::Withdraw(withdraw)
    }
}

fn secret(world: &World, owner: usize) -> Zeroizing<Vec<i8>> {
    Zeroizing::new(world.owners[owner].secret.coefficients().to_vec())
}

fn randomness<const K: usize>(witness: &EncryptionWitness) -> Randomness<K> {
    let mut e0 = witness.e0().map(|e0| Zeroizing::new(e0.try_into().unwrap()));
    Randomness {
        u: Zeroizing::new(witness.u().to_vec()),
        e1: Zeroizing::new(witness.e1().to_vec()),
        e0: std::array::from_fn(|_| e0.next().unwrap()),
    }
}

/// Executes and stores a batch.
fn run(world: &mut World, proofs: &Groth16Proofs, batch: &[T]) -> Vec<Receipt> {
    let batch: Vec<Vec<u8>> = batch.iter().map(T::encode).collect();
    let Ok(executed) = execute(&world.settings, &world.storage, proofs, *world.storage.head(), &batch);
    world.storage.commit(&executed);
    executed.receipts
}

#[test]
fn real_proofs_move_balances_and_forged_ones_do_not() {
    let mut world = World::new(3);
    let provers = Provers::new(&world);
    let proofs = provers.verifiers();

    let mut batch: Vec<T> = (0..3).map(|owner| provers.register(&mut world, owner)).collect();
    // The proof of another's registration, under the own signature.
    let (T::Register(first), T::Register(mut second)) = (batch[0].clone(), batch[1].clone()) else {
        panic!("registrations")
    };
    second.proof = first.proof;
    batch.insert(1, T::Register(second));
    let outcomes: Vec<_> = run(&mut world, &proofs, &batch).iter().map(|receipt| receipt.outcome).collect();
    assert_eq!(outcomes, [Ok(()), Err(Refusal::InvalidProof), Ok(()), Ok(())]);

    for owner in 0..3 {
        let deposit = world.deposit(owner, owner, 1000);
        assert_eq!(run(&mut world, &proofs, &[deposit])[0].outcome, Ok(()));
        let rollover = world.rollover(owner);
        assert_eq!(run(&mut world, &proofs, &[rollover])[0].outcome, Ok(()));
    }

    let good =
        [(0, 1, 400), (1, 2, 1)].map(|(from, to, amount)| provers.transfer(&mut world, from, to, amount));
    let T::Transfer(mut forged) = provers.transfer(&mut world, 2, 0, 10) else { panic!("a transfer") };
    forged.receiver = world.address(1);
    let T::Transfer(mut broken) = provers.transfer(&mut world, 2, 0, 10) else { panic!("a transfer") };
    broken.proof.0[5] ^= 1;
    let last = provers.transfer(&mut world, 2, 0, 10);
    let batch =
        [good[0].clone(), T::Transfer(forged), good[1].clone(), T::Transfer(broken), last, good[0].clone()];
    let outcomes: Vec<_> = run(&mut world, &proofs, &batch).iter().map(|receipt| receipt.outcome).collect();
    let bad = Err(Refusal::InvalidProof);
    assert_eq!(outcomes, [Ok(()), bad, Ok(()), bad, Ok(()), Err(Refusal::NonceTooLow)]);
    assert_eq!([0, 1, 2].map(|owner| world.balances(owner)), [[597, 10], [996, 400], [987, 1]]);

    let batch = [provers.refresh(&mut world, 0), provers.withdraw(&mut world, 1, 996)];
    assert!(run(&mut world, &proofs, &batch).iter().all(|receipt| receipt.outcome == Ok(())));
    let rollover = world.rollover(1);
    assert_eq!(run(&mut world, &proofs, &[rollover])[0].outcome, Ok(()));
    let spent = provers.transfer(&mut world, 1, 0, 400 - MINIMUM_FEE);
    assert_eq!(run(&mut world, &proofs, &[spent])[0].outcome, Ok(()));
    assert_eq!([0, 1].map(|owner| world.balances(owner)), [[597, 407], [0, 0]]);
    world.check_invariants();
}
