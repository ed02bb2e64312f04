//! A deployment of three owners, seeds fixed and printed.

mod attacks;
mod completeness;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};

use crate::Address;
use crate::decrypt::Table;
use crate::elgamal::{Generators, SecretKey};
use crate::ledger::{Ledger, Refusal, Settings};
use crate::registration::{Register, Rollover};
use crate::spend::{Order, Spend};

static GENERATORS: LazyLock<Generators> = LazyLock::new(|| Generators::new().unwrap());
static TABLE: LazyLock<Table> = LazyLock::new(|| Table::new(&GENERATORS));

const SUPPLY: u64 = 3_000_000;
const FEE: u64 = 2;
const OPERATOR: Address = [0x0f; 20];
const DOMAIN: &[u8] = b"test domain";

struct World {
    ledger: Ledger,
    secrets: Vec<SecretKey>,
    auditor: SecretKey,
    rng: ChaCha20Rng,
}

fn owner(index: usize) -> Address {
    [index as u8 + 1; 20]
}

impl World {
    /// Three owners with a million each, available.
    fn new(seed: u64) -> Self {
        println!("seed {seed}");
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        let secrets: Vec<SecretKey> = (0..3).map(|_| SecretKey::random(&mut rng)).collect();
        let auditor = SecretKey::random(&mut rng);
        let settings = Settings {
            generators: GENERATORS.clone(),
            domain: DOMAIN.to_vec(),
            auditor: auditor.public_key(&GENERATORS),
            operator: OPERATOR,
            minimum_fee: FEE,
        };
        let ledger = Ledger::new(settings, BTreeMap::from([(owner(0), SUPPLY)]));
        let mut world = Self { ledger, secrets, auditor, rng };
        for index in 0..3 {
            let register = world.register(index);
            world.ledger.register(&register, &mut world.rng).unwrap();
            world.ledger.deposit(&owner(0), &owner(index), SUPPLY / 3).unwrap();
            world.rollover(index).unwrap();
        }
        world
    }

    fn register(&mut self, index: usize) -> Register {
        Register::new(&GENERATORS, DOMAIN, owner(index), &self.secrets[index], &mut self.rng)
    }

    fn rollover(&mut self, index: usize) -> Result<(), Refusal> {
        let nonce = self.ledger.account(&owner(index)).unwrap().nonce;
        let secret = &self.secrets[index];
        let rollover = Rollover::new(&GENERATORS, DOMAIN, owner(index), nonce, secret, &mut self.rng);
        self.ledger.rollover(&rollover, &mut self.rng)
    }

    /// Available, pending.
    fn balances(&self, index: usize) -> [u64; 2] {
        let account = self.ledger.account(&owner(index)).unwrap();
        [account.available, account.pending].map(|sum| TABLE.decrypt(&self.secrets[index], &sum).unwrap())
    }

    fn order(&self, from: usize, to: (Address, Option<u64>), public: u64) -> Order {
        Order {
            domain: DOMAIN.to_vec(),
            account: owner(from),
            nonce: self.ledger.account(&owner(from)).unwrap().nonce,
            public,
            to,
            balance: self.balances(from)[0],
        }
    }

    fn prove(&mut self, from: usize, order: &Order) -> Spend {
        let receiver = order.to.1.map(|_| &order.to.0);
        let premises = self.ledger.premises(&order.account, receiver).unwrap();
        Spend::new(&GENERATORS, order, &premises, &self.secrets[from], &mut self.rng).unwrap()
    }

    fn transfer(&mut self, from: usize, to: usize, amount: u64) -> Spend {
        let order = self.order(from, (owner(to), Some(amount)), FEE);
        self.prove(from, &order)
    }

    fn withdraw(&mut self, from: usize, recipient: Address, amount: u64) -> Spend {
        let order = self.order(from, (recipient, None), amount);
        self.prove(from, &order)
    }

    fn submit(&mut self, spend: &Spend) -> Result<(), Refusal> {
        self.ledger.execute(&[spend.encode()], &mut self.rng)[0]
    }

    /// Executes what must be refused, and finds the state as it was.
    fn refuse(&mut self, spend: &Spend, refusal: Refusal) {
        let before = self.ledger.digest();
        assert_eq!(self.submit(spend), Err(refusal));
        assert_eq!(self.ledger.digest(), before);
    }
}
