//! `blindfold coprocessor`.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::{Context, Result};
use blindfold_client::confidential::{ConfidentialDeployment, VerifiedState, provers};
use blindfold_coprocessor::{Coprocessor, CoprocessorConfig, CoprocessorDeps, Ledger, LedgerView};
use blindfold_protocol::ChainConfig;
use blindfold_rlwe::rlwe::PublicPolynomial;
use blindfold_rpc::confidential::ConfidentialParameters;
use blindfold_store::{ConfidentialStore, StoreUrl};
use blindfold_tls::TlsSettings;
use serde::{Deserialize, Serialize};

use super::{BackendSettings, L1Settings, Role, StoreSettings, fault_in, load_chain, load_parameters};

/// Settings of a coprocessor's process.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CoprocessorSettings {
    /// Path of the chain's settings, `rollup.json`.
    pub chain: PathBuf,
    /// The deployment of confidential balances, `confidential.json`.
    pub deployment: PathBuf,
    /// Folder of the circuits' verifying keys.
    pub keys_dir: PathBuf,
    /// Paths of the committees' parameter files, one for each epoch.
    pub parameters: Vec<PathBuf>,
    /// L1, the coprocessor's own view.
    pub l1: L1Settings,
    /// Whom the connections that it opens trust over TLS, and what they show.
    #[serde(default)]
    pub tls: TlsSettings,
    /// Folder of the coprocessor's files.
    pub data_dir: PathBuf,
    /// Where its records are.
    #[serde(default)]
    pub store: StoreSettings,
    /// Which backend does the heavy cryptography, and on how many threads.
    #[serde(default)]
    pub backend: BackendSettings,
    /// Whether verifying keys may come from a development set-up, whose maker can forge proofs: make money of nothing.
    #[serde(default)]
    pub insecure_development_setup: bool,
    /// The settings of the coprocessor itself.
    pub coprocessor: CoprocessorConfig,
}

/// Reads the deployment of confidential balances, `confidential.json`.
///
/// # Errors
/// A file that cannot be read or is none.
pub fn load_deployment(path: &Path) -> Result<ConfidentialDeployment> {
    let text = std::fs::read_to_string(path).with_context(|| format!("deployment = {}", path.display()))?;
    serde_json::from_str(&text).with_context(|| format!("{} is no confidential.json", path.display()))
}

/// What a coprocessor of one's own executed, from its store; it may be running.
///
/// # Errors
/// A store without a state, or of another deployment.
pub async fn executed_here(
    deployment: &ConfidentialDeployment,
    chain: &ChainConfig,
    store: &StoreUrl,
) -> Result<(Arc<PublicPolynomial>, VerifiedState)> {
    let (public, settings) = deployment.settings(chain)?;
    let opened = store.open_reader().await.with_context(|| {
        format!("{store}: the store of a coprocessor of your own, which executes what is decrypted")
    })?;
    let state = VerifiedState::open(settings, &deployment.genesis()?, Arc::new(opened)).await;
    Ok((public, state.with_context(|| store.to_string())?))
}

impl Role for CoprocessorSettings {
    const NAME: &'static str = "coprocessor";
    type Running = Coprocessor;

    fn tls(&self) -> &TlsSettings {
        &self.tls
    }

    fn faults(&self) -> Vec<anyhow::Error> {
        fault_in("coprocessor", self.coprocessor.validate()).into_iter().collect()
    }

    async fn start(self, _: bool) -> Result<Coprocessor> {
        let chain = load_chain(&self.chain)?;
        let deployment = load_deployment(&self.deployment)?;
        let (_, settings) = deployment.settings(&chain)?;
        let proofs = provers::verifiers(&self.keys_dir, &deployment.keys, self.insecure_development_setup)
            .context("the verifying keys; insecure_development_setup = true takes development keys")?;
        if self.insecure_development_setup {
            tracing::warn!("insecure_development_setup: whoever made the keys can forge proofs");
        }
        let l1 = Arc::new(self.l1.connect(&chain).await?);
        let parameters = load_parameters(&self.parameters, &self.backend, l1.clone()).await?;
        let backend = self.backend.backend()?;
        let store = self.store.open(&self.data_dir).await?;
        let state: Arc<dyn ConfidentialStore> = store.clone();
        let machine = Ledger::open(
            Arc::clone(&settings),
            deployment.genesis()?,
            Arc::new(proofs),
            Arc::clone(&state),
            backend.threads(),
        )
        .await?;
        let deps = CoprocessorDeps {
            deployment: shown(&deployment, &chain, &settings, self.insecure_development_setup),
            chain,
            store,
            state,
            settlement: Some(l1.clone()),
            l1,
            parameters,
            backend,
            machine: Box::new(machine),
            view: Arc::new(LedgerView::new(settings)),
        };
        Ok(Coprocessor::start(self.coprocessor, deps).await?)
    }
}

/// What `confidential_getParameters` answers.
fn shown(
    deployment: &ConfidentialDeployment,
    chain: &ChainConfig,
    settings: &blindfold_confidential::state::Settings,
    development_setup: bool,
) -> ConfidentialParameters {
    let keys = deployment.keys.iter().map(|(circuit, hashes)| (circuit.clone(), hashes.verifying));
    ConfidentialParameters {
        l1_chain_id: chain.deployment.l1_chain_id,
        chain_id: chain.chain_id,
        contract: deployment.contract,
        seed: deployment.seed,
        auditor_key: deployment.auditor_key.clone(),
        operator: deployment.operator,
        minimum_fee: deployment.minimum_fee,
        counter_limit: u32::from(settings.parameters().literal().max_additions),
        verifying_keys: keys.collect(),
        development_setup,
    }
}

#[cfg(test)]
#[path = "coprocessor_tests.rs"]
mod tests;
