//! Parts of roles: what seals, and what follows and executes.

use std::sync::Arc;

use blindfold_chain::{
    Executor, ExecutorDeps, FallbackHeader, HaltLimits, HeaderSigner, HintIntake, KeySigner, L1Reader,
    Sealed, Tracker,
};
use blindfold_protocol::{
    Bytes, Canonical, Certificate, ChainConfig, CheckedItem, Envelope, Epoch, SealedBatch, check_items,
};
use blindfold_store::Store;
use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};

use crate::{
    START_MS, ScriptedExecution, ScriptedL1, backend, certified, certify, chain_config, epoch, l1_block,
    memory, open_batch, parameter_set, sequencer_key, within,
};

/// A tracker on a disk and this L1.
pub async fn tracker_on(store: Arc<dyn Store>, l1: &Arc<ScriptedL1>) -> Tracker {
    let l1: Arc<dyn L1Reader> = Arc::clone(l1) as _;
    Tracker::open(chain_config(), store, l1).await.expect("it opens")
}

/// Items as the validity rule sees them.
pub fn check(chain: &ChainConfig, epoch: &Epoch, items: &[Vec<u8>]) -> Vec<CheckedItem> {
    let slices: Vec<&[u8]> = items.iter().map(Vec::as_slice).collect();
    check_items(chain, epoch, &slices, &mut ChaCha20Rng::seed_from_u64(1))
}

/// What signs for this chain.
pub fn signer_of(tracker: &Tracker) -> Arc<dyn HeaderSigner> {
    Arc::new(KeySigner::new(sequencer_key(), tracker.config().deployment))
}

/// A sequencer without a mempool: a tracker of its own that seals what it is given.
pub struct Sealer {
    /// Its chain.
    pub tracker: Tracker,
    /// Where its origins are from.
    pub l1: Arc<ScriptedL1>,
}

impl Sealer {
    /// On a tracker of its own.
    pub async fn new(l1: &Arc<ScriptedL1>) -> Self {
        Self { tracker: tracker_on(memory(), l1).await, l1: Arc::clone(l1) }
    }

    /// Seals `items` at `ms` milliseconds after the start, on the newest final origin.
    pub async fn seal(&self, ms: u64, items: Vec<Vec<u8>>) -> Sealed {
        self.seal_forced(ms, 0, items).await
    }

    /// Seals the next `forced` entries of the forced queue before `items`.
    pub async fn seal_forced(&self, ms: u64, forced: usize, items: Vec<Vec<u8>>) -> Sealed {
        let epoch = self.tracker.epoch(self.tracker.head().number + 1).await.expect("registered");
        let checked = check(&chain_config(), &epoch, &items);
        let origin = l1_block(*self.l1.finalized.lock());
        let items = items.into_iter().zip(checked).collect();
        let signer = signer_of(&self.tracker);
        self.tracker.seal(START_MS + ms, forced, items, &origin, &signer).await.expect("it seals")
    }

    /// Seals `items` a quarter of a second after the last header.
    pub async fn seal_next(&self, items: Vec<Vec<u8>>) -> Sealed {
        let ms = (self.tracker.head().timestamp_ms + 250).saturating_sub(START_MS);
        self.seal(ms, items).await
    }

    /// Seals these envelopes, likewise.
    pub async fn seal_next_envelopes(&self, envelopes: &[Envelope]) -> Sealed {
        self.seal_next(envelopes.iter().map(Canonical::encode).collect()).await
    }

    /// Seals these envelopes.
    pub async fn seal_envelopes(&self, ms: u64, envelopes: &[Envelope]) -> Sealed {
        self.seal(ms, envelopes.iter().map(Canonical::encode).collect()).await
    }

    /// The header that L1 makes on top of this tracker's head, out of these items, in the newest final block.
    pub fn l1_header(&self, ms: u64, items: Vec<Bytes>) -> FallbackHeader {
        let made = self.tracker.with_state(|state| state.l1_header(START_MS + ms, &items, &epoch()));
        let l1_block = *self.l1.finalized.lock();
        FallbackHeader { header: made.expect("L1 may make it"), items, l1_block }
    }

    /// Certifies a batch here, by members 1, 2 and 4.
    pub async fn certify(&self, sealed: &Sealed) -> Certificate {
        self.certify_by(&sealed.batch, &[1, 2, 4]).await
    }

    /// Certifies a batch here, by these members.
    pub async fn certify_by(&self, batch: &SealedBatch, members: &[u16]) -> Certificate {
        let certificate = certify(batch, members);
        self.tracker.accept_certificate(&certificate).await.expect("it stands");
        certificate
    }
}

/// A node: a tracker, an executor on its own scripted client, and the door for hints.
pub struct Machine {
    /// What it follows with.
    pub tracker: Tracker,
    /// What it executes with.
    pub executor: Executor,
    /// What takes hints.
    pub intake: HintIntake,
    /// What it executes on.
    pub client: Arc<ScriptedExecution>,
}

impl Machine {
    /// With the limits of production.
    pub async fn start(store: Arc<dyn Store>, l1: &Arc<ScriptedL1>, client: &Arc<ScriptedExecution>) -> Self {
        Self::start_with(store, l1, client, HaltLimits::default()).await
    }

    /// With limits of its own.
    pub async fn start_with(
        store: Arc<dyn Store>,
        l1: &Arc<ScriptedL1>,
        client: &Arc<ScriptedExecution>,
        halt: HaltLimits,
    ) -> Self {
        let tracker = tracker_on(store, l1).await;
        let deps = ExecutorDeps {
            tracker: tracker.clone(),
            parameters: parameter_set(),
            backend: backend(),
            client: Arc::clone(client) as _,
            l1: Arc::clone(l1) as _,
        };
        let executor = Executor::start_with(deps, halt).await.expect("it starts");
        let intake = HintIntake::new(tracker.clone(), parameter_set(), backend(), executor.opened());
        Self { tracker, executor, intake, client: Arc::clone(client) }
    }

    /// Takes a sealed batch with its certificate.
    pub async fn take(&self, sealed: &Sealed) {
        self.tracker.accept_certified(&certified(&sealed.batch)).await.expect("it stands");
    }

    /// Takes the honest hints of a batch.
    pub async fn hint(&self, sealed: &Sealed) {
        let (release, hints) = open_batch(&sealed.batch, &sealed.verdicts);
        self.intake.submit(Some(release), hints).await.expect("honest hints");
    }

    /// Waits for a block.
    pub async fn executed(&self, block: u64) {
        let mut status = self.executor.watch_status();
        let reached = status.wait_for(|status| status.block.is_some_and(|id| id.number >= block));
        within("a block", reached).await.expect("the executor lives");
    }
}
