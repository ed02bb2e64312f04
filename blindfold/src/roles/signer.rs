//! `blindfold signer`.

use std::{path::PathBuf, sync::Arc};

use anyhow::{Context, Result, ensure};
use blindfold_client::KeySource;
use blindfold_protocol::{ChainConfig, SigningKey};
use blindfold_runtime::SteadyClock;
use blindfold_signer::{Signer, SignerConfig, SignerDeps, SignerHandle};
use blindfold_store::SqlStore;
use blindfold_tls::{ClientTls, TlsSettings};
use serde::{Deserialize, Serialize};

use super::{L1Settings, Role, StoreSettings, fault_in, load_chain};
use crate::settings::{SettingsArgs, load};

/// Settings of the signer's process.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SignerSettings {
    /// Path of the chain's settings, `rollup.json`.
    pub chain: PathBuf,
    /// L1, the signer's own view: it says whether a second header for a number is excused.
    pub l1: L1Settings,
    /// Whom the connections that it opens trust over TLS, and what they show.
    #[serde(default)]
    pub tls: TlsSettings,
    /// The key that signs headers and promises.
    pub signing_key: KeySource,
    /// The settings of the signer itself.
    pub signer: SignerConfig,
}

/// What the signer and its commands work with, beside L1.
struct Opened {
    chain: Arc<ChainConfig>,
    key: Arc<SigningKey>,
    store: Arc<SqlStore>,
}

impl SignerSettings {
    async fn open(&self) -> Result<Opened> {
        let chain = load_chain(&self.chain)?;
        let key = Arc::new(self.signing_key.open().context("signing_key")?);
        // On this machine's disk, and in no database that somebody restores.
        let store = StoreSettings::default().open(&self.signer.data_dir).await?;
        Ok(Opened { chain, key, store })
    }

    /// For a command: what the role does before it starts.
    fn load(args: &SettingsArgs) -> Result<Self> {
        let settings = load::<Self>(Self::NAME, args)?;
        let tls = ClientTls::open(&settings.tls).context("section [tls] of the settings")?;
        ensure!(blindfold_tls::install(tls), "the TLS of this process is settled already: this is a bug");
        Ok(settings)
    }
}

impl Role for SignerSettings {
    const NAME: &'static str = "signer";
    type Running = SignerHandle;

    fn tls(&self) -> &TlsSettings {
        &self.tls
    }

    fn faults(&self) -> Vec<anyhow::Error> {
        fault_in("signer", self.signer.check()).into_iter().collect()
    }

    async fn start(self, _: bool) -> Result<SignerHandle> {
        let Opened { chain, key, store } = self.open().await?;
        let l1 = Arc::new(self.l1.connect_in(&chain, &self.signer.data_dir).await?);
        let deps = SignerDeps { chain, store, l1, key, clock: Arc::new(SteadyClock::system()) };
        Ok(Signer::start(self.signer, deps).await?)
    }
}

/// Tells a fresh signer from which number on it signs.
///
/// # Errors
/// Settings that do not work; see [`blindfold_signer::BeginError`].
pub(crate) async fn begin(args: &SettingsArgs, first: u64) -> Result<()> {
    let settings = SignerSettings::load(args)?;
    let Opened { chain, key, store } = settings.open().await?;
    let l1 = settings.l1.connect(&chain).await?;
    let of = (&chain.deployment, key.address());
    blindfold_signer::begin(store.as_ref(), &l1, of, first).await?;
    println!("{} signs from number {first} on: start the signer", key.address());
    Ok(())
}

/// Has a signer forget the highest term that it was asked in.
///
/// # Errors
/// Settings that do not work; a store that cannot be opened.
pub(crate) async fn forget_terms(args: &SettingsArgs) -> Result<()> {
    let Opened { chain, key, store } = SignerSettings::load(args)?.open().await?;
    let seen = blindfold_signer::forget_terms(store.as_ref(), &chain.deployment, key.address()).await?;
    println!("forgot term {seen}; what was signed stays");
    Ok(())
}
