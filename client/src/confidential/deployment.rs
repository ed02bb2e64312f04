//! The constants of a deployment of confidential balances: the file `confidential.json`, the same for every party.

use std::collections::BTreeMap;
use std::sync::Arc;

use alloy_primitives::{Address, B256, Bytes};
use blindfold_confidential::state::{Genesis, GenesisError, Settings, SettingsError};
use blindfold_confidential::statement::Domain;
use blindfold_protocol::ChainConfig;
use blindfold_rlwe::rlwe::{KeyError, Parameters, ParametersError, PublicKey, PublicPolynomial};
use serde::{Deserialize, Serialize};

/// What every executor and every wallet of a deployment must agree on. Unknown keys are refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ConfidentialDeployment {
    /// The contract that holds the wrapped tokens; bound into every signature and proof.
    pub contract: Address,
    /// The seed of the public polynomial a.
    pub seed: B256,
    /// The auditor's public key, packed.
    pub auditor_key: Bytes,
    /// The account that earns the fees.
    pub operator: Address,
    /// The least fee of a transfer and the least deposit, in base units.
    pub minimum_fee: u64,
    /// The public balances of the first state.
    pub allocations: Vec<Allocation>,
    /// Hashes of the keys of each circuit.
    pub keys: BTreeMap<String, KeyHashes>,
}

/// A public balance of the first state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Allocation {
    /// Address of the owner.
    pub owner: Address,
    /// What it has at first, in base units.
    pub balance: u64,
}

/// What pins the keys of a circuit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct KeyHashes {
    /// Hash of the verifying key.
    pub verifying: B256,
    /// Hash of the proving key.
    pub proving: B256,
}

/// A file that describes no deployment. The fault of whoever wrote it.
#[derive(Debug, thiserror::Error)]
pub enum DeploymentError {
    /// The numbers of the scheme; a mistake of this program.
    #[error(transparent)]
    Parameters(#[from] ParametersError),
    /// The seed gives no public polynomial.
    #[error(transparent)]
    Polynomial(#[from] KeyError),
    /// The auditor's key is no public key.
    #[error("auditorKey is no public key: {0}")]
    AuditorKey(String),
    /// The parts do not fit each other.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// The allocations make no first state.
    #[error("allocations: {0}")]
    Allocations(#[from] GenesisError),
}

impl ConfidentialDeployment {
    /// The public polynomial and the settings that follow from file and chain. Expands one polynomial and hashes two.
    ///
    /// # Errors
    /// [`DeploymentError`].
    pub fn settings(
        &self,
        chain: &ChainConfig,
    ) -> Result<(Arc<PublicPolynomial>, Arc<Settings>), DeploymentError> {
        let parameters = Parameters::balance()?;
        let public = PublicPolynomial::new(&parameters, &self.seed.0)?;
        let auditor = PublicKey::decode(&parameters, &self.auditor_key)
            .map_err(|fault| DeploymentError::AuditorKey(fault.to_string()))?;
        let domain = Domain {
            l1_chain_id: chain.deployment.l1_chain_id,
            chain_id: chain.chain_id,
            contract: self.contract,
        };
        let settings = Settings::new(domain, &public, &auditor, self.operator, self.minimum_fee)?;
        Ok((public, Arc::new(settings)))
    }

    /// The first state. One leaf for each allocation.
    ///
    /// # Errors
    /// [`DeploymentError::Allocations`].
    pub fn genesis(&self) -> Result<Genesis, DeploymentError> {
        let allocations: Vec<(Address, u64)> =
            self.allocations.iter().map(|entry| (entry.owner, entry.balance)).collect();
        Ok(Genesis::new(&allocations)?)
    }
}
